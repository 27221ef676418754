"""A line of plain words is read here, and no parser is started for it: `npm test`, `git diff src/main.py`.

plain_tree(line) → the very tree that the parser gives for it, in any dialect; None: the parser is needed

Plain are letters, digits and a few signs that mean nothing to any shell, in words with single spaces between. A word
that begins a construct, or that the parser has a node of its own for, is none in the first place.
"""

import re
from collections.abc import Mapping

LONGEST = 512  # characters
_PLAIN = re.compile(r"[A-Za-z0-9_%+:,./@-]+(?: [A-Za-z0-9_%+:,./@-]+)*")
_SPECIAL = frozenset(
    """
    if then elif else fi for foreach in do done end case esac while until select function time coproc repeat always
    declare typeset local export readonly nameref integer float let nocorrect noglob @test
""".split()
)


def plain_tree(line: str) -> Mapping[str, object] | None:
    """The syntax tree of a line that is one command of plain words."""
    if len(line) > LONGEST or not _PLAIN.fullmatch(line):
        return None
    words = line.split(" ")
    if words[0] in _SPECIAL:
        return None
    args: list[object] = []
    offset = 0
    for word in words:
        start, end = _place(offset), _place(offset + len(word))
        part = {"Type": "Lit", "Pos": start, "End": end, "ValuePos": start, "ValueEnd": end, "Value": word}
        args.append({"Pos": start, "End": end, "Parts": [part]})
        offset += len(word) + 1
    start, end = _place(0), _place(len(line))
    call = {"Type": "CallExpr", "Pos": start, "End": end, "Args": args}
    statement = {"Pos": start, "End": end, "Cmd": call, "Position": start}
    return {"Type": "File", "Pos": start, "End": end, "Stmts": [statement]}


def _place(offset: int) -> dict[str, int]:
    return {"Offset": offset, "Line": 1, "Col": offset + 1}
