"""PURE: what an editor says of itself in `initialize`, as far as it matters here. What it does not say, it can't."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorAbilities:
    """An editor's abilities."""

    version: int = 1  # of the protocol that both sides speak
    shows_terminals: bool = False  # ours, by `_meta.terminal_*`
    terminals: bool = False  # it runs commands in its own: all of terminal/*
    reads_files: bool = False  # it tells what its buffers hold: fs/read_text_file
    writes_files: bool = False  # it writes files, into its buffers too: fs/write_text_file
    asks: bool = False  # it shows forms: elicitation/create
    tells_documents: bool = False  # it asks for suggested edits, and tells which files are open
    names_options: bool = True  # it shows what each "always" of a permission request covers


LATEST: Final = 2  # a draft: spoken with who offers it or a later one

# It has one key for every "always", which chooses the last one, and shows no names.
WITHOUT_NAMES: Final = frozenset({"CodeCompanion.nvim"})


def read_client(params: object) -> EditorAbilities:
    """From the params of `initialize`, whatever they are."""
    if isinstance(offered := _object(params).get("protocolVersion"), int) and offered >= LATEST:
        return _of_version_two(_object(params))
    capabilities = _object(_object(params).get("clientCapabilities"))
    files = _object(capabilities.get("fs"))
    return EditorAbilities(
        shows_terminals=_object(capabilities.get("_meta")).get("terminal_output") is True,
        terminals=capabilities.get("terminal") is True,
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        tells_documents=isinstance(capabilities.get("nes"), dict),
        names_options=_object(_object(params).get("clientInfo")).get("name") not in WITHOUT_NAMES,
        asks=isinstance(_object(capabilities.get("elicitation")).get("form"), dict),  # an empty one says yes
    )


def _of_version_two(params: dict[str, object]) -> EditorAbilities:
    """Terminals of ours are shown by every editor of v2. Files and terminals of its own are no part of it."""
    capabilities = _object(params.get("capabilities"))
    return EditorAbilities(
        version=LATEST,
        shows_terminals=True,
        tells_documents=isinstance(capabilities.get("nes"), dict),
        names_options=_object(params.get("info")).get("name") not in WITHOUT_NAMES,
        asks=isinstance(_object(capabilities.get("elicitation")).get("form"), dict),
    )


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
