"""Commands of any content arrive byte for byte at a real bash (research/terminals.md D, 13–21)."""

import asyncio
import re
import secrets
import shlex
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.terminals import Terminal, open_terminal
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell

both = pytest.mark.parametrize("provider", ["pty", "exec"])
SOON = 1.0


# --- D13, D14, Incomplete input ---


@both
@pytest.mark.parametrize(
    "command",
    [
        'echo "abc',
        "echo 'a",
        "ls |",
        "ls &&",
        "if then",
        "if true; then echo ran",
        "for x in 1 2; do echo ran",
        "f() {",
        "f()",
        "function f",
        "for x in 1 2",
        "while",
        "time |",
        "echo $(echo ran",
        "echo `echo ran",
        "case x in",
        "( echo ran",
        "{ echo ran",
        ")",
        "done",
        "echo ran >",
        "[[ a ==",
        "echo ${x",
        "echo ${x:-",
        "echo ran; echo $((1 +",
        "((1 +",
        "echo ran; echo <(",
        "echo ran; cat <<",
        "echo a ;; b",
        "x=(1 2",
        "true | f()",
        "echo ran | cat; f()",
        "echo ran | if true",
        "echo ran | { cat",
        "[[ a || b",
    ],
)
async def test_an_incomplete_command_is_a_syntax_error_at_once(
    tmp_path: Path, provider: Provider, command: str
) -> None:
    """T22, D13, D14: D expects a continuation prompt; a command is eval'ed whole, so bash says "syntax error" at once.

    Nothing of it runs (`echo ran` is never seen on a line of its own), and the next command is clean.
    """
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        bad = await terminal.run(command, timeout=4, on_timeout="kill")
        after = await terminal.run("echo clean")
    # bash itself says 1 for some of them when they are eval'ed
    assert (bad.exit_code in {1, 2}, bad.reason, bad.duration < SOON) == (True, "done", True)
    assert "ran" not in bad.output.splitlines()
    assert "bash: " in bad.output
    assert "__tarmac" not in bad.output
    assert (after.output, after.exit_code) == ("clean\n", 0)


async def test_the_lines_before_a_syntax_error_are_run(tmp_path: Path) -> None:
    """As with any script bash reads: a command list runs up to the line that it can't parse."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("echo one\nif then\necho never")
    assert (result.output.splitlines()[0], result.exit_code) == ("one", 2)
    assert "never" not in result.output.splitlines()


# --- D15, Here-documents ---


@both
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat <<EOF\n$((1 + 1)) `echo sub`\nEOF", "2 sub\n"),
        ("cat <<'EOF'\n$x `y` \\ \"q\" 'r' !! \nEOF", "$x `y` \\ \"q\" 'r' !! \n"),
        ("cat <<-EOF\n\t\tindented\n\tEOF", "indented\n"),
        ("cat <<EOF\nlast line is the terminator\nEOF\n", "last line is the terminator\n"),
        ("cat <<A; cat <<B\na\nA\nb\nB", "a\nb\n"),
        ("cat <<A <<B\nnot read\nA\nb\nB", "b\n"),
        ("cat <<EOF | tr a-z A-Z\npipe\nEOF", "PIPE\n"),
        ("bash <<'OUTER'\ncat <<'INNER'\nnested $x\nINNER\nOUTER", "nested $x\n"),
        ("cat <<< 'here string'", "here string\n"),
        ("cat <<EOF\n# not a comment\n\tTab\\tkept\nEOF\necho after", "# not a comment\n\tTab\\tkept\nafter\n"),
        ("cat <<EOF &&\nand\nEOF\necho more", "and\nmore\n"),
        ("x=$(cat <<EOF\nsubstituted\nEOF\n); echo $x", "substituted\n"),
        ("cat <<''\nup to the empty line\n\necho after", "up to the empty line\nafter\n"),
    ],
)
async def test_here_documents_give_their_exact_text(
    tmp_path: Path, provider: Provider, command: str, output: str
) -> None:
    """T22, D15: quoted, indented, nested, several, as the last line, with and without a final newline."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command)
    assert (result.output, result.exit_code) == (output.replace("\t", "\t"), 0)


