"""The host: a process that runs terminals for a program on another machine, over any stream of bytes.

ByteStream ─ frames → Host.serve() → HostSession, one for each client → its terminals
                                    ← replies, events, output by offset

Tarmac sends this package to the other machine, with `tarmac.terminals` and the packages below. Standard library only.
"""
