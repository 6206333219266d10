#!/bin/sh
# The examples of README.md and the guides, run in an environment that has exactly what these pages
# install. `make test-cluster` runs those of docs/scaling.md.
set -eu
cd "$(dirname "$0")/.."
VENV=${VENV:-.venv}
root=$(pwd)
out=$root/build/readme
rm -rf "$out"
mkdir -p "$out"

# What `pip install .` builds, from the kernels that make has compiled already.
"$VENV/bin/python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$out" . \
    --config-settings=cmake.define.POLYSPARSE_WERROR=ON
"$VENV/bin/python" -m venv "$out/venv"
PATH=$out/venv/bin:$PATH
wheel=$(echo "$out"/*.whl)

python -m pip install --quiet "$wheel"
tables="README.md docs/index.md docs/categorical.md docs/counts.md"
for page in $(grep -l '>>> ' docs/*.md | grep -v -e scaling.md -e categorical.md -e index.md -e counts.md); do
    echo "$page"
    python -m doctest "$root/$page"
done

python -m pip install --quiet "${wheel}[cli]" pandas
for page in $tables; do
    echo "$page"
    python -m doctest "$root/$page"
done
commands="files models columns categorical penalty discovery counts online larger"
for page in README.md $(printf 'docs/%s.md ' $commands); do
    echo "$page: commands"
    mkdir -p "$out/$page/examples"
    cd "$out/$page"
    cp "$root/examples/people.csv" examples
    cp "$root/examples/people.csv" people.csv
    python - <<'END'
import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

rng = np.random.default_rng(0)
for name in ("clicks", "train", "test"):
    X = (rng.random((300, 100)) < 0.2).astype(float)
    dump_svmlight_file(X, (X[:, 0] * X[:, 1] > 0).astype(int), f"{name}.svmlight")
claims = pd.DataFrame({"car": rng.choice(["small", "sports"], 300), "years": rng.random(300) + 0.1})
claims["claims"] = rng.poisson(claims["years"])
claims.to_csv("claims.csv", index=False)
with open("labels.txt", "w") as labels:
    labels.write("user\n" * 50 + "item\n" * 30 + "hour\n" * 20)
END
    grep '^    polysparse ' "$root/$page" >commands
    sh -eu commands >output 2>&1 || { cat output && exit 1; }
    case $page in README.md) test -s variables.svg ;; esac
    cd "$root"
done
