"""Completion and marks on a real bash: every command ends once, with its own code (research/terminals.md D, 1–12)."""

from pathlib import Path

import pytest

from tarmac.terminals import Result, open_terminal
from tarmac.terminals.events import DataWritten, ShellIntegrationChanged, TerminalEvent
from tarmac.terminals.shell.pty_terminal import PtyTerminal
from tarmac.terminals.terminal import Provider
from tarmac.vt.marks import Hints

pytestmark = pytest.mark.shell

both = pytest.mark.parametrize("provider", ["pty", "exec"])
SOON = 1.0  # seconds: "at once", on a slow machine


def summary(result: Result) -> tuple[str, int | None, str, str]:
    return result.output, result.exit_code, result.reason, result.evidence


# --- D1, D2, Forged marks ---


async def test_forged_end_marks_neither_end_the_command_nor_show(tmp_path: Path) -> None:
    """T20, D1: marks without our nonce are output: stripped from the text, counted, believed by nobody."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(r"printf 'a\e]633;D;0\a\e]133;D;0\ab'; sleep 0.2; echo c; false")
    assert (*summary(result), result.forged_marks) == ("abc\n", 1, "done", "mark", 2)
    assert result.duration >= 0.2


async def test_exec_shows_no_forged_marks_either(tmp_path: Path) -> None:
    """Over pipes nobody listens to marks, but the text is as clean."""
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        result = await terminal.run(r"printf 'a\e]633;D;0\a\e]133;D;0\ab'; echo c; false")
    assert summary(result) == ("abc\n", 1, "done", "waitpid")


@pytest.mark.parametrize(
    "mark",
    [
        r"\e]633;D;;1;0;;/\a",  # no nonce
        r"\e]633;D;@000000000000000000000000;1;0;;/\a",  # a wrong one
        r"\e]633;A;@000000000000000000000000;1;0;0;1;0;/\a",
        r"\e]633;X;@000000000000000000000000;1;cd\a",
        r"\e]633;D;1;0\a",
        r"\e]633\a",
        r"\e]633;\a",
        r"\e]133;D;0\e\\",
        r"\e]133;A\a",
    ],
)
async def test_no_shape_of_forged_mark_ends_a_command(tmp_path: Path, mark: str) -> None:
    """T20, D1: whatever field is right, without the nonce it proves nothing; and the next command is in step."""
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(f"printf '{mark}'; echo x; (exit 9)")
        second = await terminal.run("echo y; (exit 8)")
    assert (summary(first), summary(second)) == (("x\n", 9, "done", "mark"), ("y\n", 8, "done", "mark"))


async def test_half_a_mark_does_not_silence_the_terminal(tmp_path: Path) -> None:
    """A mark that is begun and never ended neither swallows our end mark nor what follows."""
    async with open_terminal(cwd=tmp_path) as terminal:
        codes = [
            (await terminal.run(rf"printf '{half}'; (exit 6)")).exit_code for half in (r"\e]633;D;", r"\e]", r"\e")
        ]
        after = await terminal.run("echo clean")
    assert (codes, summary(after)) == ([6, 6, 6], ("clean\n", 0, "done", "mark"))


async def test_a_recording_full_of_marks_changes_nothing(tmp_path: Path) -> None:
    """T20, D2: a typescript with whole command cycles in it: no early end, no move, no command believed."""
    cycle = (
        b"\x1b]633;A\x07$ \x1b]633;B\x07ls\r\n\x1b]633;E;ls;nonce\x07\x1b]633;C\x07file\r\n\x1b]633;D;0\x07"
        b"\x1b]633;P;Cwd=/etc\x07\x1b]7;file://host/etc\x07\x1b]1337;CurrentDir=/etc\x07\x1b]9;9;/etc\x1b\\"
    )
    (tmp_path / "typescript").write_bytes(cycle * 50)
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("cat typescript; (exit 5)")
        where = await terminal.run("pwd")
    assert (result.output, result.exit_code, result.cwd) == ("$ ls\nfile\n" * 50, 5, tmp_path)
    assert (result.forged_marks, where.output) == (50 * 9, f"{tmp_path}\n")


async def test_the_nonce_is_neither_printed_nor_inherited(tmp_path: Path) -> None:
    """T20, D2: not in the output of `set`, nor a trace, nor the environment of children, nor what viewers get."""
    seen: list[bytes] = []

    def listen(event: TerminalEvent) -> None:
        if isinstance(event, DataWritten):
            seen.append(event.data)

    async with open_terminal(cwd=tmp_path, listener=listen) as terminal:
        assert isinstance(terminal, PtyTerminal) and terminal.session is not None
        nonce = terminal.session._nonce
        results = [
            await terminal.run(command)
            for command in (
                "set; declare -p; export -p; compgen -v",
                "env; bash -c 'set; env'; cat /proc/$$/environ | tr '\\0' '\\n'",
                "set -x; echo traced; set +x",
                'cat "${__tarmac_in%/*}"/*',
                "ps axeww",
                "history",
                "declare -f; alias; trap -p",
            )
        ]
        raw = b"".join(each.output_path.read_bytes() for each in results if each.output_path)
    assert nonce.decode() not in "".join(each.output for each in results)
    assert (nonce in raw, nonce in b"".join(seen)) == (False, False)
    assert len(raw) > 5000


async def test_a_command_that_prints_its_own_prompt_has_not_ended(tmp_path: Path) -> None:
    """T20, D2: `${PS1@P}` expands our own prompt mark, nonce and all, in the middle of a command."""
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(
            'echo "${PS1@P}" >/dev/tty; for ((i = 0; i < 100000; i++)); do :; done; echo end; (exit 5)'
        )
        second = await terminal.run("echo next")
    assert (first.output[-4:], first.exit_code, second.output) == ("end\n", 5, "next\n")


# --- D3, D4, Exit codes ---


@both
@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("(exit 5)", 5, ""),
        ("(cd /; pwd)", 0, "/\n"),
        ("! true", 1, ""),
        ("[[ 1 == 2 ]]", 1, ""),
        ("f(){ return 4; }; f", 4, ""),
        ("no_such_program_here 2>/dev/null", 127, ""),
        ("/etc/passwd 2>/dev/null", 126, ""),
        ("true && false || (exit 3)", 3, ""),
        ("x=$(exit 6)", 6, ""),
        ("(exit 255)", 255, ""),
        ("sh -c 'exit 300'", 44, ""),
        ("return 7 2>/dev/null", 1, ""),  # not in a function: bash says no with 1 (2 from -c before 5.3)
        ("case x in y) ;; esac", 0, ""),
        ("while false; do :; done", 0, ""),
        ("((0))", 1, ""),
        ("echo a; (exit 3); echo b; (exit 4)", 4, "a\nb\n"),
        ("sleep 0 &", 0, None),
        ("{ (exit 12); }", 12, ""),
        ("eval 'eval \"(exit 13)\"'", 13, ""),
        ("echo x | (exit 14)", 14, ""),
    ],
)
async def test_each_command_has_its_own_exit_code(
    tmp_path: Path, provider: Provider, command: str, code: int, output: str | None
) -> None:
    """T14, D3: true codes of subshells, functions, negation, conditions; a subshell's `cd` moves nobody."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command)
        codes = (1, 2) if command.startswith("return") else (code,)
        assert result.exit_code in codes
        if output is not None:
            assert result.output == output
        assert (result.reason, result.cwd, terminal.cwd) == ("done", tmp_path, tmp_path)


