"""The modes there are (S9): built in, the user's, the workspace's. Of one name the workspace's counts, then the user's.

load_modes(workspace, user_folder) → Modes(all, get(slug), trouble)

A mode is a Markdown file: front matter, then its instructions. Between lines of `+++` the front matter is TOML, between
`---` it is YAML. Roo-Code's `.roomodes` (YAML or JSON) is read too. A file that makes no sense is reported, with its
line, and left out: a mode that is half understood could allow what its author forbade.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path

from tarmac.nearest import nearest
from tarmac.prompts.located import Key, Located, Wrong, read_yaml
from tarmac.prompts.mode import Group, GroupRule, Mode, Source
from tarmac.prompts.modefile import ROO_FIELDS, make_mode, parse_mode
from tarmac.prompts.reading import Unread, files_below, folders_of, name_of, read_text

__all__ = ["DEFAULT", "Group", "GroupRule", "Mode", "Modes", "Source", "built_in", "load_modes"]

DEFAULT = "code"
ORDER = ("architect", "code", "ask", "debug", "orchestrator")
LONGEST_FILE = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """All that can be chosen, and what was wrong with files."""

    all: tuple[Mode, ...]
    trouble: tuple[str, ...] = ()  # "`.tarmac/modes/x.md`, line 3: …"

    def get(self, slug: str) -> Mode | None:
        """The one of that name."""
        return next((each for each in self.all if each.slug == slug), None)

    def nearest(self, slug: str) -> str:
        """A name that looks like it; empty when none does."""
        return nearest(slug, [each.slug for each in self.all])


@functools.cache
def built_in() -> tuple[Mode, ...]:
    """Those that come with Tarmac."""
    folder = Path(__file__).parent / "builtin"
    return tuple(
        parse_mode((folder / f"{slug}.md").read_text("utf-8"), slug=slug, source="built-in", origin="")
        for slug in ORDER
    )


def load_modes(workspace: Path, user_folder: Path) -> Modes:
    """What can be chosen in `workspace`; never raises for what files hold."""
    trouble: list[str] = []
    modes = {each.slug: each for each in built_in()}
    own = _Place("user", workspace, None, trouble)
    modes |= _from_roo(user_folder / "custom_modes.yaml", own) | _from_files(user_folder / "modes", own)
    given: dict[str, Mode] = {}
    for folder in folders_of(workspace):
        place = _Place("workspace", workspace, folder, trouble)
        given |= _from_roo(folder / ".roomodes", place) | _from_files(folder / ".tarmac" / "modes", place)
    trouble += [  # allowed, for the policy judges every call; but nobody should learn it by surprise
        f"{mode.origin}: in this workspace {mode.name} mode has more than elsewhere: {more}"
        for mode in given.values()
        if (before := modes.get(mode.slug)) and (more := _gained(before, mode))
    ]
    return Modes(all=tuple((modes | given).values()), trouble=tuple(trouble))


def _gained(before: Mode, after: Mode) -> str:
    """The groups in which `after` may do what `before` may not, as far as can be told."""
    gained = []
    for rule in after.groups:
        known = before.rule(rule.group)
        if known is None or (known.file_pattern is not None and rule.file_pattern != known.file_pattern):
            gained.append(rule.group)
    return ", ".join(gained)


# Files


@dataclass(frozen=True, slots=True)
class _Place:
    """Where files are: whose, what they may not lead out of (None: anywhere), and where trouble is told."""

    source: Source
    workspace: Path
    within: Path | None
    trouble: list[str]

    def name(self, path: Path) -> str:
        return name_of(path, self.workspace, own=self.within is None)

    def text(self, path: Path) -> str | None:
        found = read_text(path, workspace=self.within, most=LONGEST_FILE)
        if found and found.left_out:
            raise Unread(f"it is longer than {LONGEST_FILE:,} characters")
        return found.text if found else None


def _from_files(folder: Path, place: _Place) -> dict[str, Mode]:
    files, unread = files_below(folder, workspace=place.within, suffixes=[".md"])
    trouble = place.trouble
    trouble += unread
    found: dict[str, Mode] = {}
    for path in files:
        origin = place.name(path)
        try:
            mode = parse_mode(place.text(path) or "", slug=path.stem, source=place.source, origin=origin)
            if mode.slug in found:
                raise Wrong(1, f"the mode `{mode.slug}` is in {found[mode.slug].origin} already")
            found[mode.slug] = mode
        except Wrong as wrong:
            trouble.append(f"{origin}, line {wrong.line}: {wrong.what}")
        except Unread as why:
            trouble.append(f"{origin}: {why}")
    return found


def _from_roo(path: Path, place: _Place) -> dict[str, Mode]:
    """Roo-Code's file of modes. What it says beyond what we know of a mode is passed over, as Roo does."""
    origin, trouble = place.name(path), place.trouble
    found: dict[str, Mode] = {}
    try:
        text = place.text(path)
        if text is None:
            return {}
        located = _yaml_or_json(text)
        modes = located.data.get("customModes")
        if not isinstance(modes, list):
            raise Wrong(located.line(("customModes",)), "`customModes` should be a list of modes")
    except Wrong as wrong:
        trouble.append(f"{origin}, line {wrong.line}: {wrong.what}")
        return {}
    except Unread as why:
        trouble.append(f"{origin}: {why}")
        return {}
    for number, each in enumerate(modes):
        at: tuple[Key, ...] = ("customModes", number)
        try:
            if not isinstance(each, dict):
                raise Wrong(located.line(at), "a mode is a map of keys and values")
            known = {key: value for key, value in each.items() if key in ROO_FIELDS}
            mode = make_mode(known, functools.partial(_line_below, located, at), source=place.source, origin=origin)
            if mode.slug in found:
                raise Wrong(located.line((*at, "slug")), f"there is a mode `{mode.slug}` already")
            found[mode.slug] = mode
        except Wrong as wrong:
            trouble.append(f"{origin}, line {wrong.line}: {wrong.what}")
    return found


def from_roo_file(path: Path, trouble: list[str]) -> dict[str, Mode]:
    """The modes of one file of Roo-Code's, wherever it is."""
    return _from_roo(path, _Place("user", path.parent, None, trouble))


def _line_below(located: Located, at: tuple[Key, ...], path: tuple[Key, ...]) -> int:
    return located.line((*at, *path))


def _yaml_or_json(text: str) -> Located:
    try:
        return read_yaml(text)
    except Wrong:
        try:  # tabs between its words are fine in JSON
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise
        return Located(data, lambda _: 1)
