"""A running app that every door can join: verbs come in, events go out (docs/server.md).

running_app.py     the open tasks of this process, its terminals, and the clients that look on
open_task.py       a task that is open here, and how it runs
served_client.py   one client: a page, or a door in another process
verbs.py           what it may say · shapes.py: PURE: tasks, questions, items and terminals as JSON
feed.py            one task's facts and signals, for those that follow it
live_terminals.py  the terminals, and who has which keyboard · viewer.py: a terminal that a client watches
unix_socket.py     the private socket of this process, and the way to that of another one
app_connection.py  a connection to the app of another process
joined_task.py     a task of another process, as if it were open here · joined_terminal.py: one of its terminals
"""
