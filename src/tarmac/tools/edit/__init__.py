"""Edits: text in, text or a reason out. No model, no policy, no terminal.

bytes ─decode→ TextFile.text ─apply_diff | insert_content | search_and_replace | plan_patch→ Edited
Edited.text ─TextFile.with_text→ bytes ─save_file→ disk

Inside, every line ends in LF. Line endings, BOM, encoding and a missing last newline are restored when the file is
written, so an edit changes only the lines that it names.
"""

from tarmac.file_system import Saved, read_bytes, remove_file, save_file
from tarmac.tools.edit.content_checks import (
    WRITE_ALL,
    clean_content,
    find_omissions,
    is_cut_short,
    is_prose,
    refuse_omissions,
    strip_fences,
    strip_line_numbers,
)
from tarmac.tools.edit.diff_blocks import Block, apply_diff, parse_blocks
from tarmac.tools.edit.patch import FileChange, headless, is_patch, parse_patch, plan_patch
from tarmac.tools.edit.replace import insert_content, search_and_replace
from tarmac.tools.edit.splice import Applied, Edited, FailedPart, broken_by
from tarmac.tools.edit.text_file import TextFile, decode, line_ending, new_text_file
from tarmac.tools.edit.unified_diff import FileDiff, unified_diff

__all__ = [
    "WRITE_ALL",
    "Applied",
    "Block",
    "Edited",
    "FailedPart",
    "FileChange",
    "FileDiff",
    "Saved",
    "TextFile",
    "apply_diff",
    "broken_by",
    "clean_content",
    "decode",
    "find_omissions",
    "headless",
    "insert_content",
    "is_cut_short",
    "is_patch",
    "is_prose",
    "line_ending",
    "new_text_file",
    "parse_blocks",
    "parse_patch",
    "plan_patch",
    "read_bytes",
    "refuse_omissions",
    "remove_file",
    "save_file",
    "search_and_replace",
    "strip_fences",
    "strip_line_numbers",
    "unified_diff",
]