async def test_dollar_question_mark_is_the_last_commands_own(tmp_path: Path) -> None:
    """T14, D3: between two commands our hooks run, and `$?`, `$_` and `$!` stay what the user's command left."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("(exit 42)")
        status = await terminal.run("echo $?")
        await terminal.run("echo first last")
        argument = await terminal.run('echo "$_"')
        await terminal.run("sleep 0 & job=$!")
        job = await terminal.run('[[ $! == "$job" ]] && echo same')
    assert (status.output, argument.output, job.output) == ("42\n", "last\n", "same\n")


async def test_a_pipeline_tells_each_status(tmp_path: Path) -> None:
    """T15, D4: the exit code is the pipeline's, `pipestatus` each command's; none for what is no pipeline."""
    async with open_terminal(cwd=tmp_path) as terminal:
        results = [
            await terminal.run(command)
            for command in ("false | true", "(exit 3) | (exit 4) | (exit 5)", "true", "echo '|'", "false | true; true")
        ]
    assert [(each.exit_code, each.pipestatus) for each in results] == [
        (0, (1, 0)),
        (5, (3, 4, 5)),
        (0, ()),
        (0, ()),
        (0, ()),
    ]


async def test_pipefail_changes_the_code_and_not_the_statuses(tmp_path: Path) -> None:
    """T15, D4: with `set -o pipefail` the code is the last failure's."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("set -o pipefail")
        result = await terminal.run("(exit 3) | true")
    assert (result.exit_code, result.pipestatus) == (3, (3, 0))


