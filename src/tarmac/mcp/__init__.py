"""The MCP door: any MCP client gets Tarmac's terminals, and every command is judged first (A3).

adapter.py     the `mcp` SDK's server: both eras of the protocol become calls of the door; beside it only these know
               the SDK: caller.py (who calls, and how they are asked), pipes.py (messages on a pair of pipes)
door.py        one call: read → judge → ask → run → tell, within 50 seconds
permission.py  who may say yes: the policy, the person's level of trust, the person through their client
catalog.py     the tools, their schemas and annotations    results.py  what came of a call, as data
outputs.py     all that commands printed, as resources      progress.py  the last lines, while a command runs
record.py      what clients did, as a task's log: the audit log
framing.py     PURE: bytes into lines                       gate.py  who may speak HTTP with us
sessions.py    clients' sessions over HTTP, and their end    serving.py  HTTP itself, with limits
"""
