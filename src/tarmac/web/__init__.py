"""The server of the page. It turns messages of a browser into verbs of tasks and terminals (docs/web.md).

guard.py      who may use the server at all: Host, Origin, content type, no process of an agent
access.py     one-time tokens, and the proofs that browsers get for them
api.py        HTTP: lists, timelines, settings; static_files.py: the page itself
page_connection.py  one page's WebSocket; verbs.py: what it may say; viewer.py: a terminal that it watches
state.py      what all pages share: open tasks, terminals, who has which keyboard
feed.py       one task's records and timeline, for the pages that follow it; open_task.py: a task that runs here
shapes.py     PURE: tasks, questions, items and terminals as JSON
server.py     puts it together; run_file.py: how a second `tarmac web` finds the first
"""
