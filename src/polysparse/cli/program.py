"""The program: its commands, its exit codes and its handling of signals."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from polysparse.cli import expand, fit, learn, names, paper, plan, predict, rank, terms, top
from polysparse.cli.options import Misuse
from polysparse.cli.parser import Parser
from polysparse.cli.streams import usable_streams
from polysparse.cli.wording import with_flags
from polysparse.files.errors import UnknownExtension, UnwritableTarget
from polysparse.stream.expand import RESUME_NOTE

MISUSE, FAILURE, SIGNALLED = 2, 1, 128

# Exit codes by what ends a command; the first that fits counts.
CODES: dict[type[BaseException], int] = {
    Misuse: MISUSE,
    UnwritableTarget: MISUSE,
    UnknownExtension: MISUSE,
    KeyboardInterrupt: SIGNALLED + signal.SIGINT,
    **dict.fromkeys((OSError, ValueError, MemoryError, ImportError), FAILURE),
}

# Modules by the names of their commands, in the order of the help.
COMMANDS: dict[str, Any] = {
    "plan": plan,
    "expand": expand,
    "names": names,
    "rank": rank,
    "top": top,
    "fit": fit,
    "learn": learn,
    "predict": predict,
    "terms": terms,
    "paper": paper,
}

EXAMPLES = """\
examples:
  polysparse fit people.csv --target income -o income.npz --plot variables.svg
      fit a model on all pairs of variables of a table, and draw how much each pair matters
  polysparse plan clicks.svmlight --degree 3
      print the size of an expansion
  polysparse expand clicks.svmlight clicks.parquet --degree 2 --no-bias
      expand a file into another file
  polysparse expand clicks.svmlight clicks --degree 3 --max-memory 4GiB --resume
      expand into a directory; X = polysparse.load("clicks") opens it in Python, memory-mapped
  polysparse expand train.svmlight train --observed --min-count 5
      only terms that occur in 5 or more rows; train.vocabulary lists them
  polysparse expand test.svmlight test --vocabulary train.vocabulary
      expand a test set into the same columns
  polysparse expand clicks.svmlight hashed --degree 3 --hashed 2^22
      hash all terms to 4,194,304 columns
  polysparse names train --columns 17,4711
      print which terms are in two columns
  polysparse top train.svmlight --degree 3 -k 50 --min-count 20 --plot top.svg
      find 50 interactions of up to 3 features, by correlation with the residuals of single features
  polysparse fit train.svmlight -o model.npz --model logistic -C 0.1 --test test.svmlight
      fit a model on all interactions, without storing the expansion
  polysparse fit train.svmlight -o pairs.npz --groups user=1000,item=500 --terms user:item
      fit a model on all pairs of a user and an item
  zcat clicks.gz | polysparse learn - -o clicks.npz --classes 0,1
      learn in one pass from rows as they arrive
  polysparse predict model.npz new.svmlight -o predictions.csv --proba
      write predictions, in bounded memory
  polysparse terms model.npz -n 10
      print the ten largest terms
"""


class Stopped(KeyboardInterrupt):
    """Raised on a signal other than SIGINT."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; a failure prints one line on standard error."""
    with usable_streams():
        return _run(list(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: list[str]) -> int:
    parser = make_parser(*arguments[:1])
    options = parser.parse_args(arguments, argparse.Namespace(arguments=arguments))
    try:
        with _stopping_cleanly():
            options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        return FAILURE
    except tuple(CODES) as error:
        text, code = _explain(error)
        text = f"polysparse: {with_flags(text)}"
        if RESUME_NOTE in getattr(error, "__notes__", ()):
            text = f"{text.rstrip('.')}. {with_flags(RESUME_NOTE)}: {_command_to_resume(arguments)}"
        recipes = [note for note in getattr(error, "__notes__", ()) if note != RESUME_NOTE]
        print(text, *recipes, sep="\n", file=sys.stderr)
        return code
    return 0


def _explain(error: BaseException) -> tuple[str, int]:
    """Return the message of an error and its exit code."""
    if isinstance(error, Stopped):
        return "stopped", SIGNALLED + error.args[0]
    code = next(code for kind, code in CODES.items() if isinstance(error, kind))
    text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    nameless = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return " ".join(text.split()) or nameless, code


def _command_to_resume(arguments: Sequence[str]) -> str:
    """Return the command that resumes the run of a command."""
    command, *rest = arguments
    if "--resume" not in rest:
        rest = ["--resume", *rest] if "--" in rest else [*rest, "--resume"]
    return shlex.join(["polysparse", command, *rest])


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that it can clean up."""

    def stop(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        raise Stopped(number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        changed = [n for n in numbers if n and signal.getsignal(n) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, stop)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command and its options, or of all commands.

    The options of all commands, and the version, take longer to find out than many commands run.
    """
    parser = Parser(
        prog="polysparse",
        description="Polynomial and interaction features of data in files, and linear models on "
        "them. polysparse COMMAND --help lists the options of a command.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if command not in COMMANDS:
        parser.add_argument("--version", action="version", version=version("polysparse"))
    commands = parser.commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in [command] if command in COMMANDS else COMMANDS:
        COMMANDS[name].add_to(commands)
    return parser
