"""Start a session with an agent: initialize, log in if told how, open or load a session, set the mode.

The agent's capabilities are what it declares, as far as that makes sense. Anything that it does not declare is missing.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import tarmac
from tarmac.acp.host import version_two
from tarmac.acp.host.agent_client import CAPABILITIES
from tarmac.acp.host.parameters import Object, object_of, objects_of, text_of, whole_of
from tarmac.acp.wire import AUTH_REQUIRED
from tarmac.errors import BadRequest, PeerRefused

Request = Callable[[str, Object], Awaitable[object]]

VERSION: Final = 1
LONGEST_NAME: Final = 80


@dataclass(slots=True)
class Met:
    """What an agent says of itself."""

    name: str
    version: int = 1  # of the protocol
    images: bool = False
    resumes: str = ""  # the method that continues an earlier session
    logins: tuple[str, ...] = ()
    modes: "list[AgentMode]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AgentMode:
    """One that a session can be in."""

    id: str
    name: str
    option: str = ""  # the config option that sets it; empty: session/set_mode does


async def meet(request: Request, name: str, *, offered: int = VERSION) -> Met:
    """initialize: who it is, and what it can do. An agent that is offered version 2 may still answer with 1."""
    info = {"name": "tarmac", "title": "Tarmac", "version": tarmac.__version__}
    offer: Object = {"protocolVersion": offered, "clientCapabilities": CAPABILITIES, "clientInfo": info}
    if offered == version_two.NUMBER:
        offer |= {"info": info, "capabilities": {"elicitation": CAPABILITIES["elicitation"]}}
    answer = object_of(await request("initialize", offer))
    if offered == version_two.NUMBER and "agentCapabilities" not in answer and isinstance(answer.get("info"), dict):
        return _met_in_version_two(answer, name)
    _check_version(answer, name)
    told = object_of(answer.get("agentInfo"))
    name = text_of(told.get("title")) or text_of(told.get("name")) or name
    version = text_of(told.get("version"))
    able = object_of(answer.get("agentCapabilities"))
    found = Met(" ".join(f"{name} {version}".split())[:LONGEST_NAME])
    found.images = object_of(able.get("promptCapabilities")).get("image") is True
    if isinstance(object_of(able.get("sessionCapabilities")).get("resume"), dict):
        found.resumes = "session/resume"
    elif able.get("loadSession") is True:
        found.resumes = "session/load"
    logins = (text_of(each.get("id")) for each in objects_of(answer.get("authMethods")))
    found.logins = tuple(filter(None, logins))
    return found


def _met_in_version_two(answer: Object, name: str) -> Met:
    """An agent that speaks the draft: resuming is part of it."""
    told = object_of(answer.get("info"))
    name = text_of(told.get("title")) or text_of(told.get("name")) or name
    prompt = object_of(object_of(object_of(answer.get("capabilities")).get("session")).get("prompt"))
    return Met(
        " ".join(f"{name} {text_of(told.get('version'))}".split())[:LONGEST_NAME],
        version=version_two.NUMBER,
        images=isinstance(prompt.get("image"), dict),
        resumes="session/resume",
        logins=tuple(filter(None, (text_of(each.get("id")) for each in objects_of(answer.get("authMethods"))))),
    )


def _check_version(answer: Object, name: str) -> None:
    """By its shape: some agents say 2 and speak 1."""
    version = whole_of(answer.get("protocolVersion"))
    if version == VERSION or "agentCapabilities" in answer:
        return
    if version is None:
        raise PeerRefused(f"{name} answered initialize without a protocolVersion, so it does not speak ACP")
    raise PeerRefused(f"{name} speaks version {version} of ACP only; Tarmac speaks {VERSION}")


async def log_in(request: Request, met: Met, method: str) -> None:
    """authenticate, by a method that the agent knows."""
    if met.logins and method not in met.logins:
        raise BadRequest(f"{met.name} has no login `{method}`", hint=f"it has: {', '.join(met.logins)}")
    try:
        await request("authenticate" if met.version == VERSION else "auth/login", {"methodId": method})
    except PeerRefused as error:
        raise PeerRefused(f"the login `{method}` failed: {error.what}", hint=error.hint, code=error.code) from None


# How agents are told to leave their own shell alone. Others ignore what they don't know.
NO_OWN_SHELL: Final[Object] = {"claudeCode": {"options": {"disallowedTools": ["Bash"]}}}


async def new_session(
    request: Request, met: Met, folder: Path, servers: list[Object], *, only_ours: bool = False
) -> str:
    """session/new; what it is called. With `only_ours`, and terminals of ours to use, it has no shell of its own."""
    given = await _session(request, met, "session/new", _offer(met, folder, servers, only_ours))
    if not (session := text_of(given.get("sessionId"))):
        raise PeerRefused(f"{met.name} gave no session: it answered session/new without a sessionId")
    return session


async def old_session(
    request: Request, met: Met, session: str, folder: Path, servers: list[Object], *, only_ours: bool = False
) -> None:
    """session/resume, or session/load where that is all there is; as `new_session` otherwise."""
    await _session(request, met, met.resumes, {"sessionId": session, **_offer(met, folder, servers, only_ours)})


def _offer(met: Met, folder: Path, servers: list[Object], only_ours: bool) -> Object:
    """What every session gets: its folder, our servers, and whether its own shell is to be left alone."""
    typed = servers if met.version == VERSION else [{"type": "stdio", **each} for each in servers]  # 2 wants a type
    offer: Object = {"cwd": str(folder), "mcpServers": typed}
    return offer | {"_meta": NO_OWN_SHELL} if only_ours and servers else offer


async def _session(request: Request, met: Met, method: str, params: Object) -> Object:
    try:
        given = object_of(await request(method, params))
    except PeerRefused as error:
        if error.code != AUTH_REQUIRED:
            raise
        known = f", or --auth with one of: {', '.join(met.logins)}" if met.logins else ""
        hint = f"log in with the agent's own command first{known}"
        raise PeerRefused(f"{met.name} wants you to log in", hint=hint, code=error.code) from None
    met.modes = _modes(given)
    return given


def _modes(given: Object) -> list[AgentMode]:
    """As session/set_mode knows them, or a config option; agents are to send both for now."""
    plain = objects_of(object_of(given.get("modes")).get("availableModes"))
    if plain:
        found = [AgentMode(text_of(each.get("id")), text_of(each.get("name"))) for each in plain]
        return [each for each in found if each.id]
    for option in objects_of(given.get("configOptions")):
        if option.get("category") == "mode" and option.get("type") == "select":
            values = objects_of(option.get("options"))
            values += [each for group in values for each in objects_of(group.get("options"))]
            found = [AgentMode(text_of(v.get("value")), text_of(v.get("name")), _option_id(option)) for v in values]
            return [each for each in found if each.id and each.option]
    return []


def _option_id(option: Object) -> str:
    return text_of(option.get("id")) or text_of(option.get("configId"))


async def set_mode(request: Request, met: Met, session: str, wanted: str) -> None:
    """The agent's mode of that id or name."""
    known = ", ".join(each.id for each in met.modes)
    fit = [each for each in met.modes if each.id == wanted]
    fit = fit or [each for each in met.modes if wanted.lower() in (each.id.lower(), each.name.lower())]
    if not fit:
        hint = f"it has: {known}" if known else "start it without --mode"
        raise BadRequest(f"{met.name} has no mode `{wanted}`", hint=hint)
    mode = fit[0]
    if mode.option:
        choice: Object = {"sessionId": session, "configId": mode.option, "value": mode.id}
        await request("session/set_config_option", choice if met.version == VERSION else {**choice, "type": "id"})
    else:
        await request("session/set_mode", {"sessionId": session, "modeId": mode.id})