@both
async def test_a_here_document_without_its_end_is_ended_by_the_command(tmp_path: Path, provider: Provider) -> None:
    """T22, D15: bash warns and takes all there is; nothing of ours gets into it."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("cat >file <<EOF\nline one\nline two")
        after = await terminal.run("echo clean")
    assert ((tmp_path / "file").read_text(), result.exit_code) == ("line one\nline two\n", 0)
    assert ("here-document" in result.output, "__tarmac" in result.output, after.output) == (True, False, "clean\n")


@both
async def test_a_here_document_of_200_kb_is_written_exactly(tmp_path: Path, provider: Provider) -> None:
    """T22, D15: no limit of the terminal's line buffer, no echo, no expansion. An argument of `exec` has a limit."""
    size = 200_000 if provider == "pty" else 120_000  # one argument of execve: at most 128 KiB
    text = "".join(f"line {n}: $HOME `id` \\ 'q' \"d\" ü\n" for n in range(size // 40))
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"cat >file <<'END'\n{text}END")
    assert (result.output, result.exit_code, (tmp_path / "file").read_text()) == ("", 0, text)


# --- D16, What might swallow a trailer ---


@both
@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("echo a # comment", "a\n", 0),
        ("(exit 3) # comment", "", 3),
        ("echo a\\", "a\\\n", 0),  # at the very end a backslash is just a character
        ("(exit 3); echo a \\\n", "a\n", 0),
        ("echo a;", "a\n", 0),
        ("(exit 4)\n# last line", "", 4),
        ("echo a &", None, 0),
        ("echo 'it''s' # it's", "its\n", 0),
        ("echo a #\\", "a\n", 0),
        ("{ echo a; } # }", "a\n", 0),
    ],
)
async def test_a_trailing_comment_or_backslash_swallows_nothing_of_ours(
    tmp_path: Path, provider: Provider, command: str, output: str | None, code: int
) -> None:
    """T22, D16: the end is told all the same, with the code."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command, timeout=4, on_timeout="kill")
        after = await terminal.run("echo clean")
    assert (result.exit_code, result.reason) == (code, "done")
    if output is not None:
        assert (result.output, after.output) == (output, "clean\n")


# --- D17, History expansion ---


@both
async def test_an_exclamation_mark_is_just_a_character(tmp_path: Path, provider: Provider) -> None:
    """T22, D17: no history expansion, ever."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        await terminal.run("echo before")
        result = await terminal.run('echo "a!b" !! !$ !-1 !echo ^before^after')
        quick = await terminal.run("^before^after")
    assert result.output == "a!b !! !$ !-1 !echo ^before^after\n"
    assert (quick.exit_code, "after" in quick.output.splitlines()) == (127, False)


# --- D18, Length ---


@both
async def test_a_line_of_10_000_characters_arrives(tmp_path: Path, provider: Provider) -> None:
    """T22, D18: beyond the 4,095 bytes that a terminal takes as one line."""
    text = "x" * 10_000
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"echo {text} | wc -c; echo {text} >file")
    assert (result.output, (tmp_path / "file").read_text()) == ("10001\n", text + "\n")


async def test_a_script_of_a_megabyte_arrives(tmp_path: Path) -> None:
    """T22, D18: every line of it is run, in order."""
    lines = 20_000
    script = "".join(f"x={n:<44} # \n" for n in range(lines)) + "echo $x\n(exit 3)"
    assert len(script) > 1_000_000
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(script)
    assert (result.output, result.exit_code) == (f"{lines - 1}\n", 3)


# --- D19, Bytes that are keys ---


ODD = {
    "tab": "a\tb",
    "carriage return": "a\rb",
    "line separator": "a\u2028b\u2029c",
    "emoji": "👩‍👩‍👧 🏳️‍🌈 e\u0301",
    "right to left": "שלום \u202e abc",
    "end of a bracketed paste": "a\x1b[201~b\x1b[200~c",
    "Ctrl-C and Ctrl-D and Ctrl-Z": "a\x03b\x04c\x1ad",
    "Ctrl-S and Ctrl-Q": "a\x13b\x11c",
    "Ctrl-U and Ctrl-W and Ctrl-R": "a\x15b\x17c\x12d",
    "literal next": "a\x16\x03b",
    "backspace and delete": "a\x08b\x7fc",
    "escape": "a\x1bb\x1b[Ac",
    "a forged mark": "a\x1b]633;D;0\x07b",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f",
    "C1 controls": "".join(map(chr, range(0x80, 0xA0))),
    "a byte order mark": "\ufeffa",
    "bytes that are no UTF-8": b"\xff\xfe a \xc3( \x80".decode("utf-8", "surrogateescape"),
    "backslash at the end": "a\\",
    "newlines": "\n\na\n\nb\n\n",
    "quotes": "'\"`$(\\",
    "percent and NUL's look-alike": "%s %n \\0 \\x00",
    "beyond the basic plane": "\U0001d4d0\U000e0001",
}


