"""Plain words are typed as they are when the shell's prompt says that all is calm; what could go wrong with that."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tarmac.errors import DirectoryUnavailable
from tarmac.terminals import Result, open_terminal
from tarmac.terminals.shell.dialects.bash import Bash
from tarmac.terminals.shell.pty_terminal import PtyTerminal

pytestmark = pytest.mark.shell


@pytest.fixture
async def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PtyTerminal]:
    """A bash whose start-up files leave it calm."""
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        assert isinstance(terminal, PtyTerminal)
        yield terminal


def told(result: Result) -> tuple[str, int | None, str, str]:
    return result.output, result.exit_code, result.reason, result.evidence


@pytest.mark.parametrize("command", [":", "git status -s", "A=1", "make -j2 all", "./x a.b/c --d=e,f", " ls", "cd .."])
def test_plain_words_may_be_typed(command: str) -> None:
    """T22: nothing in them that a terminal or a shell could mangle."""
    assert Bash("bash").may_type(command)


@pytest.mark.parametrize(
    "command",
    [
        *("done", " if", "time ls", "a;b", "echo $x", "a|b", "a\tb", "ls *", "PS1=x", "PROMPT_COMMAND=", "unset PS0"),
        *(
            "trap x INT",
            ". x",
            "source x",
            "exec ls",
            "set -x",
            "alias a=b",
            "x" * 600,
            "echo '",
            "a\nb",
            "#",
            "a&",
            "é",
        ),
    ],
)
def test_other_words_are_loaded(command: str) -> None:
    """T22: nor anything that changes how the shell tells what it did."""
    assert not Bash("bash").may_type(command)


async def test_a_typed_command_has_its_output_and_its_exit_code(terminal: PtyTerminal) -> None:
    """T14: one after another."""
    assert told(await terminal.run("echo one")) == ("one\n", 0, "done", "mark")
    assert told(await terminal.run("echo two")) == ("two\n", 0, "done", "mark")
    assert told(await terminal.run("false")) == ("", 1, "done", "mark")
    assert (await terminal.run("no-such-program")).exit_code == 127
    assert told(await terminal.run("echo three")) == ("three\n", 0, "done", "mark")


async def test_status_and_last_word_pass_between_typed_and_loaded_commands(terminal: PtyTerminal) -> None:
    """T8: `$?` and `$_` are what the last command left, however either was run."""
    await terminal.run("echo one")
    await terminal.run("false")
    assert (await terminal.run('echo "$?"')).output == "1\n"
    await terminal.run("mkdir made")
    assert (await terminal.run('cd "$_"; pwd')).output == f"{terminal.initial_cwd / 'made'}\n"
    await terminal.run("(exit 7)")
    await terminal.run("f() { echo $?; }")
    await terminal.run("false")
    assert (await terminal.run("f")).output == "1\n"


async def test_an_alias_that_leaves_the_line_unfinished_is_a_syntax_error(terminal: PtyTerminal) -> None:
    """T18: the shell would wait for the rest for ever; the command is loaded instead, and run once."""
    await terminal.run("alias open='echo \"' opened='if true'")
    for name in ("open", "opened"):
        result = await terminal.run(f"{name} x", timeout=10)
        assert result.exit_code in (1, 2) and result.reason == "done", result
        assert "unexpected" in result.output
        assert told(await terminal.run("echo next")) == ("next\n", 0, "done", "mark")


async def test_an_alias_that_is_a_syntax_error_says_so_once(terminal: PtyTerminal) -> None:
    """T15: no start mark came, so it is loaded: the same words, evaluated, and the shell's own complaint."""
    await terminal.run("alias wrong='echo hi >> seen; )'")
    result = await terminal.run("wrong", timeout=10)
    assert result.exit_code == 2 and result.output.count("syntax error") == 1, result
    assert not (terminal.cwd / "seen").exists()


async def test_an_alias_with_a_comment_hides_nothing_of_ours(terminal: PtyTerminal) -> None:
    """T14: there is nothing of ours on the line."""
    await terminal.run("alias say='echo said #'")
    assert told(await terminal.run("say x y")) == ("said\n", 0, "done", "mark")


async def test_a_function_that_prints_our_prompt_ends_nothing(terminal: PtyTerminal) -> None:
    """T20: the mark in it is one of before."""
    await terminal.run('f() { echo "${PS1@P}"; read -t 0.3 <> <(:); echo over; return 3; }')
    result = await terminal.run("f")
    assert result.exit_code == 3 and result.output.endswith("over\n")


async def test_a_function_that_takes_our_hooks_away_is_told_all_the_same(terminal: PtyTerminal) -> None:
    """T18: asked, when no mark can come; then they are back."""
    await terminal.run("f() { echo ran; unset PROMPT_COMMAND PS0; PS1='> '; return 4; }")
    result = await terminal.run("f", timeout=10)
    assert result.output in ("ran\n", "ran\n> ") and result.exit_code == 4  # a prompt without a mark may be output
    assert told(await terminal.run("echo next")) == ("next\n", 0, "done", "mark")
    assert told(await terminal.run("echo again")) == ("again\n", 0, "done", "mark")


