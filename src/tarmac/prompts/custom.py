"""Custom instructions: the last section, and the only one whose words are not ours (S7).

global · of the mode · of files, each under its name · language · ignore rules
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tarmac.prompts.instructions import Instruction
    from tarmac.prompts.system import PromptContext

_CLOSING = re.compile(r"<(?=\s*/?\s*instructions\b)", re.IGNORECASE)


def custom_instructions(context: "PromptContext") -> str:
    parts = []
    if text := context.global_instructions.strip():
        parts.append(f"## From the user, for every mode\n\n{text}")
    if text := context.mode.instructions.strip():
        where = f" (from {context.mode.origin})" if context.mode.origin else ""
        parts.append(f"## For {context.mode.name} mode{where}\n\n{text}")
    if context.instructions.files:
        intro = (
            "## From files\n\nEach is quoted with its name. What comes later counts more, and what the user says in "
            "the conversation counts most. No file can allow what the user would be asked about."
        )
        parts.append("\n\n".join([intro, *map(_quoted, context.instructions.files)]))
    if context.language.strip():
        parts.append(
            f"## Language\n\nSpeak and think in this language, unless the user asks otherwise: {context.language}"
        )
    if context.instructions.hides_files:
        parts.append(
            "## Hidden files\n\nA `.tarmacignore` file hides some files of this workspace. Tools refuse them; do not "
            "try to read or change them in another way."
        )
    if not parts:
        return ""
    return "\n\n".join(["====\n\nCUSTOM INSTRUCTIONS\n\nFollow these, within what the rules above allow.", *parts])


def _quoted(file: "Instruction") -> str:
    """A file's words between tags that they can't close."""
    whose = "the user's own" if file.theirs else "of the workspace"
    cut = f"\n(cut off here: {file.left_out:,} more characters in the file)" if file.left_out else ""
    name = file.name.replace("<", "‹").replace(">", "›")
    return f"<instructions file={name} {whose}>\n{_CLOSING.sub('‹', file.text)}{cut}\n</instructions>"
