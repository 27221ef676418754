"""A mode: the role of the model, its tools, and the files they may touch; and the file formats of modes.

mode.allows("write_to_file", "edit", path="src/app.py") → None, or the reason why not, for the model
parse_mode(text) → Mode · mode_text(mode) → our Markdown file · roo_text(modes) → YAML of Roo-Code

A file pattern is a regular expression, perhaps from an untrusted repository. So it has a time limit, and any error
means "not allowed". An invalid file raises InvalidText with its line. An unknown key is an error, because it may be a
misspelt restriction.
"""

import difflib
import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, cast

from tarmac.prompts.located import InvalidText, Key, LineOf, Located, read_toml, read_yaml

if TYPE_CHECKING:
    from regex import Pattern


MOST = 400_000  # nodes; a pattern for UUIDs has 300,000 by this bound
_COUNTED = re.compile(r"\{([^}]*)\}")


def check_size(pattern: str) -> None:
    """Raise ValueError if the pattern is too large to compile."""
    size = math.prod((_least(found) for found in _COUNTED.findall(pattern)), start=max(1, len(pattern)))
    if size > MOST:
        raise ValueError("too many counted repetitions")


def _least(count: str) -> int:
    """The minimum count, which is expanded. There may be blanks and comments between the digits."""
    digits = "".join(each for each in count.partition(",")[0] if each.isdigit())
    return max(1, int(digits[:9])) if digits.isascii() and digits else 1


Group = Literal["read", "edit", "command", "mcp", "modes", "browser", "always"]
Source = Literal["built-in", "user", "workspace"]
IN_EVERY_MODE: tuple[Group, ...] = ("always", "modes")  # in every mode
CHOSEN: tuple[Group, ...] = ("read", "edit", "command", "mcp", "browser")  # listed by a mode
FILE_GROUPS: tuple[Group, ...] = ("read", "edit")  # groups whose tools take a path
LONGEST_PATTERN = 500
PATTERN_TIMEOUT = 0.1  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A group of tools in a mode. With a pattern, only for files that match it."""

    group: Group
    file_pattern: str | None = None  # searched in the path relative to the workspace, with slashes
    description: str = ""  # of the files, such as "Markdown files only"

    @property
    def files(self) -> str:
        """A description of the files; empty for all files."""
        if self.file_pattern is None:
            return ""
        return f"{self.description} (`{self.file_pattern}`)" if self.description else f"`{self.file_pattern}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A role with its tools and instructions."""

    slug: str
    name: str
    role: str
    groups: tuple[GroupRule, ...] = ()
    when: str = ""  # when to use it, for the model and the user
    description: str = ""  # short, for a menu
    instructions: str = ""
    source: Source = "built-in"
    origin: str = ""  # its file; empty for a built-in mode

    def rule(self, group: str) -> GroupRule | None:
        """The rule for a group, if the mode has the group."""
        return next((each for each in self.groups if each.group == group), None)

    def allows(self, tool: str, group: Group, path: PurePath | str | None = None) -> str | None:
        """None if the tool may be used, else the reason. `path` is the file, relative to the workspace.

        For a link, ask twice: for its name and for its target.
        """
        if group in IN_EVERY_MODE:
            return None
        rule = self.rule(group)
        if rule is None:
            return f"The tool {tool} is not available in {self.name} mode."
        if path is None or rule.file_pattern is None or _fits(rule.file_pattern, _slashed(path)):
            return None
        verb = "read" if group == "read" else "edit"
        return f"{self.name} mode may only {verb} these files: {rule.files}. `{_slashed(path)}` is not one of them."


@functools.lru_cache(64)
def compiled(pattern: str) -> "Pattern[str]":
    """Compile a pattern. ValueError says what is wrong."""
    import regex

    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"the pattern has {len(pattern)} characters, but at most {LONGEST_PATTERN} are allowed")
    try:
        check_size(pattern)
        return regex.compile(pattern)
    except (regex.error, ValueError) as error:
        raise ValueError(f"`{pattern}` is not a valid regular expression: {error}") from None
    except (RecursionError, OverflowError, MemoryError):
        raise ValueError("the pattern is too complicated") from None


