// The bijection between terms and columns, to play with. No library, no network.
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

  /** Monomials of degree k in the groups from g on, of each group at most one feature. */
  function count(g, k) {
    if (k === 0 || g === basis.sizes.length) return k === 0 ? 1 : 0;
    return count(g + 1, k) + basis.sizes[g] * count(repeats(g) ? g : g + 1, k - 1);
  }

  /** Whether powers of the feature of a group are allowed. */
  const repeats = (g) => !basis.distinct && basis.sizes[g] === 1;

  /** What comes after a tuple, for each of its features: how many times which [group, degree]. */
  function after(tuple) {
    return tuple.flatMap((j, m) => {
      const g = basis.group[j], k = tuple.length - m;
      const behind = basis.group.lastIndexOf(g) - j;  // in the same group
      return [[1, g + 1, k], [behind, g + 1, k - 1]].filter(([times]) => times > 0);
    });
  }

  const rank = (tuple) =>
    after(tuple).reduce((rest, [times, g, k]) => rest - times * count(g, k), count(0, tuple.length) - 1);

  /** First column of a degree: the bias and all lower degrees come before it. */
  function first(degree) {
    let start = 1;
    for (let d = 1; d < degree; d++) start += count(0, d);
    return start;
  }

  /** Two features of a tuple that are in the same group, or nothing. */
  function clash(tuple) {
    const m = tuple.findIndex((j, m) => {
      const g = basis.group[j];
      return m > 0 && g === basis.group[tuple[m - 1]] && basis.sizes[g] > 1;
    });
    return m > 0 ? [tuple[m - 1], tuple[m]] : null;
  }

  /** Tuples of increasing features, including those that groups forbid. */
  function* candidates(degree, least = 0) {
    if (degree === 0) yield [];
    for (let j = least; degree > 0 && j < basis.features; j++) {
      for (const tail of candidates(degree - 1, basis.distinct ? j + 1 : j)) yield [j, ...tail];
    }
  }

  // --------------------------------------------------------------------------------- drawing

  function add(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  }

  /** Read the form: sizes are those of the first groups, and other features are on their own. */
  function read() {
    const degree = Number(form.degree.value), most = MOST[degree];
    form.features.max = most;
    const given = [];
    for (const size of (form.groups.value.match(/\d+/g) ?? []).map(Number)) {
      const left = most - given.reduce((a, b) => a + b, 0);
      if (size > 0 && left > 0) given.push(Math.min(size, left));
    }
    const grouped = given.reduce((a, b) => a + b, 0);
    const asked = Math.round(Number(form.features.value)) || 1;
    const features = Math.min(Math.max(asked, grouped, 1), most);
    const sizes = [...given, ...Array(features - grouped).fill(1)];
    const group = sizes.flatMap((size, g) => Array(size).fill(g));
    basis = { features, degree, distinct: form.kind.value === "interactions", sizes, group };
    if (form.features.value !== String(features)) form.features.value = features;
    if (form.groups.value !== given.join(", ")) form.groups.value = given.join(", ");
  }

  const isGrouped = () => basis.sizes.some((size) => size > 1);

  function draw() {
    read();
    svg.replaceChildren();
    cells = new Map();
    const layers = basis.degree === 2 ? [[]] : Array.from(candidates(1));
    const layer = LABEL + basis.features * SIZE;
    room = root.clientWidth;
    const widest = Math.max(layer, Math.min(2 * layer, room));
    let x = 0, y = 0, height = 0, width = 0;
    for (const lead of layers) {
      const own = Array.from(candidates(2, lead.length && lead[0] + basis.distinct));
      if (own.every((pair) => clash([...lead, ...pair]))) continue;
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
    if (all.length === 0) return say("There are no such terms: choose more features.");
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
    const across = [...new Set(own.map(([, k]) => k))].sort((a, b) => a - b);
    const down = [...new Set(own.map(([j]) => j))];
    for (const k of across) label(x(k), top + title + LABEL / 2, `x${k}`);
    for (const j of down) label(left + LABEL / 2, y(j), `x${j}`);
    const bar = (from, to) => add(svg, "path", { class: "group", d: `M${from} L${to}` });
    const half = SIZE / 2 - 4;
    for (const [a, b] of spans(across)) {
      bar([x(a) - half, top + title + 1], [x(b) + half, top + title + 1]);
    }
    for (const [a, b] of spans(down)) bar([left + 1, y(a) - half], [left + 1, y(b) + half]);
    for (const [j, k] of own) {
      const tuple = [...lead, j, k], side = SIZE - 3;
      const box = { x: x(k) - side / 2, y: y(j) - side / 2, width: side, height: side, rx: 4 };
      if (clash(tuple)) {
        const cell = add(svg, "rect", { ...box, class: "forbidden", "data-tuple": tuple.join(",") });
        add(cell, "title", {}, forbidden(tuple));
        continue;
      }
      const r = rank(tuple), column = first(tuple.length) + r;
      const group = add(svg, "g", {
        role: "option", tabindex: -1, "aria-selected": false,
        "data-tuple": tuple.join(","), "data-rank": r, "data-column": column,
        "aria-label": `product ${name(tuple)}, rank ${r}, column ${column}`,
      });
      add(group, "rect", box);
      add(group, "text", { x: x(k), y: y(j) }, r);
      const cell = { tuple, rank: r, column, group };
      group.addEventListener("pointerenter", () => choose(cell));
      group.addEventListener("click", () => { choose(cell); group.focus(); });
      group.addEventListener("focus", () => choose(cell));
      cells.set(tuple.join(), cell);
    }
  }

  /** First and last of some features, for each group of several: where bars mark groups. */
  function spans(features) {
    const of = (g) => features.filter((j) => basis.group[j] === g);
    const found = basis.sizes.flatMap((size, g) => (size > 1 ? [of(g)] : []));
    return found.filter((own) => own.length).map((own) => [own[0], own.at(-1)]);
  }

  /** Why a tuple is not a product. */
  function forbidden(tuple) {
    const [a, b] = clash(tuple);
    return a === b
      ? `There are no powers of x${a}: it is in a group with others.`
      : `x${a} and x${b} are in the same group: they are not multiplied.`;
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
    const K = tuple.length, taken = after(tuple);
    const times = (n, text) => (n > 1 ? `${n}·${text}` : text);
    const symbols = [written(0, K), "1", ...taken.map(([n, g, k]) => times(n, written(g, k)))];
    const numbers = [count(0, K), 1, ...taken.map(([n, g, k]) => times(n, count(g, k)))];
    const which = isGrouped() ? [`groups: ${tuple.map((j) => basis.group[j]).join(", ")}`] : [];
    say(
      `(${tuple.join(", ")}) is ${name(tuple)}: rank ${r}, column ${column}.`,
      ...which,
      `rank = ${symbols.join(" − ")} = ${numbers.join(" − ")} = ${r}`,
      `column = ${first(K)} of lower degrees + ${r} = ${column}`,
    );
  }

  /** The number of monomials of degree k in the groups from g on, as the page writes it. */
  function written(g, k) {
    if (isGrouped()) return `E${"₀₁₂₃"[k]}(${g})`;
    const n = basis.features - g;  // of features, for each is a group
    return basis.distinct ? `C(${n}, ${k})` : `T${"₀₁₂₃"[k]}(${n})`;
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
      if (isProduct(tuple)) return say(forbidden(tuple));
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
      for (const tuple of candidates(degree)) {
        if (clash(tuple) || (degree ? first(degree) + rank(tuple) : 0) !== column) continue;
        return say(`Column ${column} is ${name(tuple)}, of degree ${degree}: not drawn here.`);
      }
    }
  }

  /** Whether a sorted tuple would be a product if there were no groups. */
  function isProduct(tuple) {
    const repeated = tuple.some((j, m) => m > 0 && j === tuple[m - 1]);
    const known = tuple.length === basis.degree && tuple.at(-1) < basis.features;
    return known && !(basis.distinct && repeated);
  }

  function move(key) {
    const { tuple, rank: r } = chosen, ranked = [...cells.values()];
    const below = (step) => {  // the next one in the same column of cells
      for (let j = tuple.at(-2) + step; j >= 0 && j <= tuple.at(-1); j += step) {
        const cell = cells.get([...tuple.slice(0, -2), j, tuple.at(-1)].join());
        if (cell) return cell;
      }
    };
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
  for (const input of [form.features, form.degree, form.kind, form.groups]) {
    input.addEventListener("change", draw);
  }
  for (const input of [form.tuple, form.column]) input.addEventListener("input", () => find(input));
  svg.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (move(event.key)) { event.preventDefault(); event.stopPropagation(); }
  });
  window.addEventListener("resize", () => root.clientWidth !== room && draw());
  draw();
})();
