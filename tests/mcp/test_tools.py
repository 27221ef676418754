"""What a client can do, in both eras of the protocol: the same calls, the same results."""

import asyncio
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.mcp.peers import ERAS, NO, Person, a_server, call, client_of, connected, ran, refused, said, whole

pytestmark = pytest.mark.shell
each_era = pytest.mark.parametrize("era", ERAS)


@each_era
async def test_a_command_that_only_reads_runs_without_asking_or_a_shell(tmp_path: Path, era: str) -> None:
    """A3: policy first."""
    (tmp_path / "notes.txt").write_text("b\na\n")
    async with connected(tmp_path, era) as client:
        result = await ran(client, "sort notes.txt")
    assert (result["output"], result["exit_code"], result.get("running")) == ("a\nb\n", 0, None)
    assert "terminal_id" not in result


@each_era
async def test_the_person_is_asked_and_their_yes_runs_exactly_that(tmp_path: Path, era: str) -> None:
    """A3, P6: the question shows the whole command, its directory, risk, reason and rule."""
    person = Person()
    async with connected(tmp_path, era, person) as client:
        first = await ran(client, "X=5; touch made; echo $X; exit_with() { return 3; }; exit_with")
        second = await ran(client, "echo still $X")
    assert (first["output"], first["exit_code"]) == ("5\n", 3)
    assert (second["output"], second["terminal_id"]) == ("still 5\n", first["terminal_id"])
    assert (tmp_path / "made").exists()
    question = person.questions[0]
    for part in ("touch made; echo $X", str(tmp_path), "Risk: medium", "rule: "):
        assert part in question
    assert len(person.questions) == 2


async def test_the_danger_and_the_command_are_in_the_first_lines_of_a_question(tmp_path: Path) -> None:
    """P6: Claude Code shows three lines, cut at the width of its window; what is worst must be among them."""
    person = Person(NO)
    lines = "echo one\necho two\nrm -r important\necho three"
    async with connected(tmp_path, "legacy", person) as client:
        for command in ("touch made", lines, f"echo {'x' * 100}; touch made"):
            await refused(client, "run_command", command=command)
    short, several, long = (each.split("\n") for each in person.questions)
    reason = "It creates or updates made, in the workspace"
    assert short[:3] == [f"Run this command? Risk: medium. {reason}", "touch made", f"in {tmp_path}"]
    assert several[0].startswith("Run these 4 lines? Risk: ") and "important" in several[0]
    assert several[1] == "echo one ⏎ echo two ⏎ rm -r important ⏎ echo three …"
    assert lines in "\n".join(several)
    assert long[0] == f"Run this command of 117 characters? Risk: medium. {reason}"


@each_era
async def test_a_no_runs_nothing_and_says_so(tmp_path: Path, era: str) -> None:
    async with connected(tmp_path, era, Person(NO)) as client:
        told = await refused(client, "run_command", command="touch made")
    assert told.startswith("The person denied this")
    assert not (tmp_path / "made").exists()


@each_era
async def test_a_client_that_can_not_ask_is_told_why_and_how(tmp_path: Path, era: str) -> None:
    """A3: deny, with the reason, the rule, and how to allow it."""
    async with connected(tmp_path, era) as client:
        told = await refused(client, "run_command", command="npm test")
        verdict = await call(client, "check_command", command="npm test")
    for part in (
        "this client cannot ask",
        "rule: ",
        f"tarmac grants allow --workspace {tmp_path} -- 'npm test'",
        "--allow",
    ):
        assert part in told
    assert (verdict["decision"], verdict["risk"]) == ("ask", "medium")
    assert "tarmac grants allow" in verdict["asks"]


@each_era
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_decline_at_once_is_no_persons(tmp_path: Path, era: str, action: str) -> None:
    """A3: Codex declines by itself; that is told as "this client cannot ask"."""
    async with connected(tmp_path, era, Person(action=action, after=0)) as client:
        told = await refused(client, "run_command", command="touch made")
    assert "this client cannot ask: it declined by itself" in told
    assert not (tmp_path / "made").exists()


@each_era
async def test_a_decline_by_a_person_is_theirs(tmp_path: Path, era: str) -> None:
    async with connected(tmp_path, era, Person(action="decline")) as client:
        told = await refused(client, "run_command", command="touch made")
    assert told.startswith("The person denied this")


