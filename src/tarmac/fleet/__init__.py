"""Terminals on other machines and in containers, with the interface of those in this process.

    async with open_terminals("ssh://build.example.org") as terminals:
        async with terminals.lease(cwd="/srv/app") as terminal:
            result = await terminal.run("make test")

address → Transport → PlaceConnection ⇄ Host (carried there) → RemoteMachine → Pool
"""

from tarmac.fleet.open_address import open_machine, open_terminals
from tarmac.fleet.remote_terminal import RemoteMachine
from tarmac.fleet.transport import CommandTransport, Transport, UnixTransport

__all__ = ["CommandTransport", "RemoteMachine", "Transport", "UnixTransport", "open_machine", "open_terminals"]
