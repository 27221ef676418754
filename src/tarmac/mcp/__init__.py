"""The MCP door: any MCP client gets Tarmac's terminals, and every command is judged first (A3).

adapter.py     the `mcp` SDK's server: both eras of the protocol become calls of the door; beside it only these know
               the SDK: caller.py (who calls, and how they are asked), pipes.py (messages on a pair of pipes)
door.py        one call, within 50 seconds                  client.py  what the door knows of who calls
workspace.py   a workspace with its terminals: each call through the pipeline (tarmac.calls)
asker.py       asks the person through their client         recorder.py  what clients did, as a task's log
catalog.py     the tools, their schemas and annotations     results.py  what came of a call, as data
outputs.py     all that commands printed, as resources      progress.py  the last lines, while a command runs
framing.py     PURE: bytes into lines                       gate.py  who may speak HTTP with us
sessions.py    clients' sessions over HTTP, and their end   serving.py  HTTP itself, with limits
own.py         tools that only MCP clients get
"""
