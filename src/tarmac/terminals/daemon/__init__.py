"""Terminals that outlive the program: a small process per user is the parent of their shells.

    program ── connection (one a terminal) ──→ daemon ──fork──→ shell
       │  ←──── PTY master, journal's pipe (SCM_RIGHTS) ────┘
       └── reads and writes the PTY itself, through the journal

process.py           the daemon: its loop, its requests, its time to live
attached_client.py   a program, as the daemon sees it
kept_shell.py        one shell in it: fork, wait status, draining
peers.py             who may talk to it: never a process that an agent's shell started
journal.py           what a PTY printed, on disk before anybody reads it
daemon_requests.py   the kinds of frames
connection.py        the program's end of a connection; starts the daemon on demand
kept_pty.py          the PTY of a shell that the daemon forked
terminal_records.py  the stored facts about a terminal and its commands
kept_terminal.py     a terminal whose shell the daemon keeps
takeover.py          list, attach, restore

The daemon's half imports neither asyncio nor pathlib, so the daemon stays under 15 MB.
"""