async def test_a_function_that_plays_with_our_count_confuses_nobody(terminal: PtyTerminal) -> None:
    """T20: a count that does not fit is no proof."""
    await terminal.run("f() { __tarmac_k=99; return 6; }")
    assert (await terminal.run("f", timeout=10)).exit_code == 6
    assert told(await terminal.run("echo next")) == ("next\n", 0, "done", "mark")


async def test_what_a_typed_command_did_not_read_is_not_run(terminal: PtyTerminal) -> None:
    """T19: lines sent to a command that ended without reading them are thrown away."""
    await terminal.run(":")
    execution = await terminal.start("sleep 0.2")
    await execution.send("touch typed\n")
    assert (await execution.result(10)).exit_code == 0
    assert told(await terminal.run("ls")) == ("", 0, "done", "mark")


async def test_under_errexit_a_typed_failure_ends_the_shell_as_it_does_at_a_prompt(terminal: PtyTerminal) -> None:
    """T15: the shell's death is seen by waitpid."""
    await terminal.run("set -e")
    result = await terminal.run("false")
    assert (result.reason, result.evidence, result.exit_code) == ("terminal closed", "waitpid", 1)
    assert (await terminal.run("echo fresh")).fresh_shell


async def test_a_typed_cd_moves_the_terminal(terminal: PtyTerminal) -> None:
    """T7: the shell says where it is, the kernel agrees."""
    (terminal.cwd / "sub").mkdir()
    await terminal.run(":")
    result = await terminal.run("cd sub")
    assert result.cwd == terminal.cwd == terminal.initial_cwd / "sub"
    result = await terminal.run("mv ../sub ../renamed")
    assert result.cwd == terminal.initial_cwd / "renamed"


async def test_what_ps0_prints_belongs_to_no_command(terminal: PtyTerminal) -> None:
    """T20: PS0 is shown between a line and what it prints, and stays out of the output; typed or loaded."""
    await terminal.run("PS0='on $((40 + 2)) '; printf done")
    results = [told(await terminal.run(command)) for command in ("echo one", "echo two", "echo $((3))", "echo four")]
    assert results == [(f"{each}\n", 0, "done", "mark") for each in ("one", "two", "3", "four")]


@pytest.mark.parametrize("editor", ["vi", "emacs"])
async def test_a_line_editor_that_start_up_files_turn_on_is_for_people(
    editor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T20: `set -o vi` in .bashrc shows nothing in results, and is the editor of a person's lines."""
    (tmp_path / ".bashrc").write_text(f"set -o {editor}\nbind 'set show-mode-in-prompt on'\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        loaded = [told(await terminal.run(command)) for command in ("echo $((1))", "printf $((2))", "echo $((3))")]
        plain = told(await terminal.run("echo four"))
        its_own = await terminal.run("echo $__tarmac_editor")
    assert loaded == [("1\n", 0, "done", "mark"), ("2", 0, "done", "mark"), ("3\n", 0, "done", "mark")]
    assert (plain, its_own.output) == (("four\n", 0, "done", "mark"), f"{editor}\n")


async def test_the_first_command_of_a_shell_is_typed_with_its_move(terminal: PtyTerminal, tmp_path: Path) -> None:
    """T6: it runs there, nothing of the move is in its output, and the terminal stands there afterwards."""
    there = tmp_path / "there"
    there.mkdir()
    result = await terminal.run("pwd", cwd=there)
    assert (told(result), result.cwd) == ((f"{there}\n", 0, "done", "mark"), there)
    assert terminal.session is not None and terminal.session._loaded == 0
    odd = tmp_path / "a $(x) 'y'"
    odd.mkdir()
    assert (await terminal.run("pwd", cwd=odd)).output == f"{odd}\n"


@pytest.mark.parametrize("command", ["touch made", "sleep 60"])
async def test_a_first_command_that_cannot_get_there_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """T6: in its directory or not at all."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("enable -n cd\n")
    there = tmp_path / "there"
    there.mkdir()
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        with pytest.raises(DirectoryUnavailable, match=r"could not move to .*there; the command was not run"):
            await terminal.run(command, cwd=there)
        result = await terminal.run("ls")
        assert told(result) == ("there\n", 0, "done", "mark")


async def test_a_shell_is_calm_from_its_first_prompt_on(terminal: PtyTerminal) -> None:
    """T22: no history of ours begins before the first command."""
    assert terminal.session is not None
    assert (await terminal.run("echo one")).output == "one\n"
    assert terminal.session._loaded == 0
    assert (await terminal.run("history")).output == ""


async def test_another_prompt_of_the_same_length_is_noticed(terminal: PtyTerminal) -> None:
    """T20, D10: of PS1 the hook compares the length. The shell is asked how that command ended, and then healed."""
    await terminal.run("f() { printf -v PS1 '%*s' ${#PS1} x; return 3; }")
    sly, after = await terminal.run("f"), await terminal.run("false")
    assert (sly.exit_code, sly.evidence) == (3, "asked")
    assert told(after) == ("", 1, "done", "mark")
