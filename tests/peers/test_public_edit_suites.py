"""Our edit tools against the public test suites of other agents.

The suites are not in this repository. Check them out below a folder, and name it in TARMAC_SUITES:

    codex       github.com/openai/codex             codex-rs/apply-patch/tests/fixtures/scenarios
    aider       github.com/Aider-AI/aider           tests/basic/test_editblock.py
    opencode    github.com/anomalyco/opencode       packages/opencode/test/tool
    gemini-cli  github.com/google-gemini/gemini-cli packages/core/src/tools/edit.test.ts
    cline       github.com/cline/cline              sdk/packages/core/src/extensions/tools/executors
    continue    github.com/continuedev/continue     core/edit

Each case counts as agreed when we accept and refuse the same, and make the same of the files. The last four are test
files in TypeScript: `suite_runner.mjs` runs them unchanged, with our tools in the place of theirs. It needs Node.js and
the packages of `web`.
"""

import ast
import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import EditFailed, TarmacError
from tarmac.terminals import TerminalRegistry
from tarmac.tools.edit import apply_diff, parse_blocks

pytestmark = pytest.mark.peers
CODEX_DIFFERS = {
    "015_failure_after_partial_success_leaves_changes": "a patch of which one file fails changes nothing",
    "024_preserves_mixed_line_endings": "a carriage return alone is part of its line",
}
AIDER_DIFFERS = {
    "test_replace_multiple_matches": "aider changes the first of several places, we refuse",
    "test_replace_multiple_matches_missing_whitespace": "aider changes the first of several places, we refuse",
}


def suite(*parts: str) -> Path:
    """A file or folder of a suite; the test is skipped without it."""
    folder = os.environ.get("TARMAC_SUITES")
    path = Path(folder or ".", *parts)
    if not folder or not path.exists():
        pytest.skip(f"TARMAC_SUITES names no folder with {'/'.join(parts)}: {parts[0]}'s cases were not run")
    return path


def report(name: str, agreed: dict[str, bool], capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Print the rate; the cases that differ."""
    different = {case for case, same in agreed.items() if not same}
    with capsys.disabled():
        print(f"\n{name}: {len(agreed) - len(different)} of {len(agreed)} cases agree")
        for case in sorted(different):
            print(f"  different: {case}")
    return different


def files(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


async def test_apply_patch_does_what_codex_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """S10: models that learnt Codex's apply_patch can use ours."""
    scenarios = suite("codex", "codex-rs", "apply-patch", "tests", "fixtures", "scenarios")
    agreed: dict[str, bool] = {}
    async with TerminalRegistry() as registry:
        for case in sorted(each for each in scenarios.iterdir() if each.is_dir()):
            work = tmp_path / case.name
            if (case / "input").is_dir():
                shutil.copytree(case / "input", work)
            else:
                work.mkdir()
            try:
                await Workshop(work, registry).call("apply_patch", patch=(case / "patch.txt").read_bytes().decode())
            except TarmacError:
                pass
            agreed[case.name] = files(work) == files(case / "expected")
    assert len(agreed) >= 25
    assert report("Codex apply_patch", agreed, capsys) <= set(CODEX_DIFFERS)


@dataclass(frozen=True)
class AiderCase:
    """One test of aider: what it gives to which function, and what it expects."""

    name: str
    function: str
    given: list[str]
    expected: object


def aider_cases(source: str) -> Iterator[AiderCase]:
    """The tests that give texts to a function and compare its result with a constant."""
    for test in (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)):
        if not test.name.startswith("test_"):
            continue
        known: dict[str, object] = {}
        made: dict[str, tuple[str, list[str]]] = {}
        for step in test.body:
            if isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Name):
                name, value = step.targets[0].id, step.value
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list":
                    value = value.args[0]
                if isinstance(value, ast.Constant):
                    known[name] = value.value
                elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                    names = [each.id for each in value.args if isinstance(each, ast.Name)]
                    made[name] = value.func.attr, [str(known.get(each, "")) for each in names]
            elif (call := getattr(step, "value", None)) and isinstance(call, ast.Call) and len(call.args) == 2:
                result, wanted = call.args
                if isinstance(result, ast.Name) and result.id in made:
                    expected = known.get(wanted.id) if isinstance(wanted, ast.Name) else _constant(wanted)
                    function, given = made[result.id]
                    yield AiderCase(test.name, function, given, expected)


