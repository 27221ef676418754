"""`python -m tarmac.terminals.host`: see host.py."""

import sys

from tarmac.terminals.host.host import main

sys.exit(main(sys.argv[1:]))
