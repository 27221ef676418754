"""Tarmac's terminals for Harbor.

harbor run --agent tarmac_harbor:TarmacTerminus   Terminus-2, with a Tarmac terminal in place of tmux
harbor run --agent tarmac_harbor:TarmacAgent      Tarmac's own agent, installed in the environment
harbor run --env tarmac_harbor:Bubblewrap         an environment without a container runtime, for trying things out
"""

from tarmac_harbor.agent import TarmacAgent
from tarmac_harbor.bubblewrap import Bubblewrap
from tarmac_harbor.pane_session import PaneSession
from tarmac_harbor.terminus import TarmacTerminus

__all__ = ["Bubblewrap", "PaneSession", "TarmacAgent", "TarmacTerminus"]