# --- D5, D7, The shell dies ---


@pytest.mark.parametrize(
    ("command", "code", "signal"),
    [
        ("exit 3", 3, None),
        ("exit", 0, None),
        ("kill -9 $$", 137, "SIGKILL"),
        ("kill -HUP $$; sleep 5", 129, "SIGHUP"),
        ("kill -SEGV $$", 139, "SIGSEGV"),
        ("set -e; false", 1, None),
        ("exec true", 0, None),
        ("exec sh -c 'exit 9'", 9, None),
        ("f() { exit 8; }; f", 8, None),
        ("set -u; : $nobody_set_this; exit 77", 1, None),
        ("sleep 30 & exit 3", 3, None),
        ("exec 1>&- 2>&-; exit 5", 5, None),
    ],
)
async def test_the_shells_own_death_is_told_at_once(
    tmp_path: Path, command: str, code: int, signal: str | None
) -> None:
    """T14, T15, D5, D7: code or signal by waitpid; the next command runs in a fresh shell in the same directory."""
    (tmp_path / "deep").mkdir()
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("cd deep; gone=1")
        died = await terminal.run(command)
        if command.startswith(
            "set -u"
        ):  # an interactive bash only abandons the line: no death, but no `exit 77` either
            assert (died.exit_code, died.reason) == (code, "done")
            return
        after = await terminal.run("echo ${gone-nothing}; pwd")
        again = await terminal.run("echo calm")
    assert (died.exit_code, died.signal, died.reason, died.evidence) == (code, signal, "terminal closed", "waitpid")
    assert died.duration < SOON
    assert (died.cwd, died.fresh_shell) == (tmp_path / "deep", False)
    assert (after.output, after.exit_code, after.fresh_shell, after.cwd) == (
        f"nothing\n{tmp_path / 'deep'}\n",
        0,
        True,
        tmp_path / "deep",
    )
    assert "the shell had ended" in after.notes[0]
    assert (again.output, again.fresh_shell, again.notes) == ("calm\n", False, ())


async def test_what_a_dying_shell_printed_last_is_not_lost(tmp_path: Path) -> None:
    """T16, D5: output up to the very end, even when the shell dies right after it."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("seq 1 400; kill -9 $$")
    assert result.output == "".join(f"{n}\n" for n in range(1, 401))


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("set -e; false", 1)])
async def test_with_exec_the_shells_death_is_just_the_end(tmp_path: Path, command: str, code: int) -> None:
    """One process a command: its end is the end, and the next needs no fresh shell."""
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        died = await terminal.run(command)
        after = await terminal.run("echo on")
    assert summary(died) == ("", code, "done", "waitpid")
    assert (after.output, after.fresh_shell, after.notes) == ("on\n", False, ())


async def test_set_e_in_one_command_ends_the_shell_in_the_next(tmp_path: Path) -> None:
    """T15, D7: `set -e` stays; `false` then ends the shell with 1, and our own hooks never do."""
    async with open_terminal(cwd=tmp_path) as terminal:
        calm = [(await terminal.run(command)).exit_code for command in ("set -e", "true", "false || true", "! true")]
        died = await terminal.run("false")
        after = await terminal.run("echo on; false")
    assert (calm, summary(died)) == ([0, 0, 0, 1], ("", 1, "terminal closed", "waitpid"))
    assert (after.output, after.exit_code, after.reason, after.fresh_shell) == ("on\n", 1, "done", True)


# --- D6, Nested shells ---


@pytest.mark.parametrize("command", ["bash --norc --noprofile", "sh", "env bash --norc -i"])
async def test_a_nested_shell_is_reported_and_can_be_left(tmp_path: Path, command: str) -> None:
    """T15, D6: at the timeout it awaits input, with a note; `exit 7` typed into it is the outer result."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start(command)
        async for chunk in execution:
            if isinstance(chunk, str) and chunk.rstrip().endswith(("$", "#")):
                break
        waits = await execution.result(0.3)
        await execution.send("exit 7\n")
        left = await execution.result(5)
        after = await terminal.run("echo outer")
    assert (waits.reason, waits.exit_code, waits.running) == ("awaiting input", None, True)
    assert any("nested shell" in note for note in waits.notes)
    assert (left.exit_code, left.reason, left.evidence) == (7, "done", "mark")
    assert summary(after) == ("outer\n", 0, "done", "mark")


