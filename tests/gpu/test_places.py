"""The index arithmetic of the GPU kernels, compiled for the processor: it needs no GPU."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import reference

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src" / "polysparse" / "gpu"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_the_arithmetic_of_places_agrees_with_enumeration(tmp_path):
    program = tmp_path / "places"
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wno-unknown-pragmas", f"-I{SOURCE}"]
    subprocess.run([COMPILER, *flags, HERE / "places_driver.cpp", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    tuples = (), (0,), (3, 3), (1, 20, 300)
    hashed = [reference.hashed_column(each, 1000, seed=7) for each in tuples]
    assert done.stdout.split() == [str(number) for pair in hashed for number in pair]
