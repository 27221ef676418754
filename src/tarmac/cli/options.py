"""The arguments of a verb: options and words, with a hint for whoever mistyped one."""

from getopt import GetoptError, gnu_getopt

from tarmac.cli.help import show, suggest
from tarmac.errors import BadRequest


class HelpShown(Exception):
    """The person asked for the page of the verb, and has it."""


def parse(verb: str, arguments: list[str], options: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """What was given: option → its values in order (an empty one for a switch), and the words."""
    try:
        pairs, words = gnu_getopt(arguments, "h", [*options, "help"])
    except GetoptError as error:
        known = [f"--{each.rstrip('=')}" for each in options]
        if f"--{error.opt}" in known:  # it is right, and lacks its value, or has one too many
            raise BadRequest(error.msg, hint=f"`tarmac {verb} --help`") from None
        raise BadRequest(error.msg, hint=suggest(f"--{error.opt}", known) or f"`tarmac {verb} --help`") from None
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name.removeprefix("--"), []).append(value)
    if "help" in given or "-h" in given:
        show([verb])
        raise HelpShown
    return given, words


def number(given: dict[str, list[str]], name: str, default: int | None) -> int | None:
    """The last value of an option that takes a number above 0."""
    if name not in given:
        return default
    text = given[name][-1]
    if not text.isdecimal() or not int(text):
        raise BadRequest(f"--{name} takes a number above 0, not `{text}`")
    return int(text)
