"""The Agent Client Protocol, both ways: an editor drives Tarmac's tasks, and Tarmac hosts other agents.

bytes ⇄ wire.py (lines of JSON-RPC) ⇄ rpc_peer.py (who asked what; in order) ⇄ the verbs of Task and TerminalRegistry
"""