def _fits(pattern: str, path: str) -> bool:
    if not path.isprintable():  # `$` matches before a trailing newline
        return False
    try:
        return compiled(pattern).search(path, timeout=PATTERN_TIMEOUT) is not None
    except (TimeoutError, ValueError):
        return False


def _slashed(path: PurePath | str) -> str:
    return path.as_posix() if isinstance(path, PurePath) else path.replace("\\", "/")


FIELDS = {  # ours → Roo-Code's
    "slug": "slug",
    "name": "name",
    "role": "roleDefinition",
    "when": "whenToUse",
    "description": "description",
    "groups": "groups",
    "instructions": "customInstructions",
}
ROO_FIELDS = frozenset(FIELDS.values())
OPTIONS = ("files", "fileRegex", "description")
LONGEST_LINE = 200
LONGEST_TEXT = 50_000
_JOINER = "\u200d"  # part of some emoji, which are not printable to Python
SLUG = re.compile(r"[A-Za-z0-9-]{1,64}")
_FRONT = re.compile(r"(\+\+\+|---)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)(.*)", re.DOTALL | re.MULTILINE)


def parse_mode(text: str, *, slug: str, source: Source, origin: str) -> Mode:
    """Parse a mode file. `slug` is used if the file has none."""
    found = _FRONT.match(text)
    if not found:
        raise InvalidText(
            1, "a mode file must begin with front matter: TOML between `+++` lines or YAML between `---` lines"
        )
    located = _read_front(found[1], found[2])

    def line(path: tuple[Key, ...]) -> int:
        return located.line(path) + 1 if path else 1  # below the fence

    data = {"slug": slug, **located.data}
    known = {*FIELDS, *ROO_FIELDS}
    for key in data:
        if key not in known:
            raise InvalidText(line((key,)), f"`{key}` is unknown{_did_you_mean(key, known)}")
    if body := found[3].strip():
        for key in ("instructions", "customInstructions"):
            if data.get(key):
                raise InvalidText(line((key,)), f"instructions are both in `{key}` and below the front matter")
        data["instructions"] = body
    return make_mode(data, line, source=source, origin=origin)


def _read_front(fence: str, text: str) -> Located:
    try:
        return read_toml(text) if fence == "+++" else read_yaml(text)
    except InvalidText as error:
        raise InvalidText(error.line + 1, error.what) from None


def make_mode(data: Mapping[str, object], line: LineOf, *, source: Source, origin: str) -> Mode:
    """Make a mode from the keys of our format or of Roo-Code's."""

    def text(name: str, *, required: bool = False) -> str:
        key = name if name in data else FIELDS[name]
        value = data.get(key)
        if value is None and not required:
            return ""
        if key not in data:
            raise InvalidText(line(()), f"a mode needs a `{name}`")
        if not isinstance(value, str) or (required and not value.strip()):
            raise InvalidText(line((key,)), f"`{key}` must be text")
        if len(value) > LONGEST_TEXT:
            raise InvalidText(line((key,)), f"`{key}` is longer than {LONGEST_TEXT:,} characters")
        return value.strip()

    def line_of(name: str) -> str:
        value = text(name)
        if not value.replace(_JOINER, "").isprintable() or len(value) > LONGEST_LINE:
            raise InvalidText(line((name,)), f"`{name}` must be one line of at most {LONGEST_LINE} characters")
        return value

    slug = text("slug", required=True)
    if not SLUG.fullmatch(slug):
        raise InvalidText(line(("slug",)), f"`{slug[:80]}` is not a valid slug: use at most 64 letters, digits and `-`")
    return Mode(
        slug=slug,
        name=line_of("name") or slug.replace("-", " ").capitalize(),
        role=text("role", required=True),
        when=text("when"),
        description=line_of("description"),
        groups=_groups(data.get("groups"), line),
        instructions=text("instructions"),
        source=source,
        origin=origin,
    )


