"""The descriptions of programs: each stands in one place, with all that is known of it."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import tarmac.policy
from tarmac.policy.programs import program
from tarmac.policy.programs.program import Trait, entries, known, registry
from tarmac.policy.programs.readonly import PROVERS
from tarmac.policy.programs.risk import _SPECIALS
from tarmac.policy.programs.rules import names

POLICY = Path(tarmac.policy.__file__).parent
# The tables, and modules that know a language: their words are keywords.
LANGUAGE = ("parse/", "programs/rules/")
# Words that are names of programs as well, and mean something else here: options, kinds, scopes, shells to run.
OTHER = {
    "approval": "yes task :",
    "files": ". file",
    "grants": "task . w code command script pip pdb read",
    "judge": "bash sh zsh dash ksh fish host : command",
    "judgement": "bash zsh true cd",
    "places": ".",
    "plan": "cat : true false local",
    "plan_confinement": ": code",
    "programs/checks": """
        . : R bzip2 env eval exec file format git gzip help link ls ps route sh sort svn test write xz zstd
    """,
    "programs/effects": ". kind code script",
    "programs/program": """
        : . most prove local core link links mode modules server shell command script code filters file sed rev
    """,
    "programs/readonly": ". : exec ls R bash pip command cat env",
    "programs/repository": ". true false",
    "programs/risk": ". R init find mkfs script",
    "programs/scripts": """
        . : [ break continue do else exit for function if in next print printf return split switch while
    """,
    "programs/specials": ". [ : cat",
    "sandbox": "bwrap sh :",
    "trial": "bwrap bash",
    "verdict": "bash",
    "visible": "[",
}


def test_a_program_stands_in_one_table_once() -> None:
    """Every name, with the other names of an entry, over all tables."""
    counted = Counter(name for names_, _ in program._all_entries() for name in names(names_))
    assert [name for name, times in counted.items() if times > 1] == []
    assert len(counted) == len(registry()) > 1_500
    assert all(name == " ".join(name.split()) and name for name in counted)


@pytest.mark.parametrize("module", sorted(POLICY.rglob("*.py")), ids=lambda path: str(path.relative_to(POLICY)))
def test_no_module_knows_a_program_by_its_name(module: Path) -> None:
    """What is known of `timeout`, `git` or `find` is in its entry: code asks for traits and fields."""
    where = module.relative_to(POLICY).with_suffix("").as_posix()
    if where.startswith(LANGUAGE):
        return
    programs = {name.partition(" ")[0] for name in registry()}
    said = {word for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))) for word in _words(node)}
    assert said & programs <= set(OTHER.get(where, "").split())


def _words(node: ast.AST) -> list[str]:
    """A text, or the words of a list that is written as one text."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return text.split()
        case _:
            return []


def test_every_trait_special_and_prover_is_of_some_program_and_every_name_in_the_tables_is_known() -> None:
    found = [registry()[name] for name in registry()]
    assert set(Trait) == {trait for each in found for trait in each.traits}
    assert {each.special for each in found} - {""} == set(_SPECIALS)
    assert {each.prove for each in found} - {""} == set(PROVERS)
    assert {each.grant for each in found} == {"", "never", "line", "command", "script"}
    assert all(entry.get("like", "git log") in {**entries(), "log": {}} for entry in entries().values())


def test_one_description_answers_every_question() -> None:
    """`sed` is read as a script, writes in place, keeps to the files it is given, and is granted by the line only."""
    sed = known("sed")
    assert sed.reads is not None
    assert (sed.reads.check, sed.special, sed.writes_by, sed.grant) == (
        "sed", "edit_stream", ("-i", "--in-place"), "line",
    )  # fmt: skip
    timeout = known("timeout")
    assert timeout.runs is not None
    assert (timeout.starts_only, timeout.runs.skip, timeout.grant) == (True, 1, "line")
    assert known("git").changes == ("mv", "rm", "checkout", "restore")
    assert Trait.FINDS in known("find").traits
    assert known("a-program-that-nobody-knows") == program.Program()
