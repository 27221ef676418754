"""Load all modes: built-in ones, those of the user, and those of the workspace. For the same slug, the last wins.

load_modes(workspace, user_folder) → Modes(all, get(slug), trouble)

A mode is a Markdown file with front matter: TOML between `+++` lines, or YAML between `---` lines. Roo-Code's
`.roomodes` (YAML or JSON) is read too. An invalid file is reported with its line and skipped. A mode that is read only
in part could allow what its author forbids.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tarmac.errors import nearest
from tarmac.prompts.located import InvalidText, Key, Located, read_yaml
from tarmac.prompts.mode import ROO_FIELDS, Group, GroupRule, Mode, Source, make_mode, parse_mode
from tarmac.prompts.safe_files import Unread, files_below, folders_of, name_of, read_text

__all__ = ["DEFAULT", "Group", "GroupRule", "Mode", "Modes", "Source", "built_in", "load_modes"]

DEFAULT = "code"
ORDER = ("architect", "code", "ask", "debug", "orchestrator")
LONGEST_FILE = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """All modes, and the problems with their files."""

    all: tuple[Mode, ...]
    trouble: tuple[str, ...] = ()  # "`.tarmac/modes/x.md`, line 3: …"
    replaced: Mapping[str, Mode] = field(default_factory=dict)  # by slug: modes of ours that the workspace has replaced

    def get(self, slug: str) -> Mode | None:
        """The mode with that slug."""
        return next((each for each in self.all if each.slug == slug), None)

    def without(self, mode: Mode) -> "Modes":
        """These, with our own mode again where `mode` replaces it."""
        ours = self.replaced.get(mode.slug, mode)
        return replace(self, all=tuple(ours if each == mode else each for each in self.all))

    def nearest(self, slug: str) -> str:
        """The slug most like `slug`, or an empty string."""
        return nearest(slug, [each.slug for each in self.all])


@functools.cache
def built_in() -> tuple[Mode, ...]:
    """The modes that come with Tarmac."""
    folder = Path(__file__).parent / "builtin"
    return tuple(
        parse_mode((folder / f"{slug}.md").read_text("utf-8"), slug=slug, source="built-in", origin="")
        for slug in ORDER
    )


def load_modes(workspace: Path, user_folder: Path) -> Modes:
    """The modes in `workspace`. A bad file never raises."""
    trouble: list[str] = []
    modes = {each.slug: each for each in built_in()}
    own = _ModeFolder("user", workspace, None, trouble)
    modes |= _from_roo(user_folder / "custom_modes.yaml", own) | _from_files(user_folder / "modes", own)
    given: dict[str, Mode] = {}
    for folder in folders_of(workspace):
        place = _ModeFolder("workspace", workspace, folder, trouble)
        given |= _from_roo(folder / ".roomodes", place) | _from_files(folder / ".tarmac" / "modes", place)
    trouble += [  # allowed, as the policy judges every call; but the user should know
        f"{mode.origin}: this file gives {mode.name} mode more tools than usual: {more}"
        for mode in given.values()
        if (before := modes.get(mode.slug)) and (more := _gained(before, mode))
    ]
    replaced = {slug: mode for slug, mode in modes.items() if slug in given}
    return Modes(all=tuple((modes | given).values()), trouble=tuple(trouble), replaced=replaced)


def _gained(before: Mode, after: Mode) -> str:
    """The groups in which `after` allows more than `before`."""
    gained = []
    for rule in after.groups:
        known = before.rule(rule.group)
        if known is None or (known.file_pattern is not None and rule.file_pattern != known.file_pattern):
            gained.append(rule.group)
    return ", ".join(gained)


def read_roo_modes(path: Path) -> Modes:
    """The modes in a file of Roo-Code."""
    trouble: list[str] = []
    found = _from_roo(path, _ModeFolder("user", path.parent, None, trouble))
    return Modes(all=tuple(found.values()), trouble=tuple(trouble))


# Files


@dataclass(frozen=True, slots=True)
class _ModeFolder:
    """A folder with mode files. A link may not lead out of `within`; None allows any target."""

    source: Source
    workspace: Path
    within: Path | None
    trouble: list[str]

    def name(self, path: Path) -> str:
        return name_of(path, self.workspace, own=self.within is None)

    def text(self, path: Path) -> str | None:
        found = read_text(path, workspace=self.within, most=LONGEST_FILE)
        if found and found.left_out:
            raise Unread(f"longer than {LONGEST_FILE:,} characters")
        return found.text if found else None


def _from_files(folder: Path, place: _ModeFolder) -> dict[str, Mode]:
    files, unread = files_below(folder, workspace=place.within, suffixes=[".md"])
    trouble = place.trouble
    trouble += unread
    found: dict[str, Mode] = {}
    for path in files:
        origin = place.name(path)
        try:
            mode = parse_mode(place.text(path) or "", slug=path.stem, source=place.source, origin=origin)
            if mode.slug in found:
                raise InvalidText(1, f"the mode `{mode.slug}` is already in {found[mode.slug].origin}")
            found[mode.slug] = mode
        except InvalidText as error:
            trouble.append(f"{origin}, line {error.line}: {error.what}")
        except Unread as why:
            trouble.append(f"{origin}: {why}")
    return found


def _from_roo(path: Path, place: _ModeFolder) -> dict[str, Mode]:
    """The modes in a file of Roo-Code. Unknown keys are ignored, as Roo-Code does."""
    origin, trouble = place.name(path), place.trouble
    found: dict[str, Mode] = {}
    try:
        text = place.text(path)
        if text is None:
            return {}
        located = _yaml_or_json(text)
        modes = located.data.get("customModes")
        if not isinstance(modes, list):
            raise InvalidText(located.line(("customModes",)), "`customModes` must be a list of modes")
    except InvalidText as error:
        trouble.append(f"{origin}, line {error.line}: {error.what}")
        return {}
    except Unread as why:
        trouble.append(f"{origin}: {why}")
        return {}
    for number, each in enumerate(modes):
        at: tuple[Key, ...] = ("customModes", number)
        try:
            if not isinstance(each, dict):
                raise InvalidText(located.line(at), "a mode must be a map")
            known = {key: value for key, value in each.items() if key in ROO_FIELDS}
            mode = make_mode(known, functools.partial(_line_below, located, at), source=place.source, origin=origin)
            if mode.slug in found:
                raise InvalidText(located.line((*at, "slug")), f"the mode `{mode.slug}` is listed twice")
            found[mode.slug] = mode
        except InvalidText as error:
            trouble.append(f"{origin}, line {error.line}: {error.what}")
    return found


def _line_below(located: Located, at: tuple[Key, ...], path: tuple[Key, ...]) -> int:
    return located.line((*at, *path))


def _yaml_or_json(text: str) -> Located:
    try:
        return read_yaml(text)
    except InvalidText:
        try:  # JSON may be indented with tabs, YAML not
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise
        return Located(data, lambda _: 1)
