"""Modes in and out of Roo-Code's `custom_modes.yaml`: a file of ours for each mode, or its file for all of ours.

read_roo_modes(path) → Modes        mode_text(mode) → a Markdown file        roo_text(modes) → its YAML
"""

from collections.abc import Iterable
from pathlib import Path

from tarmac.prompts.located import Wrong
from tarmac.prompts.mode import Mode
from tarmac.prompts.modefile import parse_mode
from tarmac.prompts.modes import Modes, from_roo_file


def read_roo_modes(path: Path) -> Modes:
    """The modes of a file of Roo-Code's, and what is wrong with others."""
    trouble: list[str] = []
    found = from_roo_file(path, trouble)
    return Modes(all=tuple(found.values()), trouble=tuple(trouble))


def mode_text(mode: Mode) -> str:
    """The same mode as a file of ours, in Roo-Code's words; its instructions are the text below."""
    data = _data(mode)
    instructions = str(data.pop("customInstructions", ""))
    text = f"---\n{_yaml(data)}---\n{instructions}\n"
    if not _same(text, mode):  # instructions that would not be read back as they are
        text = f"---\n{_yaml(_data(mode))}---\n"
    return text


def roo_text(modes: Iterable[Mode]) -> str:
    """All of them, as Roo-Code keeps them."""
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
    except Wrong:
        return False