async def test_run_of_a_nested_shell_comes_back_as_awaiting_input(tmp_path: Path) -> None:
    """T15, D6: nobody types at a `run()`: it returns at its timeout, and can be ended by it."""
    async with open_terminal(cwd=tmp_path) as terminal:
        waits = await terminal.run("bash --norc", timeout=0.4, on_timeout="kill")
        after = await terminal.run("echo $SHLVL; echo outer")
    assert (waits.reason, waits.awaiting is not None) == ("awaiting input", True)
    assert any("nested shell" in note for note in waits.notes)
    assert (after.output.splitlines()[-1], after.exit_code) == ("outer", 0)


async def test_exec_of_another_shell_awaits_input_too(tmp_path: Path) -> None:
    """T15, D6: our shell is gone without having died: said as a nested shell; its end is the terminal's end."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("exec bash --norc")
        async for chunk in execution:
            if isinstance(chunk, str) and chunk.rstrip().endswith(("$", "#")):
                break
        waits = await execution.result(0.3)
        await execution.send("exit 7\n")
        left = await execution.result(5)
        after = await terminal.run("echo fresh")
    assert (waits.reason, waits.exit_code) == ("awaiting input", None)
    assert any("nested shell" in note for note in waits.notes)
    assert (left.exit_code, left.reason, left.evidence) == (7, "terminal closed", "waitpid")
    assert (after.output, after.fresh_shell) == ("fresh\n", True)


async def test_exec_bash_with_start_up_files_awaits_input(tmp_path: Path, own_state: Path) -> None:
    """T15, D6: a `.bashrc` with its own PS1 is read again by `exec bash`: still no end is invented."""
    (own_state / ".bashrc").write_text("export PS1='mine> '\n")
    async with open_terminal(cwd=tmp_path) as terminal:
        waits = await terminal.run("exec bash", timeout=0.5, on_timeout="leave")
        killed = terminal.current
        assert killed is not None
        await killed.kill()
        after = await terminal.run("echo fresh")
    assert (waits.reason, waits.exit_code) == ("awaiting input", None)
    assert (after.output, after.exit_code) == ("fresh\n", 0)


async def test_a_nested_shell_over_pipes_just_ends(tmp_path: Path) -> None:
    """`exec` gives a command no input, so a nested shell reads end of file."""
    async with open_terminal(cwd=tmp_path, provider="exec") as terminal:
        result = await terminal.run("bash --norc; echo after")
    assert summary(result) == ("after\n", 0, "done", "waitpid")


# --- D8, Options ---


@pytest.mark.parametrize(
    "options",
    [
        "set -u",
        "set -o pipefail",
        "set -o noglob",
        "set -C",
        "set -o posix",
        "set -f -u -o pipefail -C",
        "set -a",
        "set -k",
        "set -b",
        "set +m",
        "set -T -E",
        "shopt -s extdebug",
        "shopt -s nocasematch nullglob failglob dotglob extglob",
        "shopt -u promptvars",
        "shopt -s xpg_echo compat43",
        "IFS=0123456789",
        "LC_ALL=C",
        "LANG=C LC_CTYPE=POSIX",
        "TMOUT=",
        "umask 777",
        "ulimit -f 0",
        "exec 255>&-",
        "exec >/dev/null; exec >/dev/tty",
        "POSIXLY_CORRECT=1",
        "BASH_COMPAT=3.2",
        "GLOBIGNORE=*",
    ],
)
async def test_shell_options_do_not_disturb_us_nor_we_them(tmp_path: Path, options: str) -> None:
    """T20, D8: under any option codes and output stay right, and our hooks add no noise."""
    async with open_terminal(cwd=tmp_path) as terminal:
        set_ = await terminal.run(options)
        bad = await terminal.run("echo one; (exit 3)")
        good = await terminal.run("echo 'two 345'; pwd")
    assert (summary(set_), summary(bad), summary(good)) == (
        ("", 0, "done", "mark"),
        ("one\n", 3, "done", "mark"),
        (f"two 345\n{tmp_path}\n", 0, "done", "mark"),
    )


async def test_a_trace_shows_the_users_commands_and_none_of_ours(tmp_path: Path) -> None:
    """T20, D8: `set -x` stays on between commands without a trace of our hooks.

    One difference is left: the command runs inside an `eval`, so bash shows one `+` more than at a prompt.
    """
    async with open_terminal(cwd=tmp_path) as terminal:
        outputs = [(await terminal.run(each)).output for each in ("set -x", "echo hi", "(exit 3)", "false | true")]
        code = await terminal.run("(exit 4)")
        last = [(await terminal.run(each)).output for each in ("set +x", "echo quiet")]
    assert outputs[:3] == ["", "++ echo hi\nhi\n", "++ exit 3\n"]
    assert sorted(outputs[3].splitlines()) == ["++ false", "++ true"]
    assert (code.exit_code, last) == (4, ["++ set +x\n", "quiet\n"])


async def test_verbose_mode_shows_what_is_run(tmp_path: Path) -> None:
    """T20, D8: `set -v` echoes what the shell reads; our own line must not be in the output."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("set -v")
        result = await terminal.run("echo hi")
    assert ("__tarmac" in result.output, result.output.endswith("hi\n"), result.exit_code) == (False, True, 0)


