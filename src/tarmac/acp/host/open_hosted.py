"""Start an agent, meet it, and get a session from it, new or of before; with our terminals over MCP.

async with open_hosted(app, ["some-agent", "--acp"], attended=True) as hosted:
    await hosted.say("make the tests pass")
    ended = await hosted.run_until_idle()
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import tarmac
from tarmac.acp.host import handshake, version_two
from tarmac.acp.host.bridge_server import BridgeServer, unavailable
from tarmac.acp.host.hosted import HostedTask, Lent
from tarmac.acp.host.parameters import Object
from tarmac.acp.wire import AUTH_REQUIRED
from tarmac.app import App
from tarmac.errors import BadRequest, DirectoryUnavailable, PeerRefused
from tarmac.models.provider import Chunk, Load, ModelInfo, Prompt
from tarmac.tasks import events as e
from tarmac.tasks.context import now
from tarmac.tasks.state import TaskState

T = TypeVar("T")
Lend = Callable[[HostedTask], Lent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a person wants of an agent when it begins."""

    name: str = ""  # of an agent that does not say its own; empty: that of its program
    auth: str = ""  # the login to use
    mode: str = ""  # one of the agent's own
    resume: str = ""  # the task of before to go on with
    once: bool = False  # it is done after its first turn
    only_our_terminals: bool = True  # its own shell is switched off, where it can be
    patience: float = 120.0  # seconds for each of its answers until it works
    version: int = 1  # of the protocol that it is offered; 2 is a draft


@asynccontextmanager
async def open_hosted(
    app: App,
    argv: Sequence[str],
    *,
    attended: bool,
    wishes: Wishes | None = None,
    lend: Lend | None = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[HostedTask]:
    """The agent, started, with a session in the app's workspace; `lend`: it gets our terminals over MCP as well."""
    wishes, environ = wishes or Wishes(), os.environ if environ is None else environ
    began, task = bool(wishes.resume), None
    try:
        async with _state(app, wishes.resume, attended=attended) as state:
            task = state.context.task
            hosted = HostedTask(
                state, argv, once=wishes.once, patience=wishes.patience, environ=environ, name=wishes.name
            )
            try:
                hosted.lent = lend(hosted) if lend else None
                if hosted.lent is not None:
                    await _open_bridge(hosted, hosted.lent, environ)
                await _begin(hosted, wishes)
                began = True
                yield hosted
            finally:
                await hosted.aclose()
    finally:
        if task is not None and not began:  # there is nothing to remember
            await app.store.delete(task)


def _state(app: App, resume: str, *, attended: bool) -> AbstractAsyncContextManager[TaskState]:
    if resume:
        return app.resume_hosted(resume, _Nobody(), attended=attended)
    return app.create_hosted(_Nobody(), attended=attended)


async def _open_bridge(hosted: HostedTask, lent: Lent, environ: Mapping[str, str]) -> None:
    bridge = BridgeServer(lent.serve, hosted.note, environ=environ)
    try:
        await bridge.open(hosted.agent.pid)
    except (OSError, DirectoryUnavailable) as error:
        await bridge.aclose()
        hosted.note(unavailable(error))
    else:
        hosted.bridge = bridge


async def _begin(hosted: HostedTask, wishes: Wishes) -> None:
    """initialize, log in, a session, its mode."""
    hosted.state.add(e.TaskStarted(at=now(), pid=os.getpid(), version=tarmac.__version__))
    hosted.met = met = await handshake.meet(hosted.ask, hosted.name, offered=wishes.version)
    if met.version == version_two.NUMBER:
        hosted.client.version_two = version_two.VersionTwo()
    hosted.peer.name = hosted.client.agent = hosted.client.permission.agent = met.name
    if hosted.lent is not None and hosted.bridge is not None:
        hosted.lent.prepare()
    folder = hosted.state.context.workspace
    if wishes.auth:
        await handshake.log_in(hosted.ask, met, wishes.auth)
    only = wishes.only_our_terminals
    if not wishes.resume:
        session = await _with_servers(
            hosted, lambda servers: handshake.new_session(hosted.ask, met, folder, servers, only_ours=only)
        )
    else:
        session = _session_of(hosted)
        with hosted.client.deaf():  # what the agent tells of it anew is in the log already
            await _with_servers(
                hosted, lambda servers: handshake.old_session(hosted.ask, met, session, folder, servers, only_ours=only)
            )
    if wishes.mode:
        await handshake.set_mode(hosted.ask, met, session, wishes.mode)
    hosted.has_session(session)
    await hosted.state.context.log.append(e.AgentHosted(at=now(), name=met.name, session=session))


def _session_of(hosted: HostedTask) -> str:
    """What the agent called the task when it worked on it before."""
    how = f"`tarmac tasks show {hosted.id}` tells what was done in it"
    if not hosted.metadata.session:
        raise BadRequest(f"no hosted agent has a session of the task {hosted.id}", hint=how)
    if not hosted.met.resumes:
        raise BadRequest(f"{hosted.name} can't continue an earlier session", hint=how)
    return hosted.metadata.session


async def _with_servers(hosted: HostedTask, ask: Callable[[list[Object]], Awaitable[T]]) -> T:
    """With our MCP server; an agent that takes none gets its session all the same."""
    if hosted.bridge is None:
        return await ask([])
    try:
        return await ask([hosted.bridge.entry()])
    except PeerRefused as error:
        if error.code == AUTH_REQUIRED:
            raise
        given = await ask([])
        hosted.note(f"the agent does not take Tarmac's terminals over MCP: {error.what}")
        return given


class _Nobody:
    """No model is asked here: the agent has its own."""

    info = ModelInfo(id="hosted/agent")

    async def stream(self, prompt: Prompt, *, load: Load) -> AsyncGenerator[Chunk, None]:
        raise BadRequest("a hosted agent has a model of its own")
        yield  # makes it a generator

    async def aclose(self) -> None:
        pass
