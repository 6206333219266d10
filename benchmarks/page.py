"""Run benchmarks, and put what each of them prints into its section of docs/speed.md."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "speed.md"
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
        "models",
        "losses",
        "solvers",
        "bootstrap",
        "online",
        "ridge",
        "cv",
        "sparse",
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
        PAGE.write_text(with_section(PAGE.read_text(), script, done.stdout, date.today()))


def with_section(page: str, script: str, output: str, day: date) -> str:
    """Return the page with this output, and its day, between the marks of the script."""
    section = rf"(<!-- {re.escape(script)} -->\n).*?(<!-- end -->\n)"
    if len(re.findall(section, page, re.DOTALL)) != 1:
        raise ValueError(f"{PAGE} has no place for {script}: <!-- {script} --> ... <!-- end -->")
    text = f"\nMeasured on {day}. {output.strip()}\n\n"
    return re.sub(section, lambda marks: f"{marks[1]}{text}{marks[2]}", page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