# --- D9, Traps ---


async def test_traps_of_the_user_stay_and_codes_stay_right(tmp_path: Path) -> None:
    """T20, D9: DEBUG, EXIT and INT traps are the user's own."""
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run("trap - DEBUG; trap 'echo bye' EXIT; trap '' INT")
        code = await terminal.run("(exit 3)")
        traps = await terminal.run("trap -p")
        died = await terminal.run("exit 4")
    assert (summary(first), code.exit_code) == (("", 0, "done", "mark"), 3)
    assert traps.output == "trap -- 'echo bye' EXIT\ntrap -- '' SIGINT\n"
    assert (died.exit_code, died.output.splitlines()[-1]) == (4, "bye")


async def test_a_debug_trap_stays_the_users_and_changes_no_code(tmp_path: Path) -> None:
    """T20, D9: a DEBUG trap fires for each command of the user. It fires for our own words too: a known difference."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("""trap 'echo "[$BASH_COMMAND]"' DEBUG""")
        result = await terminal.run("echo hi; (exit 3)")
        off = await terminal.run("trap - DEBUG")
        quiet = await terminal.run("echo quiet")
    assert (result.exit_code, off.exit_code, "[echo hi]\nhi\n" in result.output) == (3, 0, True)
    assert summary(quiet) == ("quiet\n", 0, "done", "mark")


async def test_an_err_trap_fires_once_for_a_failure_and_never_for_us(tmp_path: Path) -> None:
    """T20, D9: neither our hooks nor the `eval` around the command set it off."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("trap 'echo failed:$?' ERR; set -E")
        bad = await terminal.run("false")
        fine = await terminal.run("true")
    assert (bad.output, bad.exit_code, fine.output) == ("failed:1\n", 1, "")


