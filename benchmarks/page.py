"""Run benchmarks, and put what each of them prints into its section of docs/speed.md.

The table of bench_accuracy.py goes into README.md, too.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "speed.md"
README = HERE.parent / "README.md"
IN_README = "bench_accuracy.py"
SCRIPTS = [
    f"bench_{name}.py"
    for name in (
        "core",
        "threads",
        "columns",
        "groups",
        "tables",
        "products",
        "search",
        "significance",
        "models",
        "losses",
        "solvers",
        "bootstrap",
        "online",
        "ridge",
        "cv",
        "sparse",
        "accuracy",
        "files",
    )
]


def main() -> None:
    """Run all benchmarks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=f"of {', '.join(SCRIPTS)}")
    for script in parser.parse_args().scripts or SCRIPTS:
        command = [sys.executable, HERE / script, "--markdown"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(done.stdout, flush=True)
        write_into(PAGE, script, done.stdout)
        if script == IN_README:
            write_into(README, script, done.stdout[done.stdout.index("|") :])  # without versions


def write_into(page: Path, script: str, output: str) -> None:
    """Put the output of a script into its section of a page."""
    page.write_text(with_section(page.read_text(), script, output, date.today()))


def with_section(page: str, script: str, output: str, day: date) -> str:
    """Return the page with this output, and its day, between the marks of the script."""
    section = rf"(<!-- {re.escape(script)} -->\n).*?(<!-- end -->\n)"
    if len(re.findall(section, page, re.DOTALL)) != 1:
        raise ValueError(f"There is no place for {script}: <!-- {script} --> ... <!-- end -->")
    start = "\n\n" if output.startswith("|") else " "
    text = f"\nMeasured on {day}.{start}{output.strip()}\n\n"
    return re.sub(section, lambda marks: f"{marks[1]}{text}{marks[2]}", page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
