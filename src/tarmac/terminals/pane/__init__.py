"""A pane: a terminal for callers that type keys and look at the screen, as with tmux. Nobody has to sleep for an end.

In: keys, and the longest time to wait. Out: the new text, and whether the shell is back, busy or asking something.
`pane.py` is the pane. `pane_server.py` keeps one behind a socket for callers that come and go.
"""
