"""Open terminals by the address of a place."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tarmac.errors import BadRequest, PlaceUnavailable, Trouble
from tarmac.fleet.place_files import PlaceFiles
from tarmac.fleet.remote_terminal import RemoteMachine
from tarmac.fleet.transport import CommandTransport, Transport, UnixTransport, exec_transport, ssh_transport
from tarmac.terminals.host.host import TIME_TO_LIVE
from tarmac.terminals.host.wire_values import text
from tarmac.terminals.open import Machine, ThisMachine
from tarmac.terminals.pool import Pool
from tarmac.terminals.settings import Settings

EXAMPLES = "local:, unix:, ssh://user@host:22, docker://container, podman://container, kubectl://namespace/pod"
OPTIONS = ("python", "option")
WITHOUT_PYTHON = (Trouble.NO_PYTHON, Trouble.OLD_PYTHON)


@asynccontextmanager
async def open_terminals(place: str | Transport, *, settings: Settings | None = None) -> AsyncIterator[Pool]:
    """A pool whose terminals are at `place`: an address, or a transport. Leaving the block ends them.

    PlaceUnavailable when it can't be reached or used.
    """
    async with open_machine(place) as machine, Pool(settings, machine=machine) as pool:
        yield pool


@asynccontextmanager
async def open_machine(place: str | Transport, *, time_to_live: float = TIME_TO_LIVE) -> AsyncIterator[Machine]:
    """The same without a pool. Terminals end there when nobody was connected for `time_to_live` seconds."""
    if isinstance(place, str) and place.startswith("ray://"):
        from tarmac.fleet.cluster import open_ray

        async with open_ray(place.removeprefix("ray://").rstrip("/")) as cluster:
            yield cluster
        return
    transport = parse_place(place) if isinstance(place, str) else place
    if transport is None:
        yield ThisMachine()
        return
    async with AsyncExitStack() as stack:
        machine: Machine
        try:
            machine = await stack.enter_async_context(RemoteMachine(transport, time_to_live=time_to_live))
        except PlaceUnavailable as error:
            relayed = isinstance(transport, CommandTransport) and transport.tty_argv and not transport.python
            if not relayed or error.trouble not in WITHOUT_PYTHON:
                raise
            assert isinstance(transport, CommandTransport)
            from tarmac.fleet.relay import RelayMachine

            machine = await stack.enter_async_context(RelayMachine(transport, error))
        yield machine


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingPlace:
    """Where a task works: its terminals and its files are there."""

    name: str  # its address
    machine: RemoteMachine
    files: PlaceFiles
    home: Path
    system: str  # "Linux"

    @property
    def own(self) -> list[Path]:
        """What Tarmac keeps there."""
        return [self.home / ".cache/tarmac"]


@asynccontextmanager
async def open_place(place: str | Transport) -> AsyncIterator[WorkingPlace | None]:
    """Terminals and files at `place`. None for `local:`, which is this machine."""
    if isinstance(place, str) and place.startswith("ray://"):
        raise _no_files(place)
    async with open_machine(place) as machine:
        if isinstance(machine, ThisMachine):
            yield None
            return
        if not isinstance(machine, RemoteMachine):  # a relay
            raise PlaceUnavailable(
                f"{place} has no Python 3.11 or newer, so its files can't be worked on",
                trouble=Trouble.NO_PYTHON,
                hint="`tarmac exec --on` runs commands there; for files install Python 3.11 or newer there",
            )
        welcome = machine.connection.welcome
        yield WorkingPlace(
            name=place if isinstance(place, str) else machine.name,
            machine=machine,
            files=PlaceFiles(machine.connection),
            home=Path(text(welcome, "home", "/")),
            system=text(welcome, "system", ""),
        )


def parse_place(address: str) -> Transport | None:
    """PURE but for the folder of ssh's shared connections. The transport of an address; None: this process."""
    scheme, colon, rest = address.partition(":")
    if not colon or "\0" in address:
        raise _unknown(address)
    match scheme:
        case "local" if not rest:
            return None
        case "unix":
            return UnixTransport(Path(rest) if rest else None)
        case "ssh" | "docker" | "podman" | "kubectl" if rest.startswith("//"):
            return _remote(scheme, address)
        case "ray":
            raise _no_files(address)
    raise _unknown(address)


def _remote(scheme: str, address: str) -> Transport:
    try:
        parts = urlsplit(address)
        port = parts.port
        options = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    except ValueError as error:
        raise BadRequest(f"`{address}` is not the address of a place: {error}", hint=f"as in {EXAMPLES}") from None
    if unknown := [name for name in options if name not in OPTIONS]:
        raise BadRequest(f"a place has no option `{unknown[0]}`", hint=f"it has: {', '.join(OPTIONS)}")
    python = options.get("python", [""])[-1]
    # Not .hostname: that is lower case, and a container may be called otherwise.
    user, _, host = parts.netloc.rpartition("@")
    name = unquote(host.rpartition(":")[0] if port is not None else host.rstrip(":"))
    path = unquote(parts.path.strip("/"))
    if not name or name.startswith("-") or user.startswith("-") or path.startswith("-"):
        raise _unknown(address)
    if scheme == "ssh":
        if path:
            raise BadRequest(f"`{address}` has a folder", hint="give it as the working directory: --cwd, or cwd=")
        return ssh_transport(
            name.strip("[]"), user=unquote(user), port=port, options=options.get("option", []), python=python
        )
    if user or port is not None or (path and scheme != "kubectl"):
        raise _unknown(address)
    namespace, name = (name, path) if path else ("", name)
    return exec_transport(scheme, name, namespace=namespace, python=python)


def _no_files(cluster: str) -> BadRequest:
    return BadRequest(
        f"{cluster} is a cluster, and has no files to work on",
        hint="a task needs one machine or container; `tarmac exec --on` runs a command on a cluster",
    )


def _unknown(address: str) -> BadRequest:
    return BadRequest(f"`{address}` is not the address of a place", hint=f"as in {EXAMPLES}")
