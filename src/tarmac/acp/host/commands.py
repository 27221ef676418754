"""A command as `terminal/create` has it, as the line that bash reads and a person sees."""

import shlex
import shutil
from typing import Final

from tarmac.acp.host.reading import Object, object_of, text_of, wanted_text
from tarmac.acp.peer import Refused
from tarmac.acp.wire import INVALID_PARAMS

_SHELLS: Final = ("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash")


def command_line(params: Object) -> str:
    """The line that bash will read, with the variables in front: a person sees all of it."""
    command = wanted_text(params, "command")
    args = params.get("args") or []
    if not isinstance(args, list) or not all(isinstance(each, str) and "\0" not in each for each in args):
        raise Refused(INVALID_PARAMS, "`args` must be a list of texts")
    if not command.strip():
        raise Refused(INVALID_PARAMS, "`command` is empty")
    alone = not args
    if alone and " " in command and "/" in command and shutil.which(command):
        alone, command = False, shlex.quote(command)  # one program, with a blank in its path
    elif args:
        command = " ".join(map(shlex.quote, [command, *args]))
    variables = params.get("env") or []
    if not isinstance(variables, list):
        raise Refused(INVALID_PARAMS, "`env` must be a list of names and values")
    pairs: list[str] = []
    for each in map(object_of, variables):
        name, value = text_of(each.get("name")), text_of(each.get("value"))
        if not name.isidentifier() or not name.isascii() or "\0" in value:
            raise Refused(INVALID_PARAMS, f"{name[:80]!r} is no name of a variable")
        pairs.append(f"{name}={shlex.quote(value)}")
    if not pairs:
        return command
    return f"export {' '.join(pairs)}; {command}" if alone else f"{' '.join(pairs)} {command}"


def handed_line(params: Object) -> str:
    """The line behind `/bin/sh -lc LINE`: an agent that asked for LINE may run it that way (fast-agent does)."""
    args = params.get("args")
    if params.get("command") not in _SHELLS or params.get("env") or not isinstance(args, list) or len(args) != 2:
        return ""
    return text_of(args[1]) if args[0] in ("-c", "-lc") else ""
