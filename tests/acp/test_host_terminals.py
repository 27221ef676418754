"""terminal/* of ACP v1, to the letter: what the protocol says, and what it leaves open as docs/host.md decides it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acp.hosting import hosting
from tests.acp.test_host import create, on

from tarmac.acp.host.agent_terminals import MOST_OPEN, whole_characters
from tarmac.terminals.process import processes

pytestmark = [pytest.mark.shell, pytest.mark.slow]
EXITED = {"exitCode": 0, "signal": None}


@given(st.text(max_size=40), st.integers(0, 60))
def test_a_limit_is_kept_from_the_beginning_at_a_character(text: str, most: int) -> None:
    """A1: the last bytes, whole characters; fewer than the limit by less than one character."""
    data = text.encode("utf-8", "replace")
    last = data[max(len(data) - most, 0) :]
    kept, cut = whole_characters(last, most, middle=len(data) > most)
    raw = kept.encode()
    assert len(raw) <= most and data.decode().endswith(kept) and not cut
    assert len(data) <= most or most - len(raw) < 4


@given(st.binary(max_size=60), st.integers(0, 60), st.booleans())
def test_whatever_was_printed_it_is_text_within_the_limit(data: bytes, most: int, middle: bool) -> None:
    kept, _ = whole_characters(data[-most:] if most else b"", most, middle=middle)
    assert len(kept.encode()) <= most


async def test_an_output_grows_and_has_no_exit_status_before_its_end(tmp_path: Path) -> None:
    """A1: output at any time; exitStatus only after the exit; truncated only when something is missing."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            create("printf abc; touch ready; until [ -e go ]; do sleep 0.01; done; printf def", outputByteLimit=6),
            {"shell": "until [ -e ready ]; do sleep 0.01; done"},
            on("output", "before"),
            {"shell": "touch go"},
            on("wait_for_exit", "w"),
            on("wait_for_exit", "again"),
            on("output", "after"),
            on("kill", "k"),
            on("wait_for_exit", "still"),
        )
    assert found["before"] == {"output": "abc", "truncated": False}
    assert found["after"] == {"output": "abcdef", "truncated": False, "exitStatus": EXITED}
    assert found["w"] == found["again"] == found["still"] == EXITED  # a kill after the end changes nothing
    assert found["k"] == {}


@pytest.mark.parametrize(("limit", "text", "truncated"), [(0, "", True), (2, "ef", True), (6, "abcdef", False)])
async def test_the_limit_is_that_of_the_terminal(tmp_path: Path, limit: int, text: str, truncated: bool) -> None:
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            create("printf abcdef", outputByteLimit=limit), on("wait_for_exit", "w"), on("output", "o")
        )
    assert (found["o"]["output"], found["o"]["truncated"]) == (text, truncated)


async def test_a_command_ends_with_its_process_whoever_holds_its_pipe(tmp_path: Path) -> None:
    """A1: a child in the background keeps the pipe open; release ends it."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        async with asyncio.timeout(10):
            found = await stage.play(
                create("sleep 1000 & echo $!"), on("wait_for_exit", "w"), on("output", "o"), on("release", "r")
            )
        pid = found["o"]["output"].strip()
    assert found["w"] == EXITED
    assert processes.look(int(pid)) is None


async def test_its_input_has_ended_and_never_is_the_transport(tmp_path: Path) -> None:
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(create("cat; echo end"), on("wait_for_exit", "w"), on("output", "o"))
    assert (found["w"], found["o"]["output"]) == (EXITED, "end\n")


async def test_every_method_knows_a_released_terminal_no_more(tmp_path: Path) -> None:
    """A1: the id is invalid for all of terminal/*; that of another is, too."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        methods = ("output", "wait_for_exit", "kill", "release")
        found = await stage.play(create("true"), on("release", "r"), *(on(each, each) for each in methods))
    assert found["r"] == {}
    assert [found[each]["error"]["code"] for each in methods] == [-32002] * 4


async def test_what_makes_no_sense_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"command": "touch made", "cwd": "relative"},
        {"command": "touch made", "cwd": str(tmp_path / "no")},
        {"command": "touch made", "args": "x"},
        {"command": "touch", "args": ["a\0b"]},
        {"command": "touch made", "env": [{"name": "a b", "value": "x"}]},
        {"command": "touch made", "env": {"A": "b"}},
        {"command": "touch made", "outputByteLimit": -1},
        {"command": "touch made", "outputByteLimit": "6"},
        {"command": " "},
        {"command": "touch\0made"},
        {},
    ]
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        found = await stage.play(
            *({"call": "terminal/create", "params": each, "as": str(n)} for n, each in enumerate(wrong))
        )
    assert [found[str(n)]["error"]["code"] for n in range(len(wrong))] == [-32602] * len(wrong)
    assert list((tmp_path / "work").iterdir()) == []


async def test_an_agent_that_releases_nothing_comes_to_a_limit(tmp_path: Path) -> None:
    """A1: so many terminals at once; one released makes room for another."""
    async with hosting(tmp_path, auto="all", attended=False) as stage:
        many = [
            {"call": "terminal/create", "params": {"command": f"echo {n}"}, "as": f"t{n}"} for n in range(MOST_OPEN + 1)
        ]
        found = await stage.play(*many)
        assert found[f"t{MOST_OPEN}"]["error"]["code"] == -32600
        again = {"call": "terminal/create", "params": {"command": "ls"}, "as": "more"}
        free = {"call": "terminal/release", "params": {"terminalId": "$t3.terminalId"}, "as": "r"}
        found = await stage.play(free, again)
        assert "terminalId" in found["more"]


async def test_a_directory_outside_is_asked_about(tmp_path: Path) -> None:
    """A1: the agent does not choose where the workspace ends (CVE-2025-59532)."""
    async with hosting(tmp_path) as stage:
        found = await stage.play(create("ls", cwd="/etc"))
    assert (found["t"]["error"]["code"], len(stage.asked)) == (-32010, 1)