def _groups(listed: object, line: LineOf) -> tuple[GroupRule, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise InvalidText(line(("groups",)), "`groups` must be a list")
    rules: dict[str, GroupRule] = {}
    for number, each in enumerate(listed):
        here = line(("groups", number))
        name, options = _entry(each, here)
        if name in IN_EVERY_MODE:  # Roo-Code lists `modes`; every mode has it
            continue
        group = next((known for known in CHOSEN if known == name), None)
        if group is None:
            raise InvalidText(here, f"unknown group `{name}`{_did_you_mean(name, CHOSEN) or ': ' + ', '.join(CHOSEN)}")
        if name in rules:
            raise InvalidText(here, f"the group `{name}` is listed twice")
        pattern, description = _files(options, here)
        if pattern is not None and name not in FILE_GROUPS:
            raise InvalidText(here, f"the group `{name}` can't have a file pattern")
        rules[name] = GroupRule(group=group, file_pattern=pattern, description=description)
    return tuple(rules.values())


def _entry(each: object, line: int) -> tuple[str, Mapping[str, object]]:
    """A group is a name, [name, {options}] as in Roo-Code, or {group = name, options}."""
    match each:
        case str():
            return each, {}
        case [str() as name, *rest] if rest and all(isinstance(one, dict) for one in rest):
            maps = cast(list[dict[str, object]], rest)
            pairs = [pair for one in maps for pair in one.items()]  # some files have each option in its own map
            if len(dict(pairs)) == len(pairs):
                return name, {str(key): value for key, value in pairs}
        case {"group": str() as name, **others}:
            return name, {str(key): value for key, value in others.items()}
    raise InvalidText(line, "a group must be a name, or a name with `files` and `description`")


def _files(options: Mapping[str, object], line: int) -> tuple[str | None, str]:
    for key in options:
        if key not in OPTIONS:
            raise InvalidText(line, f"`{key}` is unknown{_did_you_mean(key, OPTIONS)}")
    given = [options[key] for key in ("files", "fileRegex") if key in options]
    description = options.get("description") or ""
    if not isinstance(description, str):
        raise InvalidText(line, "`description` must be text")
    if not given:
        return None, description.strip()
    if len(given) > 1 or not isinstance(given[0], str):
        raise InvalidText(line, "`files` must be one pattern")
    try:
        compiled(given[0])
    except ValueError as error:
        raise InvalidText(line, str(error)) from None
    return given[0], description.strip()


def _did_you_mean(wrong: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wrong, sorted(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def mode_text(mode: Mode) -> str:
    """A mode as a Markdown file, with the keys of Roo-Code and its instructions below."""
    data = _data(mode)
    instructions = str(data.pop("customInstructions", ""))
    text = f"---\n{_yaml(data)}---\n{instructions}\n"
    if not _same(text, mode):  # these instructions would be parsed differently
        text = f"---\n{_yaml(_data(mode))}---\n"
    return text


def roo_text(modes: Iterable[Mode]) -> str:
    """The modes as a file of Roo-Code."""
    return _yaml({"customModes": [_data(each) for each in modes]})


def _data(mode: Mode) -> dict[str, object]:
    groups: list[object] = []
    for rule in mode.groups:
        options = {"fileRegex": rule.file_pattern, "description": rule.description}
        kept = {key: value for key, value in options.items() if value}
        groups.append([rule.group, kept] if kept else rule.group)
    data: dict[str, object] = {
        "slug": mode.slug,
        "name": mode.name,
        "roleDefinition": mode.role,
        "whenToUse": mode.when,
        "description": mode.description,
        "groups": groups,
        "customInstructions": mode.instructions,
    }
    return {key: value for key, value in data.items() if value or key == "groups"}


def _yaml(data: object) -> str:
    import yaml

    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=10_000))


def _same(text: str, mode: Mode) -> bool:
    try:
        return parse_mode(text, slug=mode.slug, source=mode.source, origin=mode.origin) == mode
    except InvalidText:
        return False
