"""PURE: what an editor says of itself in `initialize`, as far as it matters here. What it does not say, it can't."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorAbilities:
    """An editor's abilities."""

    shows_terminals: bool = False  # ours, by `_meta.terminal_*`
    terminals: bool = False  # it runs commands in its own: all of terminal/*
    reads_files: bool = False  # it tells what its buffers hold: fs/read_text_file
    asks: bool = False  # it shows forms: elicitation/create


def read_client(params: object) -> EditorAbilities:
    """From the params of `initialize`, whatever they are."""
    capabilities = _object(_object(params).get("clientCapabilities"))
    return EditorAbilities(
        shows_terminals=_object(capabilities.get("_meta")).get("terminal_output") is True,
        terminals=capabilities.get("terminal") is True,
        reads_files=_object(capabilities.get("fs")).get("readTextFile") is True,
        asks=isinstance(_object(capabilities.get("elicitation")).get("form"), dict),  # an empty one says yes
    )


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
