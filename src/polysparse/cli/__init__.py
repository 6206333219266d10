"""The command line: one file a command, beside the program and the options that commands share.

The only room that knows argparse, flags and the terminal. Uses `stream`, `files` and `paper`.
"""

from polysparse.cli.program import main as main
