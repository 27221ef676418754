"""Servers on the loopback interface: their socket, their HTTP, and whose process is on the other end.

listen.py       a listening socket
http_server.py  uvicorn, with limits on what strangers may take up
peer.py         whether a connection comes from a process that runs in one of our terminals
"""
