"""Tools of MCP servers: which servers there are, a connection to each, and the two tools that a model calls.

read_definitions(workspace, user_folder) → ServerDefinition …      mcp_servers.toml, and files of other programs
Hub(definitions).connect(name) → ServerConnection                  starts a server when it is first used

definition.py     what a file says of a server
hub.py            all servers of a task, their pins, and a connection to each through the SDK's client
sign_in.py        OAuth: tokens, and the redirect to this machine
use_mcp_tool.py   use_mcp_tool, access_mcp_resource
"""

from tarmac.tools.servers.definition import ServerDefinition, read_definitions
from tarmac.tools.servers.hub import Hub

__all__ = ["Hub", "ServerDefinition", "read_definitions"]
