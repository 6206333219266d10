// The bijection between products and columns, to play with. No library, no network.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SIZE = 34, GAP = 5, LABEL = 22;  // of a cell, and beside it
  const MOST = { 2: 12, 3: 7 };  // features that can still be read
  const root = document.getElementById("bijection");
  const form = root.querySelector("form"), svg = root.querySelector("svg");
  const says = root.querySelector(".bijection-says");
  let basis, cells, chosen, room;

  // ------------------------------------------------------------------------------ arithmetic

  function binomial(n, k) {
    let result = 1;
    for (let m = 1; m <= k; m++) result = (result * (n - k + m)) / m;
    return n < k ? 0 : result;
  }

  /** Monomials of degree k in n features: a simplex number, or a binomial coefficient. */
  const count = (n, k) => binomial(basis.distinct ? n : n + k - 1, k);

  /** What the closed form of a rank takes off the number of monomials, one less. */
  const terms = (tuple) => tuple.map((j, m) => [basis.features - 1 - j, tuple.length - m]);

  const rank = (tuple) =>
    terms(tuple).reduce((rest, [n, k]) => rest - count(n, k), count(basis.features, tuple.length) - 1);

  /** First column of a degree: the bias and all lower degrees come before it. */
  function first(degree) {
    let start = 1;
    for (let d = 1; d < degree; d++) start += count(basis.features, d);
    return start;
  }

  function* tuples(degree, least = 0) {
    if (degree === 0) yield [];
    for (let j = least; degree > 0 && j < basis.features; j++) {
      for (const tail of tuples(degree - 1, basis.distinct ? j + 1 : j)) yield [j, ...tail];
    }
  }

  // --------------------------------------------------------------------------------- drawing

  function add(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }

  function draw() {
    const degree = Number(form.degree.value);
    form.features.max = MOST[degree];
    const features = Math.round(Number(form.features.value));
    basis = {
      features: Math.min(Math.max(features || 1, 1), MOST[degree]),
      degree,
      distinct: form.kind.value === "interactions",
    };
    if (form.features.value !== String(basis.features)) form.features.value = basis.features;
    svg.replaceChildren();
    cells = new Map();
    const layers = degree === 2 ? [[]] : Array.from(tuples(1));
    const layer = LABEL + basis.features * SIZE;
    room = root.clientWidth;
    const widest = Math.max(layer, Math.min(2 * layer, room));
    let x = 0, y = 0, height = 0, width = 0;
    for (const lead of layers) {
      const own = Array.from(tuples(2, lead.length && lead[0] + basis.distinct));
      if (own.length === 0) continue;
      const box = measure(own, lead);
      if (x > 0 && x + box.width > widest) [x, y, height] = [0, y + height + GAP * 3, 0];
      drawLayer(lead, own, x, y, box);
      width = Math.max(width, x + box.width);
      height = Math.max(height, box.height);
      x += box.width + GAP * 4;
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${y + height}`);
    svg.style.maxWidth = `${width * 1.3}px`;  // so that few cells are not huge
    const all = [...cells.values()];
    if (all.length === 0) return say("There are no such products: choose more features.");
    choose(all[Math.min(chosen?.rank ?? Math.floor(all.length / 2), all.length - 1)]);
  }

  function measure(own, lead) {
    const [firstRow, firstColumn] = own[0], last = basis.features - 1;
    const rows = new Set(own.map(([j]) => j)).size;
    const title = lead.length ? LABEL : 0;
    return {
      firstRow, firstColumn, title,
      width: LABEL + (last - firstColumn + 1) * SIZE,
      height: title + LABEL + rows * SIZE,
    };
  }

  function drawLayer(lead, own, left, top, { firstRow, firstColumn, title }) {
    const middle = (n) => n * SIZE + SIZE / 2;
    const x = (k) => left + LABEL + middle(k - firstColumn);
    const y = (j) => top + title + LABEL + middle(j - firstRow);
    const label = (px, py, text) => add(svg, "text", { x: px, y: py, class: "label" }, text);
    if (lead.length) label(left + LABEL + SIZE / 2, top + LABEL / 2, `x${lead[0]} ·`);
    for (const k of new Set(own.map(([, k]) => k))) label(x(k), top + title + LABEL / 2, `x${k}`);
    for (const j of new Set(own.map(([j]) => j))) label(left + LABEL / 2, y(j), `x${j}`);
    for (const [j, k] of own) {
      const tuple = [...lead, j, k], r = rank(tuple), column = first(tuple.length) + r;
      const group = add(svg, "g", {
        role: "option", tabindex: -1, "aria-selected": false,
        "data-tuple": tuple.join(","), "data-rank": r, "data-column": column,
        "aria-label": `product ${name(tuple)}, rank ${r}, column ${column}`,
      });
      const side = SIZE - 3;
      add(group, "rect", { x: x(k) - side / 2, y: y(j) - side / 2, width: side, height: side, rx: 4 });
      add(group, "text", { x: x(k), y: y(j) }, r);
      const cell = { tuple, rank: r, column, group };
      group.addEventListener("pointerenter", () => choose(cell));
      group.addEventListener("click", () => { choose(cell); group.focus(); });
      group.addEventListener("focus", () => choose(cell));
      cells.set(tuple.join(), cell);
    }
  }

  // -------------------------------------------------------------------------------- choosing

  /** A product as it is named: x0^2 x3. */
  function name(tuple) {
    const powers = new Map();
    for (const j of tuple) powers.set(j, (powers.get(j) ?? 0) + 1);
    return Array.from(powers, ([j, e]) => `x${j}${e > 1 ? `^${e}` : ""}`).join(" ") || "1";
  }

  function choose(cell, from) {
    chosen = cell;
    for (const other of cells.values()) {
      const same = other === cell;
      other.group.setAttribute("aria-selected", same);
      other.group.setAttribute("tabindex", same ? 0 : -1);
      other.group.classList.toggle("before", other.rank < cell.rank);
    }
    if (from !== form.tuple) form.tuple.value = cell.tuple.join(", ");
    if (from !== form.column) form.column.value = cell.column;
    explain(cell);
  }

  function explain({ tuple, rank: r, column }) {
    const D = basis.features, K = tuple.length;
    const written = ([n, k]) => (basis.distinct ? `C(${n}, ${k})` : `T${"₀₁₂₃"[k]}(${n})`);
    const taken = terms(tuple), total = count(D, K);
    const symbols = [written([D, K]), "1", ...taken.map(written)].join(" − ");
    const numbers = [total, 1, ...taken.map(([n, k]) => count(n, k))].join(" − ");
    say(
      `(${tuple.join(", ")}) is ${name(tuple)}: rank ${r}, column ${column}.`,
      `rank = ${symbols} = ${numbers} = ${r}`,
      `column = ${first(K)} of lower degrees + ${r} = ${column}`,
    );
  }

  function say(text, ...formulas) {
    says.replaceChildren(text);
    for (const formula of formulas) {
      const code = document.createElement("code");
      code.textContent = formula;
      says.append(document.createElement("br"), code);
    }
  }

  function find(input) {
    if (input === form.tuple) {
      const tuple = (input.value.match(/\d+/g) ?? []).map(Number).sort((a, b) => a - b);
      const cell = cells.get(tuple.join());
      if (cell) return choose(cell, input);
      const kind = basis.distinct ? "distinct features" : "features";
      return say(`Write ${basis.degree} ${kind} from 0 to ${basis.features - 1}, like 0, 1.`);
    }
    const column = Number(input.value);
    for (const cell of cells.values()) if (cell.column === column) return choose(cell, input);
    const start = first(basis.degree), end = start + cells.size;
    if (!Number.isInteger(column) || column < 0 || column >= end || input.value === "") {
      return say(`Columns of degree ${basis.degree} are ${start} to ${end - 1}.`);
    }
    for (let degree = 0; degree < basis.degree; degree++) {
      for (const tuple of tuples(degree)) {
        if ((degree ? first(degree) + rank(tuple) : 0) !== column) continue;
        return say(`Column ${column} is ${name(tuple)}, of degree ${degree}: not drawn here.`);
      }
    }
  }

  function move(key) {
    const { tuple, rank: r } = chosen, ranked = [...cells.values()];
    const below = (step) => cells.get([...tuple.slice(0, -2), tuple.at(-2) + step, tuple.at(-1)].join());
    const target = {
      ArrowRight: () => ranked[r + 1],
      ArrowLeft: () => ranked[r - 1],
      ArrowDown: () => below(1),
      ArrowUp: () => below(-1),
      Home: () => ranked[0],
      End: () => ranked.at(-1),
    }[key];
    if (target) (target() ?? chosen).group.focus();
    return Boolean(target);
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  for (const input of [form.features, form.degree, form.kind]) input.addEventListener("change", draw);
  for (const input of [form.tuple, form.column]) input.addEventListener("input", () => find(input));
  svg.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (move(event.key)) { event.preventDefault(); event.stopPropagation(); }
  });
  window.addEventListener("resize", () => root.clientWidth !== room && draw());
  draw();
})();
