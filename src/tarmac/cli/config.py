"""`tarmac config`: what is set, by whom, and whether it makes sense."""

import json
import os
from pathlib import Path

from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.parser import suggest
from tarmac.config import Config, load_config
from tarmac.config.config import ShownSetting, shown_settings
from tarmac.config.load import nearest_key, user_file, workspace_files
from tarmac.errors import BadRequest, ConfigError
from tarmac.paths import check_directory, config_dir

ACTIONS = {"show": "show", "path": "path", "check": "check"}
WIDEST = 60  # the column of the origins


def main(arguments: list[str]) -> int:
    """Show, path or check; the exit code."""
    options, words = parse_arguments("config", arguments)
    given = {name: values[-1] for name, values in options.items()}
    action, rest = (words[0], words[1:]) if words else ("show", [])
    if action not in ACTIONS:
        raise BadRequest(
            f"`{action}` is not a command of `tarmac config`", hint=suggest(action, ACTIONS) or "show, path, check"
        )
    if rest and action != "show":
        raise BadRequest(f"`config {action}` takes no `{rest[0]}`", hint="tarmac config show KEY shows one setting")
    workspace = check_directory(Path(given.get("workspace", ".")))
    if action == "path":
        return _path(workspace, json_wanted="json" in given)
    if action == "check":
        return _check(workspace, json_wanted="json" in given)
    return _show(load_config(workspace, os.environ), rest, changed="changed" in given, json_wanted="json" in given)


def _show(config: Config, names: list[str], *, changed: bool, json_wanted: bool) -> int:
    found = shown_settings(config)
    if names:
        found = [row for name in names for row in _named(found, name)]
    if changed:
        found = [row for row in found if row.origin.place != "default"]
    if json_wanted:
        print(json.dumps({"values": {row.key.name: _record(row) for row in found}, "notes": config.notes}))
        return 0
    width = min(WIDEST, max((len(str(row)) for row in found), default=0))
    for row in found:
        print(f"{row!s:<{width}}  {row.origin}")
    for note in config.notes:
        print(f"note: {note}")
    return 0


def _named(found: list[ShownSetting], name: str) -> list[ShownSetting]:
    """The setting of that name, or all of a table."""
    chosen = [row for row in found if row.key.name == name or row.key.name.startswith(f"{name}.")]
    if not chosen:
        close = nearest_key(name)
        raise BadRequest(
            f"there is no setting `{name}`", hint=f"did you mean `{close}`?" if close else "tarmac config show"
        )
    return chosen


def _record(row: ShownSetting) -> dict[str, object]:
    return {
        "value": row.value,
        "default": row.key.default if not isinstance(row.key.default, tuple) else list(row.key.default),
        "origin": {"place": row.origin.place, "where": row.origin.where, "line": row.origin.line},
        "about": row.key.about,
        "workspace": row.key.way.value if row.key.way else None,
        "variable": row.key.variable or None,
    }


def _path(workspace: Path, *, json_wanted: bool) -> int:
    """Where it is written; alone on its line, so that `$EDITOR "$(tarmac config path)"` works."""
    own = user_file(config_dir(os.environ))
    if json_wanted:
        listed = [{"path": str(each), "exists": each.exists()} for each in workspace_files(workspace)]
        print(json.dumps({"user": {"path": str(own), "exists": own.exists()}, "workspace": listed}))
    else:
        print(own)
    return 0


def _check(workspace: Path, *, json_wanted: bool) -> int:
    """Read all that a task in this workspace would read, and say what is wrong with it."""
    from tarmac.prompts.instructions import read_instructions, read_replacement
    from tarmac.prompts.modes import load_modes

    folder = config_dir(os.environ)
    trouble: list[str] = []
    try:
        config = load_config(workspace, os.environ)
        trouble += config.notes
        trouble += [config.rules.trouble] if config.rules.trouble else []
        mode = config.mode
    except ConfigError as error:
        trouble.append(f"{error.what}; {error.hint}" if error.hint else error.what)
        mode = "code"
    modes = load_modes(workspace, folder)
    trouble += modes.trouble
    if modes.get(mode) is None:
        close = modes.nearest(mode)
        trouble.append(f"there is no mode `{mode}`" + (f"; did you mean `{close}`?" if close else ""))
    for one in modes.all:
        trouble += read_instructions(workspace, folder, one.slug).trouble
        trouble += read_replacement(workspace, folder, one.slug)[1]
    trouble = list(dict.fromkeys(trouble))  # what is for every mode was met in each
    if json_wanted:
        print(json.dumps({"ok": not trouble, "trouble": trouble}))
    else:
        print("\n".join(trouble) if trouble else "the configuration is valid")
    return 1 if trouble else 0
