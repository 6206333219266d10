"""Run as ``python -m polysparse``."""

import sys

from polysparse.cli import main

if __name__ == "__main__":
    sys.exit(main())