@each_era
async def test_a_yes_that_nobody_can_have_read_does_not_run_what_is_critical(tmp_path: Path, era: str) -> None:
    (tmp_path / "build").mkdir()
    async with connected(tmp_path, era, Person(after=0)) as client:
        told = await refused(client, "run_command", command="rm -rf build")
    assert "said yes by itself" in told
    assert (tmp_path / "build").exists()


@each_era
async def test_what_is_never_allowed_is_not_asked_about(tmp_path: Path, era: str) -> None:
    """P1: the floor."""
    person = Person()
    async with connected(tmp_path, era, person) as client:
        told = await refused(client, "run_command", command="rm -rf /")
    assert "floor.root" in told
    assert person.questions == []


@each_era
async def test_always_is_remembered_for_the_workspace(tmp_path: Path, era: str) -> None:
    """P5: the second time nobody is asked, in this server or another."""
    person = Person("Always allow exactly this line")
    async with connected(tmp_path, era, person) as client:
        await ran(client, "touch made")
    async with connected(tmp_path, era) as client:
        await ran(client, "touch made")
    assert len(person.questions) == 1


@each_era
async def test_what_takes_long_goes_on_and_can_be_waited_for(tmp_path: Path, era: str) -> None:
    """A3, A7: a call comes back with a handle and what there is; what is done is told as it begins, and after."""
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with connected(tmp_path, era, Person()) as client:
        command = "echo one; until [ -e go ]; do sleep 0.05; done; echo two"
        result = await client.call_tool("run_command", {"command": command, "timeout": 1.6}, progress_callback=hear)
        first: dict[str, Any] = result.structured_content
        listed = await call(client, "list_terminals")
        (tmp_path / "go").touch()
        waited = await call(client, "wait_for_terminal", id=first["terminal_id"])
        printed = await whole(client, waited["output_uri"])
    assert (first["running"], first["output"], "exit_code" in first) == (True, "one\n", False)
    assert [(each["id"], each["state"]) for each in listed["terminals"]] == [(first["terminal_id"], "running")]
    assert (waited["happened"]["what"], waited["happened"]["exit_code"]) == ("ended", 0)
    assert printed == "one\ntwo\n"
    assert heard[0] == (0, f"Running `{command}`")
    assert "one" in [message for _, message in heard]
    assert result.meta and result.meta["tarmac/title"] == f"Ran `{command}`"
    steps = [each for each, _ in heard][1 if era == ERAS[0] else 0 :]  # the question was a call of its own there
    assert steps == sorted(set(steps))


@each_era
async def test_a_persistent_terminal_is_a_handle_that_lasts(tmp_path: Path, era: str) -> None:
    """T14: opened, run in, typed into, read, interrupted, killed."""
    async with connected(tmp_path, era, Person()) as client:
        id = (await call(client, "open_persistent_terminal", label="dev"))["id"]
        await call(client, "run_persistent_command", id=id, command="cd /; A=1")
        asked = await call(client, "run_persistent_command", id=id, command="read -p 'Port? ' p; echo $A $p $PWD")
        sent = await call(client, "send_to_terminal", id=id, text="80")
        await call(client, "run_persistent_command", id=id, command="sleep 600", timeout=0.2)
        ended = await call(client, "interrupt_terminal", id=id)
        lines = await call(client, "read_terminal", id=id, command=2, lines="1-1")
        closed = await call(client, "kill_persistent_terminal", id=id)
        again = await call(client, "kill_persistent_terminal", id=id)
        gone = await refused(client, "run_persistent_command", id=id, command="ls")
    assert (asked["awaiting"], asked["prompt"].strip(), asked["running"]) == ("line", "Port?", True)
    assert (sent["output"].splitlines()[-1], sent["terminal"]["exit_code"]) == ("1 80 /", 0)
    assert (ended["terminal"]["reason"], ended["terminal"]["state"]) == ("interrupted", "idle")
    assert "Port? 80" in lines["output"]
    assert (closed, again) == ({"id": id, "closed": True}, {"id": id, "closed": False})
    assert f"Terminal {id} not found" in gone


@each_era
async def test_results_fit_their_schemas_and_have_no_null(tmp_path: Path, era: str) -> None:
    """A3: structured output with schemas."""
    async with connected(tmp_path, era, Person()) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        calls = [
            ("run_command", {"command": "seq 3; (exit 4)"}),
            ("run_command", {"command": "kill -9 $$"}),
            ("open_persistent_terminal", {}),
            ("list_terminals", {}),
            ("check_command", {"command": "make && rm -rf /"}),
        ]
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            jsonschema.validate(result.structured_content, tools[name].output_schema)
            assert "null" not in str(result.structured_content)


