"""Servers on the loopback interface: their socket, their HTTP, and whose process is on the other end.

http_server.py  a listening socket, and uvicorn on it, with limits on what strangers may take up
peer.py         whether a connection comes from a process that runs in one of our terminals
"""
