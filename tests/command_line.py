"""The command line, run within this process, and a small input for it."""

from polysparse import cli

GOOD = b"1 1:2 3:4\n0 2:0.5\n"


def run(*arguments):
    """Run a command and return its exit code."""
    return cli.main([str(a) for a in arguments])