async def test_a_return_trap_stays_the_users_and_changes_no_code(tmp_path: Path) -> None:
    """T20, D9: with `set -T` it fires for our functions too: a known difference, as with DEBUG."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("trap 'echo returned' RETURN; set -T; f() { :; }")
        plain = await terminal.run("echo hi; (exit 3)")
        off = await terminal.run("trap - RETURN; set +T")
        quiet = await terminal.run("f; echo quiet")
    assert (plain.exit_code, "hi\n" in plain.output, off.exit_code) == (3, True, 0)
    assert summary(quiet) == ("quiet\n", 0, "done", "mark")


# --- D10, Our hooks are removed ---


@pytest.mark.parametrize(
    "sabotage",
    [
        "PROMPT_COMMAND=",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND='echo hooked'",
        "PROMPT_COMMAND=(: 'echo hooked')",
        "PS1='$ '",
        "unset PS1",
        "PS1=",
        "printf -v PS1 '%*s' ${#PS1} x",
        "PS0=; PS2=; PS4=",
        "PS1='$ '; PROMPT_COMMAND=; PS0=",
        "readonly PROMPT_COMMAND",
        "PROMPT_COMMAND=; readonly PROMPT_COMMAND",
        "readonly PS1",
        "PS1='$ '; readonly PS1; PROMPT_COMMAND=; readonly PROMPT_COMMAND",
        "unset -f $(compgen -A function __tarmac)",
        "unset -f __tarmac_prompt",
        "unset -f __tarmac_done",
        "unset -f __tarmac_load __tarmac_done; PROMPT_COMMAND=; PS1='$ '",
        "exec 2>/dev/null; PS1=",
        "exec </dev/null",
        "trap 'PROMPT_COMMAND=' DEBUG",
        "bind 2>/dev/null; set -o history",
        "enable -n read mapfile",
        "enable -n printf builtin eval",
    ],
)
async def test_a_shell_without_our_hooks_is_healed_or_replaced(tmp_path: Path, sabotage: str) -> None:
    """T20, D10: whatever a command takes away, it ends itself with its code, and the next ones run once each.

    The right answer may be a healed shell or, after a note, a fresh one (`exec </dev/null` leaves none to heal);
    never a hang, a code by assumption, or a command that runs twice.
    """
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(f"echo first >>log; {sabotage}", timeout=4, on_timeout="kill")
        results = [
            await terminal.run(command, timeout=4, on_timeout="kill")
            for command in ("echo second >>log; (exit 3)", "echo third >/dev/tty; echo third >>log; false | true")
        ]
    assert (first.exit_code, first.reason, first.duration < SOON) in [
        (0, "done", True),
        (0, "terminal closed", True),  # `exec </dev/null`: the shell reads its own end of file
    ]
    assert [(each.exit_code, each.reason) for each in results] == [(3, "done"), (0, "done")]
    assert (results[1].output, (tmp_path / "log").read_text()) == ("third\n", "first\nsecond\nthird\n")


@pytest.mark.parametrize(
    "sabotage",
    [
        "unset ${!__tarmac_*}",
        "__tarmac_nonce=x",
        "__tarmac_in=/nowhere",
        "__tarmac_n=99999",
        "__tarmac_tty=/nowhere",
        "__tarmac_load() { :; }",
        "__tarmac_done() { :; }",
        "readonly __tarmac_cmd __tarmac_n",
        "unset -f __tarmac_load __tarmac_done; PROMPT_COMMAND=; PS1='$ '",
    ],
)
async def test_playing_with_our_private_names_hurts_only_the_player(tmp_path: Path, sabotage: str) -> None:
    """T20, D10: code in the shell can always silence it. Then a command may time out or not be run, and says so.

    What may never be: a code by assumption, a command that runs twice, or a terminal that stays unusable.
    """
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(sabotage, timeout=1.0, on_timeout="kill")
        second = await terminal.run("echo second >>log; (exit 3)", timeout=4, on_timeout="kill")
        third = await terminal.run("echo third >>log; (exit 4)", timeout=4, on_timeout="kill")
    honest = [(0, "done"), (137, "timeout"), (137, "killed"), (137, "awaiting input"), (None, "awaiting input")]
    readonly = (1, "done")  # `__tarmac_tty=`: bash refuses, and says so
    assert (first.exit_code, first.reason) in [*honest, readonly, (130, "awaiting input"), (130, "timeout")]
    assert (second.exit_code, second.reason) in ((3, "done"), (None, "not run"))
    assert (third.exit_code, third.reason) == (4, "done")
    ran = "second\n" if second.reason == "done" else ""
    assert (tmp_path / "log").read_text() == f"{ran}third\n"


async def test_the_users_own_prompt_hooks_keep_working(tmp_path: Path, own_state: Path) -> None:
    """T20, D10: the start-up files' PROMPT_COMMAND runs before each prompt, sees the true `$?`, prints to nobody."""
    (own_state / ".bashrc").write_text(
        'count=0\nhook() { last=$?; echo "noise $last"; ((count++)); }\nPROMPT_COMMAND=hook\nPS1="mine> "\n'
    )
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run("(exit 3)")
        second = await terminal.run(
            'echo "$last $((count > 1)) ${PS1/*mine> */mine}"; PROMPT_COMMAND=(hook "echo more")'
        )
        third = await terminal.run("echo after")
    assert (first.exit_code, first.output) == (3, "")
    assert (second.output, third.output) == ("3 1 mine\n", "after\n")


