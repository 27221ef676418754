"""What a caller asks for, looked at before anything is done."""

from tarmac.errors import BadRequest


def check_timeout(timeout: float | None, name: str = "timeout") -> None:
    """Refuse a time that can't be waited for."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise BadRequest(f"{name} is a number of seconds, not {timeout!r}", hint="None waits without a limit")
    if timeout is not None and not timeout > 0:
        raise BadRequest(f"{name} must be more than 0 seconds, not {timeout!r}", hint="None waits without a limit")


def check_on_timeout(on_timeout: str) -> None:
    if on_timeout not in ("leave", "interrupt", "kill"):
        raise BadRequest(f"on_timeout is 'leave', 'interrupt' or 'kill', not {on_timeout!r}")


def check_command(command: str) -> bytes:
    """The command's bytes, or why it can't be run."""
    if not isinstance(command, str):
        raise BadRequest(f"a command is text, not {type(command).__name__}")
    if not command.strip():
        raise BadRequest("the command is empty")
    if "\0" in command:
        raise BadRequest(
            "the command contains a NUL character, which no shell can read", hint="use printf '\\0' to print one"
        )
    try:
        return command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"the command contains a lone surrogate at character {error.start}, which has no bytes"
        ) from error


def short(command: str) -> str:
    """The first line of a command, for a message."""
    line = command.strip().splitlines()[0]
    return line if len(line) <= 60 else line[:59] + "…"
