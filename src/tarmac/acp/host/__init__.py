"""Tarmac hosts an agent that speaks ACP: starts it, shows what it does, and serves its files, commands and questions.

launch.py (its process) ⇄ Peer ⇄ client.py ─ files.py, terminals.py, permission.py (judged, asked, done)
                                           └ telling.py (its updates → events and signals of a task) → hosted.py
"""
