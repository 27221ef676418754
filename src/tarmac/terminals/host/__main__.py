"""`python -m tarmac.terminals.host`: see process.py."""

import sys

from tarmac.terminals.host.process import main

sys.exit(main(sys.argv[1:]))