@both
@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
async def test_odd_characters_arrive_literally(tmp_path: Path, provider: Provider, text: str) -> None:
    """T22, D19: nothing in a command is ever taken for a key."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"printf %s {shlex.quote(text)} >file")
        after = await terminal.run("echo clean")
    assert (tmp_path / "file").read_bytes() == text.encode("utf-8", "surrogateescape")
    assert (result.output, result.exit_code, after.output) == ("", 0, "clean\n")


@both
async def test_a_nul_is_refused_with_a_reason(tmp_path: Path, provider: Provider) -> None:
    """T22, D19: no shell can be given one; nothing is run."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        with pytest.raises(BadRequest, match="NUL"):
            await terminal.run("touch ran; echo \0")
        after = await terminal.run("ls")
    assert after.output == ""


any_text = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
any_bytes = st.binary().map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
shell_like = st.text(st.sampled_from("ab \t\n\r'\"`$\\!#;&|<>(){}[]*?~^%=-\x01\x03\x04\x1b\x7f\xff"))
texts = st.one_of(any_text, any_bytes, shell_like)


WORDS = (
    """
echo a|printf b|true|false|(exit 3)|! true|! false|echo $?|x=5|echo ${x-unset}|:|true ¦ false|false ¦ true
(exit 4) ¦ cat|echo c ¦ tr c d|f() { return 6; }|f 2>/dev/null|if false; then :; fi|for i in 1 2; do echo $i; done
{ (exit 7); }|[[ a == b ]]|((0))|echo '# ¦ \\'|# comment|echo e # comment|y=$(exit 8)|cd /; cd - >/dev/null
no_such_program 2>/dev/null|sh -c 'kill -TERM $$' 2>/dev/null|eval '(exit 9)'|case a in a) (exit 11);; esac|
""".strip("\n")
    .replace("\n", "|")
    .split("|")
)
HERE = ["cat <<E\nhere\nE\n", "echo \\\n g", "if true\nthen (exit 12)\nfi"]
words = st.sampled_from([each.replace("¦", "|") for each in WORDS] + HERE)
scripts = st.lists(st.tuples(words, st.sampled_from(["\n", "; ", " && ", " || ", " | "])))


