"""One mode out of a Markdown file, or out of a map in Roo-Code's words.

parse_mode(text) → Mode        Wrong(line, what) when it makes no sense

Strict: a key that is not known could be a restriction that is misspelt.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import cast

from tarmac.prompts.located import Key, LineOf, Located, Wrong, read_toml, read_yaml
from tarmac.prompts.mode import CHOSEN, WITH_FILES, WITHOUT_ASKING_THE_MODE, GroupRule, Mode, Source, compiled

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
_JOINER = "\u200d"  # of emoji, which people put in front of names
SLUG = re.compile(r"[A-Za-z0-9-]{1,64}")
_FRONT = re.compile(r"(\+\+\+|---)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)(.*)", re.DOTALL | re.MULTILINE)


def parse_mode(text: str, *, slug: str, source: Source, origin: str) -> Mode:
    """The mode a file tells of; `slug` when it names none itself."""
    found = _FRONT.match(text)
    if not found:
        raise Wrong(1, "a mode begins with front matter: TOML between two lines of `+++`, or YAML between `---`")
    located = _read_front(found[1], found[2])

    def line(path: tuple[Key, ...]) -> int:
        return located.line(path) + 1 if path else 1  # the fence above it

    data = {"slug": slug, **located.data}
    known = {*FIELDS, *ROO_FIELDS}
    for key in data:
        if key not in known:
            raise Wrong(line((key,)), f"`{key}` is not known{_perhaps(key, known)}")
    if body := found[3].strip():
        for key in ("instructions", "customInstructions"):
            if data.get(key):
                raise Wrong(line((key,)), f"there are instructions in `{key}` and below the front matter")
        data["instructions"] = body
    return make_mode(data, line, source=source, origin=origin)


def _read_front(fence: str, text: str) -> Located:
    try:
        return read_toml(text) if fence == "+++" else read_yaml(text)
    except Wrong as wrong:
        raise Wrong(wrong.line + 1, wrong.what) from None


def make_mode(data: Mapping[str, object], line: LineOf, *, source: Source, origin: str) -> Mode:
    """The mode that `data` tells of, in our words or in Roo-Code's."""

    def text(name: str, *, needed: bool = False) -> str:
        key = name if name in data else FIELDS[name]
        value = data.get(key)
        if value is None and not needed:
            return ""
        if key not in data:
            raise Wrong(line(()), f"a mode needs a `{name}`")
        if not isinstance(value, str) or (needed and not value.strip()):
            raise Wrong(line((key,)), f"`{key}` should be text")
        if len(value) > LONGEST_TEXT:
            raise Wrong(line((key,)), f"`{key}` has at most {LONGEST_TEXT:,} characters")
        return value.strip()

    def line_of(name: str) -> str:
        value = text(name)
        if not value.replace(_JOINER, "").isprintable() or len(value) > LONGEST_LINE:
            raise Wrong(line((name,)), f"`{name}` should be one line, of at most {LONGEST_LINE} characters")
        return value

    slug = text("slug", needed=True)
    if not SLUG.fullmatch(slug):
        raise Wrong(line(("slug",)), f"`{slug[:80]}` is no slug: letters, digits and `-`, at most 64")
    return Mode(
        slug=slug,
        name=line_of("name") or slug.replace("-", " ").capitalize(),
        role=text("role", needed=True),
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
        raise Wrong(line(("groups",)), "`groups` should be a list")
    rules: dict[str, GroupRule] = {}
    for number, each in enumerate(listed):
        here = line(("groups", number))
        name, options = _entry(each, here)
        if name in WITHOUT_ASKING_THE_MODE:  # Roo-Code's files may name `modes`; every mode has it
            continue
        group = next((known for known in CHOSEN if known == name), None)
        if group is None:
            raise Wrong(here, f"there is no group `{name}`{_perhaps(name, CHOSEN) or ': ' + ', '.join(CHOSEN)}")
        if name in rules:
            raise Wrong(here, f"the group `{name}` is there twice")
        pattern, description = _files(options, here)
        if pattern is not None and name not in WITH_FILES:
            raise Wrong(here, f"the group `{name}` has no files that a pattern could choose from")
        rules[name] = GroupRule(group=group, file_pattern=pattern, description=description)
    return tuple(rules.values())


def _entry(each: object, line: int) -> tuple[str, Mapping[str, object]]:
    """A group by its name, by name and options ([name, {…}], as Roo-Code has it), or {group = name, …}."""
    match each:
        case str():
            return each, {}
        case [str() as name, *rest] if rest and all(isinstance(one, dict) for one in rest):
            maps = cast(list[dict[str, object]], rest)
            pairs = [pair for one in maps for pair in one.items()]  # some write `- fileRegex: …`, `- description: …`
            if len(dict(pairs)) == len(pairs):
                return name, {str(key): value for key, value in pairs}
        case {"group": str() as name, **others}:
            return name, {str(key): value for key, value in others.items()}
    raise Wrong(line, "a group is a name, or a name with `files` and `description`")


def _files(options: Mapping[str, object], line: int) -> tuple[str | None, str]:
    for key in options:
        if key not in OPTIONS:
            raise Wrong(line, f"`{key}` is not known{_perhaps(key, OPTIONS)}")
    given = [options[key] for key in ("files", "fileRegex") if key in options]
    description = options.get("description") or ""
    if not isinstance(description, str):
        raise Wrong(line, "`description` should be text")
    if not given:
        return None, description.strip()
    if len(given) > 1 or not isinstance(given[0], str):
        raise Wrong(line, "`files` should be one pattern")
    try:
        compiled(given[0])
    except ValueError as error:
        raise Wrong(line, str(error)) from None
    return given[0], description.strip()


def _perhaps(wrong: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(wrong, sorted(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""
