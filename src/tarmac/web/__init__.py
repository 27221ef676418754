"""The server of the page, for browsers of this machine (docs/web.md). What it shows is `tarmac.server`'s.

guard.py      who may use the server: Host, Origin, content type, no process of an agent; tokens and proofs
api.py        HTTP: lists, timelines, settings
server.py     puts it together, and a page's WebSocket; run_file.py: how a second `tarmac web` finds the first
"""
