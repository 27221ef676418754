"""Terminals on other machines and in containers, with the interface of those in this process.

    async with open_terminals("ssh://build.example.org") as terminals:
        async with terminals.lease(cwd="/srv/app") as terminal:
            result = await terminal.run("make test")

address → Transport → PlaceConnection ⇄ Host (carried there) → RemoteMachine → Pool
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tarmac.fleet.open_address import open_machine, open_terminals
    from tarmac.fleet.remote_terminal import RemoteMachine
    from tarmac.fleet.transport import CommandTransport, Transport, UnixTransport

__all__ = ["CommandTransport", "RemoteMachine", "Transport", "UnixTransport", "open_machine", "open_terminals"]

_HOMES = {
    "CommandTransport": "transport",
    "RemoteMachine": "remote_terminal",
    "Transport": "transport",
    "UnixTransport": "transport",
    "open_machine": "open_address",
    "open_terminals": "open_address",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tarmac.fleet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tarmac.fleet.{_HOMES[name]}"), name)
