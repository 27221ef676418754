"""Tarmac hosts an agent that speaks ACP: starts it, shows what it does, and serves its files, commands and questions.

open.py ─ agent_process.py ─ handshake.py (who it is, its session) → hosted.py, a task's verbs ─ turns.py
its process ⇄ Peer ⇄ client.py ─ files.py, terminals.py, permission.py, forms.py (judged, asked, done)
                               └ translate.py (its updates → events and signals of a task)
bridge_server.py ⇄ bridge.py: our own terminals, for the agent alone, as the MCP server that its session is given
"""
