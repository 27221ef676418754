"""Host an agent that speaks ACP: start it, show what it does, and serve its files, commands and questions.

open_hosted.py → handshake.py → hosted.py: the agent's process, and its session with the verbs of a task
agent ⇄ RpcPeer ⇄ agent_client.py ─ agent_terminals.py, agent_permission.py (judged, asked, done)
                                  └ version_two.py → translate.py (its updates become events and signals of a task)
bridge_server.py ⇄ bridge.py: an MCP server that gives our terminals to this agent alone
"""
