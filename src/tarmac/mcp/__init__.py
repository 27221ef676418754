"""The MCP server: any MCP client gets Tarmac's terminals, and every command is judged first.

adapter.py        the server of the `mcp` SDK
pipes.py          bytes into messages, on a pair of pipes; only it and adapter.py know the SDK
tool_server.py    one call, within 50 seconds
client.py         who calls, what the client can do, and what it is told while a command runs
workspace.py      a workspace with its terminals; each call goes through the pipeline (tarmac.calls)
client_asker.py   asks the person through their client
recorder.py       what clients did, as the log of a task
catalog.py        the tools, their schemas and annotations
secret_page.py    a page on this machine where the person types a secret
resources.py      all that commands printed, and screens, as resources; which of them changed
http.py           who may use the HTTP server; sessions of clients over HTTP, and their end
"""
