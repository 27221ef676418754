"""A running app that every front end can join: verbs come in, events go out (docs/server.md).

running_app.py     the open tasks of this process, its terminals, and the clients that look on
open_task.py       a task that is open here, how it runs, and its facts and signals for those that follow it
served_client.py   one client: a page, or a front end in another process
verbs.py           what it may say · shapes.py: PURE: tasks, questions, items and terminals as JSON
live_terminals.py  the terminals, who has which keyboard, and what each client watches
unix_socket.py     the private socket of this process, and a connection to the app of another one
joined_task.py     a task of another process, as if it were open here · joined_terminal.py: one of its terminals
"""
