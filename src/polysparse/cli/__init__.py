"""The command line: a file per command, the program, and the options that commands share.

Only this package uses argparse, flags and the terminal. Uses `stream`, `files` and `paper`.
"""

from polysparse.cli.program import main as main