@pytest.mark.parametrize(
    "text", ['"$PROMPT_COMMAND; hook"', '"hook; $PROMPT_COMMAND"', '("${PROMPT_COMMAND[@]}" hook)']
)
async def test_a_hook_that_a_command_joins_to_ours_is_kept(tmp_path: Path, text: str) -> None:
    """T20, D10: what an activated tool writes into PROMPT_COMMAND, before or after ours, runs at each prompt."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run(f"count=0; hook() {{ ((count++)); return 0; }}; PROMPT_COMMAND={text}")
        seen = [(await terminal.run("echo $count")).output for _ in range(4)]
    counts = [int(each) for each in seen]
    assert counts == sorted(set(counts)), "it ran before each prompt"
    assert counts[0] > 0


# --- D11, History ---


@pytest.mark.parametrize(
    "command",
    [
        "set +o history; HISTFILE=/dev/null; HISTCONTROL=",
        "HISTCONTROL=; HISTIGNORE=",
        "HISTFILE=$HOME/.bash_history",
        "shopt -s histappend; PROMPT_COMMAND='history -a'",
        "unset HISTFILE",
    ],
)
async def test_no_line_of_an_agent_lands_in_the_users_history(tmp_path: Path, own_state: Path, command: str) -> None:
    """T20, D11: neither while it runs, nor when the shell ends, whatever the start-up files set."""
    history = own_state / ".bash_history"
    history.write_text("mine\n")
    (own_state / ".bashrc").write_text(
        "HISTCONTROL=; HISTSIZE=1000; HISTFILESIZE=1000; shopt -s histappend; PROMPT_COMMAND='history -a'\n"
    )
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run(command)
        await terminal.run("echo a secret of the agent")
        await terminal.run("exit")
        await terminal.run("echo another")
    assert history.read_text() == "mine\n"


# --- D12, Everything is overridden ---


@pytest.mark.parametrize(
    "override",
    [
        "alias cd='echo no' builtin='echo no' printf='echo no' eval='echo no'",
        "cd() { echo no; }",
        "builtin() { echo no; }",
        "printf() { :; }",
        "eval() { :; }; mapfile() { :; }; read() { :; }; local() { :; }; return() { :; }; set() { :; }",
        "shopt -s expand_aliases; alias __tarmac_load=: __tarmac_done=: ':=echo no' exec='echo no'",
        "PATH=",
        "PATH=/nowhere; hash -r",
        "unset PATH HOME IFS",
        "command() { :; }; test() { :; }; [() { :; }; true() { false; }; false() { true; }; :() { echo no; }",
        "command_not_found_handle() { echo not found; return 0; }",
        "trap() { :; }; unset() { :; }; export() { :; }; declare() { :; }; builtin() { :; }; history() { :; }",
    ],
)
async def test_overridden_commands_do_not_reach_our_hooks(tmp_path: Path, override: str) -> None:
    """T7, T20, D12: functions and aliases of any name: commands still finish, with their code and directory."""
    (tmp_path / "sub").mkdir()
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(override, timeout=4, on_timeout="kill")
        second = await terminal.run("(exit 3)", timeout=4, on_timeout="kill")
        moved = await terminal.run("(exit 4)", cwd=tmp_path / "sub", timeout=4, on_timeout="kill")
        third = await terminal.run("x=5; ((x == 6))", timeout=4, on_timeout="kill")
    noise = first.output if override == "builtin() { echo no; }" else ""  # their own function, which we had to call
    assert set(noise.split()) <= {"no"}
    assert [summary(each) for each in (first, second, moved, third)] == [
        (noise, 0, "done", "mark"),
        ("", 3, "done", "mark"),
        ("", 4, "done", "mark"),
        ("", 1, "done", "mark"),
    ]
    assert (moved.cwd, third.fresh_shell) == (tmp_path / "sub", False)


@pytest.mark.parametrize(
    "command", ["set -o vi", "X=2; set -o emacs; X=1", "set +o vi; set +o emacs", "set -o vi -o pipefail"]
)
async def test_choosing_a_line_editor_does_not_hurt_the_shell(tmp_path: Path, command: str) -> None:
    """T20, D8: `eval 'set -o vi'` crashes bash 5.2 without a line editor; it must not crash here."""
    async with open_terminal(cwd=tmp_path) as terminal:
        first = await terminal.run(f"KEPT=yes; {command}", timeout=10, on_timeout="kill")
        second = await terminal.run("echo $KEPT; type -t set; (exit 3)", timeout=10, on_timeout="kill")
    if "pipefail" not in command:  # two options at once are more than our guard reads: told honestly, not hidden
        assert (first.exit_code, second.output, second.exit_code) == (0, "yes\nbuiltin\n", 3)
    else:
        assert (first.exit_code, second.exit_code, second.fresh_shell) in ((139, 3, True), (0, 3, False))


@pytest.mark.parametrize("words", ["printf", "eval", "read mapfile return local set", "builtin"])
async def test_builtins_that_were_turned_off_are_turned_on_where_we_live_by_them(tmp_path: Path, words: str) -> None:
    """T20, D12: without `eval` every later command ended with 1 and had not run; without `printf` the shell went."""
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("V=kept")
        await terminal.run(f"enable -n {words}")
        results = [await terminal.run(command) for command in ("echo $V; (exit 3)", "echo again")]
    assert [summary(each) for each in results] == [("kept\n", 3, "done", "mark"), ("again\n", 0, "done", "mark")]
    assert not any(each.fresh_shell for each in results)


async def test_a_shell_without_integration_gives_hints_and_no_proof(tmp_path: Path) -> None:
    """T20, T21: while another shell runs in the terminal the quality is basic, and its marks decide nothing."""
    changes: list[str] = []

    def listen(event: TerminalEvent) -> None:
        if isinstance(event, ShellIntegrationChanged):
            changes.append(event.quality)

    inner = r"PS1='\[\e]133;D;$?\a\e]133;A\a\e]7;file://far/srv/app\a\]far$ ' bash --norc --noprofile -i"
    async with open_terminal(cwd=tmp_path, listener=listen) as terminal:
        assert (terminal.quality, terminal.hints) == ("rich", Hints())
        execution = await terminal.start(inner)
        await execution.send("(exit 4)\n")
        while terminal.hints.exit_code != 4 or not terminal.hints.cwd:
            await execution.news(10)
        seen = (terminal.quality, terminal.hints, terminal.cwd)
        await execution.send("exit 0\n")
        result = await execution.result()
        assert (result.exit_code, result.cwd, terminal.quality, terminal.hints) == (0, tmp_path, "rich", Hints())
    assert seen == ("basic", Hints(cwd="/srv/app", at_prompt=True, exit_code=4), tmp_path)
    assert changes == ["rich", "basic", "rich"]
