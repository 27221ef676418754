"""Roo-Code's modes and MCP servers: taken into the person's own folder, and given back as Roo-Code's files."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tarmac.cli.export import write_whole
from tarmac.errors import BadRequest, FileUnavailable
from tarmac.paths import config_dir

MODES: Final = ("custom_modes.yaml", "custom_modes.json", "cline_custom_modes.json")  # newest name first
SERVERS: Final = ("mcp_settings.json", "cline_mcp_settings.json")
LARGEST: Final = 4 << 20
STARTED: Final = "tasks can use them; a server is started when it is first needed (`tarmac mcp-servers`)"


def settings_of(folder: Path) -> Path | None:
    """The folder of settings that belongs to `folder`, which has tasks, or is one, or has settings itself."""
    for place in (folder / "settings", folder, folder.parent / "settings", folder.parent.parent / "settings"):
        if any((place / name).is_file() for name in (*MODES, *SERVERS)):
            return place
    return None


def take_settings(place: Path) -> Iterator[dict[str, object]]:
    """Take in what is there; a record for each mode and for the servers."""
    own = config_dir(os.environ)
    for name in MODES:
        if (place / name).is_file():
            yield from _take_modes(place / name, own)
            break
    for name in SERVERS:
        if (place / name).is_file():
            yield _take_servers(place / name, own / SERVERS[0])
            break


def give_settings(to: Path, *, force: bool) -> list[Path]:
    """Write the modes and servers of the person as Roo-Code's files into `to`; which were written."""
    from tarmac.prompts.mode import roo_text
    from tarmac.prompts.modes import load_modes

    own = config_dir(os.environ)
    modes = [each for each in load_modes(to, own).all if each.source == "user"]
    texts = {MODES[0]: roo_text(modes)} if modes else {}
    if (servers := _read(own / SERVERS[0])) is not None:
        texts[SERVERS[0]] = servers
    if not texts:
        raise BadRequest(f"there are no modes and no MCP servers in {own}")
    for name in texts:
        if (to / name).exists() and not force:
            raise BadRequest(f"{to / name} already exists", hint="--force overwrites it")
    return [_written(to / name, text) for name, text in texts.items()]


def _take_modes(file: Path, own: Path) -> Iterator[dict[str, object]]:
    from tarmac.prompts.mode import mode_text
    from tarmac.prompts.modes import built_in, load_modes, read_roo_modes

    found = read_roo_modes(file)
    mine = {each.slug for each in load_modes(file.parent, own).all if each.source == "user"}
    for mode in found.all:
        path = own / "modes" / f"{mode.slug}.md"
        if mode.slug in mine or path.exists():
            yield {"mode": mode.slug, "taken": False, "title": "a mode of that name is here already"}
            continue
        _written(path, mode_text(mode))
        over = ", in place of the one that is built in" if mode.slug in {each.slug for each in built_in()} else ""
        yield {"mode": mode.slug, "taken": True, "title": f"{path}{over}"}
    for trouble in found.trouble:
        yield {"mode": None, "taken": False, "error": trouble}


def _take_servers(file: Path, path: Path) -> dict[str, object]:
    text = _read(file) or ""
    try:
        found = json.loads(text)
        servers = found.get("mcpServers") if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        servers = None
    if not isinstance(servers, dict):
        return {"servers": [], "taken": False, "error": f"{file} holds no MCP servers"}
    known: dict[str, object] = {"servers": list(servers), "names": ", ".join(map(str, servers)) or "none"}
    if not servers:
        return known | {"taken": False, "title": "there are none in it"}
    if (mine := _read(path)) is not None:
        same = "the same are here already" if mine == text else f"{path} is there already, and another: it stays"
        return known | {"taken": False, "title": same}
    _written(path, text)
    return known | {"taken": True, "title": f"{path}; {STARTED}"}


def _read(path: Path) -> str | None:
    try:
        if path.stat().st_size > LARGEST:
            raise FileUnavailable(f"{path} is larger than {LARGEST >> 20} MiB")
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnavailable(f"{path} can't be read: {error.strerror}") from None


def _written(path: Path, text: str) -> Path:
    """For the person alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise FileUnavailable(f"{path} can't be written: {error.strerror}") from None
    write_whole(path, text)
    return path