async def test_the_tools_are_told_the_same_way_each_time(tmp_path: Path) -> None:
    """A3: in an order that never changes, with annotations."""
    listings = []
    for era in ERAS:
        async with connected(tmp_path, era) as client:
            listings.append((await client.list_tools()).tools)
    assert [each.name for each in listings[0]] == [each.name for each in listings[1]]
    assert all(each.meta == {"anthropic/alwaysLoad": True} for each in listings[0])  # else Claude Code defers them
    read_only = [each.name for each in listings[0] if each.annotations and each.annotations.read_only_hint]
    looks = ["list_terminals", "read_terminal", "look_at_terminal", "wait_for_terminal", "check_command"]
    assert read_only == looks
    for each in listings[0]:
        jsonschema.Draft202012Validator.check_schema(each.input_schema)
        assert each.input_schema["additionalProperties"] is False


@each_era
async def test_a_wrong_call_is_told_in_a_sentence(tmp_path: Path, era: str) -> None:
    async with connected(tmp_path, era) as client:
        assert "missing value for required argument 'command'" in await refused(client, "run_command")
        assert "has no argument 'cmd'" in await refused(client, "run_command", cmd="ls", command="ls")
        assert "does not exist" in await refused(client, "run_command", command="ls", cwd="nowhere")
        assert "Terminal t99 not found" in await refused(client, "read_terminal", id="t99")
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool("make_coffee", {})
        with pytest.raises(Exception, match="no resource"):
            await client.read_resource("tarmac://nothing")


@each_era
async def test_calls_run_beside_each_other(tmp_path: Path, era: str) -> None:
    async with connected(tmp_path, era, Person()) as client:
        waits = [ran(client, f"until [ -e {n} ]; do sleep 0.02; done; echo {n}; touch {n + 1}") for n in (1, 2, 3)]
        (tmp_path / "1").touch()
        found = await asyncio.wait_for(asyncio.gather(*reversed(waits)), 20)
    assert sorted(each["output"] for each in found) == ["1\n", "2\n", "3\n"]


@each_era
async def test_long_output_is_cut_and_all_of_it_is_a_resource(tmp_path: Path, era: str) -> None:
    """A3: resources for terminals' full outputs."""
    async with connected(tmp_path, era, Person()) as client:
        planned = await ran(client, "seq 20000")
        asked = await ran(client, "N=20000; seq $N")
        wholes = [await whole(client, each["output_uri"]) for each in (planned, asked)]
        listed = [each.uri for each in (await client.list_resources()).resources]
    assert planned["truncated"] and asked["truncated"]
    assert wholes == ["".join(f"{n}\n" for n in range(1, 20001))] * 2
    assert {planned["output_uri"], asked["output_uri"]} <= set(listed)


@each_era
async def test_a_secret_is_never_typed_by_the_agent(tmp_path: Path, era: str) -> None:
    """T19: and it is told that nobody can do it here."""
    async with connected(tmp_path, era, Person()) as client:
        result = await client.call_tool("run_command", {"command": "read -s -p 'Password: ' p"})
        id = result.structured_content["terminal_id"]
        told = await refused(client, "send_to_terminal", id=id, text="hunter2")
    assert result.structured_content["awaiting"] == "secret"
    assert "Only a person may type it, and you can't" in said(result)
    assert "Nothing was sent" in told


async def test_the_whole_machine_is_no_workspace(tmp_path: Path) -> None:
    async with a_server(None, here=Path("/")) as server, client_of(server, ERAS[0]) as client:
        told = await refused(client, "run_command", command="ls")
    assert "--cwd" in told


@each_era
async def test_a_rule_of_the_user_needs_no_question(tmp_path: Path, era: str) -> None:
    """P4: `--allow` is such a rule."""
    values = {"policy.allow": ("touch",), "policy.deny": ("touch secret",)}
    async with connected(tmp_path, era, None, **values) as client:
        await ran(client, "touch made")
        told = await refused(client, "run_command", command="touch secret")
    assert (tmp_path / "made").exists()
    assert "is in the denied commands list" in told