def _constant(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def as_aider(case: AiderCase) -> bool | None:
    """Whether we make the same of it; None for what we have no counterpart for."""
    if case.function == "replace_most_similar_chunk" and isinstance(case.expected, str):
        whole, part, replaced = case.given
        block = f"<<<<<<< SEARCH\n{part}=======\n{replaced}>>>>>>> REPLACE\n"
        return apply_diff(whole, block).text == case.expected
    if case.function == "find_original_update_blocks" and isinstance(case.expected, list):
        wanted = [each[-2:] for each in case.expected if isinstance(each, tuple) and len(each) == 3]
        try:
            found = [("".join(f"{line}\n" for line in each.old), each.new) for each in parse_blocks(case.given[0])]
        except EditFailed:
            return not wanted
        return [(old, "".join(f"{line}\n" for line in new)) for old, new in found] == wanted
    return None


def test_apply_diff_does_what_aider_does(capsys: pytest.CaptureFixture[str]) -> None:
    """S10: models that learnt aider's blocks can use ours."""
    cases = aider_cases(suite("aider", "tests", "basic", "test_editblock.py").read_text())
    agreed = {each.name: same for each in cases if (same := as_aider(each)) is not None}
    assert len(agreed) >= 10
    assert report("aider editblock", agreed, capsys) <= set(AIDER_DIFFERS)


@dataclass(frozen=True)
class ScriptSuite:
    """The test files of an agent that is written in TypeScript."""

    agent: str
    adapter: str
    files: tuple[str, ...]
    least: int  # cases that must be found
    differs: dict[str, str]  # the end of a test's name, and why we do something else
    other: str = r"(?!)"  # tests that are not about edits


SUITES = [
    ScriptSuite(
        "opencode",
        "opencode",
        ("packages/opencode/test/tool/edit.test.ts", "packages/opencode/test/tool/apply_patch.test.ts"),
        least=45,
        differs={"appends trailing newline on update": "a missing final newline stays missing"},
        other="concurrent",
    ),
    ScriptSuite(
        "gemini-cli",
        "gemini",
        ("packages/core/src/tools/edit.test.ts",),
        least=45,
        differs={
            "multiple fuzzy replacements if multiple valid matches are found": "of several similar places we refuse",
        },
        other="null bytes|abort|FixLLM|IDE mode|diff stats|JIT|plan mode|outside the workspace",
    ),
    ScriptSuite(
        "cline",
        "cline",
        tuple(f"sdk/packages/core/src/extensions/tools/executors/{each}.test.ts" for each in ("apply-patch", "editor")),
        least=14,
        differs={
            "accepts the legacy shell wrapper around the patch": "a new file ends with a newline, as in Codex",
            "accepts an end sentinel with trailing whitespace": "a new file ends with a newline, as in Codex",
            "rejects insert_line 0 with the valid one-based boundary range": "line 0 is the end of the file",
        },
    ),
    ScriptSuite(
        "continue",
        "continue",
        (
            "core/edit/searchAndReplace/executeFindAndReplace.vitest.ts",
            "core/edit/searchAndReplace/multiEdit.vitest.ts",
            "core/edit/lazy/unifiedDiffApply.test.ts",
        ),
        least=45,
        differs={
            "whitespaceIgnoredMatch with different internal whitespace": "a line that the edit does not change stays",
            "empty old_string as insertion at beginning": "an empty search in a file that has text is refused",
            "whitespace differences using findSearchMatch": "one line is not three lines without white space",
            "should correctly apply multiple diff blocks": "new lines get the indentation of the file, here tabs",
        },
        other="validateMultiEdit",
    ),
]


@pytest.mark.parametrize("suite_of", SUITES, ids=lambda each: each.agent)
async def test_edits_do_what_other_agents_do(suite_of: ScriptSuite, capsys: pytest.CaptureFixture[str]) -> None:
    """S10: models that learnt another agent's edit tool can use ours."""
    agreed: dict[str, bool] = {}
    async with TerminalRegistry() as registry:
        for file in suite_of.files:
            path = suite(suite_of.agent, *file.split("/"))
            for result in [each async for each in script_results(suite_of.adapter, path, registry)]:
                if (result["checks"] or result["why"]) and not re.search(suite_of.other, result["test"]):
                    agreed[f"{path.name}: {result['test']}"] = not result["why"]
    different = report(suite_of.agent, agreed, capsys)
    assert len(agreed) >= suite_of.least
    assert {each for each in different if not each.endswith(tuple(suite_of.differs))} == set()


async def script_results(adapter: str, path: Path, registry: TerminalRegistry) -> AsyncIterator[dict[str, Any]]:
    """Run a test file; its calls are answered by our tools."""
    here = Path(__file__)
    web = here.parents[2] / "web"
    node = shutil.which("node")
    if node is None or not (web / "node_modules").is_dir():
        pytest.skip(f"Node.js and the packages of web are needed (make web): {path.name} was not run")
    words = [node, str(here.with_name("suite_runner.mjs")), str(web), adapter, str(path)]
    running = await asyncio.create_subprocess_exec(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 24)
    assert running.stdin is not None and running.stdout is not None
    async for line in running.stdout:
        message = json.loads(line)
        if "test" in message:
            yield message
        if "call" not in message:
            continue
        workshop = Workshop(Path(message["cwd"]), registry)
        try:
            answer = {"text": text_of(await workshop.call(message["call"], **message["arguments"]))}
        except TarmacError as error:
            answer = {"refused": str(error)}
        running.stdin.write(json.dumps(answer).encode() + b"\n")
        await running.stdin.drain()
    assert await running.wait() == 0
