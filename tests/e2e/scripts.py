"""Scripts for a scripted model, and `tarmac run` with one."""

import json
from pathlib import Path

PRICE = "price = { input = 3.0, output = 15.0 }\n"


def turn(text: str = "", *calls: tuple[str, dict[str, object]], pace: float = 0, delay: float = 0) -> str:
    """One answer, in TOML."""
    lines = ["[[turn]]", f"text = {json.dumps(text)}", f"pace = {pace}", f"delay = {delay}"]
    lines.append("usage = { input = 1000, output = 100 }")
    for name, arguments in calls:
        lines += ["[[turn.call]]", f"name = {json.dumps(name)}", f"arguments = {json.dumps(json.dumps(arguments))}"]
    return "\n".join(lines) + "\n"


def command(line: str, **more: object) -> tuple[str, dict[str, object]]:
    return "execute_command", {"command": line, **more}


def done(result: str = "It is done.") -> str:
    return turn("", ("attempt_completion", {"result": result}))


def script(folder: Path, *turns: str, head: str = PRICE) -> str:
    """A script file; its path."""
    path = folder / "script.toml"
    path.write_text(head + "".join(turns))
    return str(path)
