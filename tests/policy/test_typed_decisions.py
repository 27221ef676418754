"""Nothing is decided by reading text that was made for a person."""

import ast
from pathlib import Path

import pytest

import tarmac

SOURCE = Path(tarmac.__file__).parent
TOLD = frozenset("reason explanation does words rule why trouble told personal".split())  # of verdicts, effects, proofs
READS = frozenset(["startswith", "endswith", "find", "index", "removeprefix", "split"])


def _told(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in TOLD


def decisions_from_text(source: str) -> list[int]:
    """The lines in which a told text is searched for words, or compared with a literal rule."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            held = node.func.value
            if isinstance(held, ast.Attribute) and held.attr in TOLD - {"words"}:
                found.append(node.lineno)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            literal = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in sides)
            within = any(isinstance(each, ast.In | ast.NotIn) for each in node.ops)
            told = [each for each in sides if _told(each)]
            if literal and within and isinstance(node.left, ast.Constant) and _told(sides[-1]):
                found.append(node.lineno)  # "Nobody" in answer.reason
            if literal and any(isinstance(each, ast.Attribute) and each.attr == "rule" for each in told):
                found.append(node.lineno)  # verdict.rule == "ask.unknown"
    return found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('if "runs" in effect.does: pass', True),
        ('if verdict.reason.startswith("it "): pass', True),
        ('if verdict.rule == "ask.unknown": pass', True),
        ('if part.rule.split(".")[0] == "read": pass', True),
        ("if verdict.rule == Rule.ASK_UNKNOWN: pass", False),
        ('if "git" in simple.texts: pass', False),
    ],
)
def test_the_search_finds_such_decisions(line: str, found: bool) -> None:
    assert bool(decisions_from_text(line)) == found


def test_no_decision_is_read_from_text() -> None:
    """P1: what is allowed rests on values; a wording can be changed without changing what is allowed."""
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in decisions_from_text(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []
