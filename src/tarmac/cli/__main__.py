"""`python -m tarmac.cli`: the same as the command `tarmac`."""

import sys

from tarmac.cli import main

if __name__ == "__main__":
    sys.exit(main())
