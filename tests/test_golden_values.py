"""What must be the same on every platform, to the last bit. `make portable` tries more of them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNELS = HERE.parent / "src" / "kernels"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("lacking", [[], ["-DPOLYSPARSE_WITHOUT_FROM_CHARS"]], ids=len)
def test_hashes_and_numbers_in_text_have_their_bits(tmp_path, lacking):
    program = tmp_path / "golden"
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS}", *lacking]
    sources = HERE / "golden_driver.cpp", KERNELS / "text" / "svmlight_writer.cpp"
    subprocess.run([COMPILER, *flags, *sources, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(" passed, 0 failed\n")