def check_texts(provider: Provider, folder: Path, number: int) -> None:
    """Hypothesis drives one loop and one terminal through many texts."""
    loop = asyncio.new_event_loop()
    opened = open_terminal(cwd=folder, provider=provider)
    terminal: Terminal = loop.run_until_complete(opened.__aenter__())

    @settings(
        max_examples=number, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
    )
    @given(texts)
    def arrives(text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")
        end = f"END_{secrets.token_hex(8)}"
        command = f"printf %s {shlex.quote(text)} >quoted\ncat >document <<'{end}'\n{text}\n{end}\n(exit 7)"
        result = loop.run_until_complete(terminal.run(command, timeout=10, on_timeout="kill"))
        assert (result.output, result.exit_code, result.reason) == ("", 7, "done")
        assert (folder / "quoted").read_bytes() == data
        assert (folder / "document").read_bytes() == data + b"\n"

    try:
        arrives()
    finally:
        loop.run_until_complete(opened.__aexit__(None, None, None))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.mark.parametrize(("provider", "number"), [("pty", 100), ("exec", 50)])
def test_commands_of_arbitrary_bytes_arrive_intact(tmp_path: Path, provider: Provider, number: int) -> None:
    """T22, D19: as a quoted word and as a here-document, byte for byte, with the code of what came after."""
    check_texts(provider, tmp_path, number)


def check_scripts(folder: Path, number: int) -> None:
    """What `bash -c` does with a script is what a live shell does with it."""
    loop = asyncio.new_event_loop()
    opened = [open_terminal(cwd=folder, provider=provider) for provider in get_args(Provider)]
    live, plain = [loop.run_until_complete(each.__aenter__()) for each in opened]

    @settings(max_examples=number, deadline=None, database=None, print_blob=True)
    @given(scripts)
    def same(parts: list[tuple[str, str]]) -> None:
        script = "".join(map("".join, parts))
        if not script.strip():
            return
        loop.run_until_complete(live.run("unset -f f; unset x y i; true"))
        seen, wanted = [loop.run_until_complete(each.run(script, timeout=10)) for each in (live, plain)]
        event("a syntax error" if "syntax error" in wanted.output else "a whole script")
        if "syntax error" in wanted.output:
            assert ("syntax error" in seen.output, seen.exit_code in (1, 2)) == (True, True)
            assert "__tarmac" not in seen.output
        else:
            # an interactive shell complains without its path and line number
            output = re.sub(r"^\S*bash: (-c: )?(line \d+: )?", "bash: ", wanted.output, flags=re.MULTILINE)
            assert (seen.exit_code, seen.reason) == (wanted.exit_code, "done")
            if "|" in script or "&" in script:  # who of a pipeline complains first is nobody's promise
                assert sorted(seen.output.splitlines()) == sorted(output.splitlines())
            else:
                assert seen.output == output

    try:
        same()
    finally:
        for each in opened:
            loop.run_until_complete(each.__aexit__(None, None, None))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_a_live_shell_does_what_bash_does_with_a_script(tmp_path: Path) -> None:
    """T14, T22, D14, D16, D20: output and code of random scripts, whole and broken, are those of `bash -c`."""
    check_scripts(tmp_path, 150)


# --- D20, Several lines ---


@both
async def test_several_lines_are_one_execution(tmp_path: Path, provider: Provider) -> None:
    """T22, D20: one result, the code of the last; each line is run where the ones before left the shell."""
    (tmp_path / "sub").mkdir()
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("cd sub\nx=1\n\n  (exit 9)\npwd\necho $x\n(exit 5)")
        history = [(each.command, each.exit_code) for each in terminal.history]
    assert (result.output, result.exit_code) == (f"{tmp_path}/sub\n1\n", 5)
    assert len(history) == 1


async def test_a_line_that_reads_does_not_eat_the_next_line(tmp_path: Path) -> None:
    """T22, D20: the lines of a command are no input of its programs; those wait for somebody to type."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("echo ready; read line\necho got $line")
        async for chunk in execution:
            if "ready" in str(chunk):
                break
        await execution.send("typed\n")
        result = await execution.result(5)
    assert (result.output.splitlines()[-1], result.exit_code) == ("got typed", 0)


# --- D21, Nothing much ---


@both
@pytest.mark.parametrize("command", ["", " ", "\n", "\t \n  "])
async def test_an_empty_command_is_refused(tmp_path: Path, provider: Provider, command: str) -> None:
    """T22, D21: D wants a no-op; an agent that sends nothing made a mistake, and is told (issue 2, item 8)."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        with pytest.raises(BadRequest, match="empty"):
            await terminal.run(command)
        assert (terminal.busy, list(terminal.history)) == (False, [])


@both
@pytest.mark.parametrize("command", ["# only a comment", ":", "\n# c\n\n", ";" * 0 + "true #", "  :  "])
async def test_a_command_that_does_nothing_has_a_result(tmp_path: Path, provider: Provider, command: str) -> None:
    """T22, D21: a comment is a command that does nothing, successfully."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        await terminal.run("true")
        result = await terminal.run(command)
    assert (result.output, result.exit_code, result.reason, result.command) == ("", 0, "done", command)


@both
@pytest.mark.parametrize("command", ["  echo a", "echo a   ", "\n\necho a\n\n", "\techo a\t", "\r\necho a"])
async def test_space_around_a_command_means_nothing(tmp_path: Path, provider: Provider, command: str) -> None:
    """T22, D21: but a carriage return is a character: bash looks for a command of that name."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command)
    assert (result.output.splitlines()[-1], result.exit_code) == ("a", 0)
