"""Output of real commands: complete, clean, bounded, and nobody else's (research/terminals.md D, 22–36)."""

import asyncio
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarmac.terminals import Gap, Settings, open_terminal
from tarmac.terminals.events import DataWritten, TerminalEvent
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell
PYTHON = shlex.quote(sys.executable)

both = pytest.mark.parametrize("provider", ["pty", "exec"])


class Watcher:
    """Waits for bytes that viewers are shown, whoever wrote them."""

    def __init__(self) -> None:
        self.seen = b""
        self._more = asyncio.Event()

    def __call__(self, event: TerminalEvent) -> None:
        if isinstance(event, DataWritten):
            self.seen += event.data
            self._more.set()

    async def until(self, marker: bytes) -> None:
        async with asyncio.timeout(5):
            while marker not in self.seen:
                self._more.clear()
                await self._more.wait()


# --- D22, Exactness ---


@both
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("printf abc", "abc"),
        ("echo abc", "abc\n"),
        ("printf 'a\\n\\n\\nb\\n\\n'", "a\n\n\nb\n\n"),
        ("printf '\\n'", "\n"),
        ("true", ""),
        ("printf '  a  \\n  '", "  a  \n  "),
        ("printf 'a\\tb\\n'", "a\tb\n"),
    ],
)
async def test_output_is_exactly_what_was_printed(
    tmp_path: Path, provider: Provider, command: str, output: str
) -> None:
    """T16, D22: no prompt, no mark of a missing newline, nothing added, nothing taken away."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        first = await terminal.run(command)
        second = await terminal.run("echo next")
    assert (first.output, second.output) == (output, "next\n")


async def test_live_output_is_the_result(tmp_path: Path) -> None:
    """T16, D22: two listeners, the second late: each gets all of it from the first byte."""
    async with open_terminal(cwd=tmp_path) as terminal:
        execution = await terminal.start("echo one; read x; printf two")
        early: list[str | Gap] = []
        async for chunk in execution:
            early.append(chunk)
            if "one" in str(chunk):
                await execution.send("\n")
        late = [chunk async for chunk in execution]
        result = await execution.result()
    assert "".join(map(str, early)) == "".join(map(str, late))
    assert (result.output, "".join(map(str, late)).rstrip("\n")) == ("one\n\ntwo", "one\n\ntwo")


# --- D23, A flood ---


def peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


@pytest.mark.parametrize(("provider", "newline"), [("pty", b"\r\n"), ("exec", b"\n")])
async def test_a_flood_of_output_neither_fills_memory_nor_stops_the_loop(
    tmp_path: Path, provider: Provider, newline: bytes
) -> None:
    """T16, T27, D23: 40 MB (D says 1 GB; the benchmarks measure speed): ends kept, the middle said to be left out."""
    size = 40_000_000
    line = "0123456789" * 10  # with its newline 101 bytes
    settings = Settings(spool_limit=4 << 20)
    gaps: list[float] = []

    async def tick() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - before)

    async with open_terminal(cwd=tmp_path, provider=provider, settings=settings) as terminal:
        await terminal.run("true")
        Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
        before = peak_memory()
        ticker = asyncio.create_task(tick())
        result = await terminal.run(f"echo first; yes {line} | head -c {size // 101 * 101}; echo last", timeout=60)
        ticker.cancel()
        grown = peak_memory() - before
        assert result.output_path is not None
        kept = result.output_path.read_bytes()
        after = await terminal.run("echo clean")
    lines = result.output.splitlines()
    assert (result.exit_code, result.truncated, lines[0], lines[-1]) == (0, True, "first", "last")
    assert result.output_bytes == 9 + 2 * len(newline) + size // 101 * (100 + len(newline))
    assert (len(lines) <= 501, sum("left out" in line for line in lines)) == (True, 1)
    assert (len(kept) <= 5 << 20, kept[-6:].endswith(b"last" + newline)) == (True, True)
    assert any("are kept on disk" in note for note in result.notes)
    assert (grown < 50 << 20, len(gaps) > 3, max(gaps) < 0.5, after.output) == (True, True, True, "clean\n")


# --- D24, D25, Bytes that are no text ---


@both
async def test_binary_output_is_said_to_be_so_and_kept_whole(tmp_path: Path, provider: Provider) -> None:
    """T25, T27, D24: a summary for the reader, every byte in the file (a terminal writes CR LF for a newline)."""
    data = bytes(range(256)) * 4096
    (tmp_path / "blob").write_bytes(data)
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("cat blob")
        assert result.output_path is not None
        kept = result.output_path.read_bytes()
        after = await terminal.run("echo clean; echo ü")
    assert (result.binary, result.exit_code, "binary" in result.output, len(result.output) < 300) == (
        True,
        0,
        True,
        True,
    )
    assert kept == (data.replace(b"\n", b"\r\n") if provider == "pty" else data)
    assert (after.output, after.exit_code, after.binary) == ("clean\nü\n", 0, False)


@both
async def test_random_bytes_leave_the_terminal_unharmed(tmp_path: Path, provider: Provider) -> None:
    """T25, D24: a megabyte of noise, with whatever sequences are in it."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("head -c 1M /dev/urandom; (exit 3)")
        charset = await terminal.run(r"printf '\016\e(0'; (exit 4)")
        after = await terminal.run("echo qqq ü; stty -a </dev/tty 2>/dev/null | grep -c ' icanon'")
    assert (result.binary, result.exit_code, charset.exit_code) == (True, 3, 4)
    assert after.output.splitlines()[0] == "qqq ü"


@both
async def test_only_bad_bytes_are_replaced(tmp_path: Path, provider: Provider) -> None:
    """T25, D25: invalid UTF-8 becomes U+FFFD; what is good around it stays."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(r"printf 'a\xffb\xc3\xa9c\xe2\x82 \xf0\x9f\x98\x80\n'")
    assert (result.output, result.binary) == ("a\ufffdbéc\ufffd 😀\n", False)


@both
async def test_a_character_split_between_writes_is_whole(tmp_path: Path, provider: Provider) -> None:
    """T25, D25: in the result and for every listener, wherever the reads fall."""
    writes = "; ".join(rf"printf '\x{byte:02x}'; sleep 0.03" for byte in "€😀é".encode())
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start(writes)
        live = "".join([str(chunk) async for chunk in execution])
        result = await execution.result()
    assert (result.output, live.rstrip("\n")) == ("€😀é", "€😀é")


# --- D26 – D28, What is drawn ---


@both
async def test_a_progress_bar_is_its_last_state(tmp_path: Path, provider: Provider) -> None:
    """T25, D26: 10,000 carriage-return updates are one line; all of them are in the file.

    D wants a count of the frames too; the size of the file says as much.
    """
    command = r"""echo start; for ((i = 1; i <= 10000; i++)); do printf '\rdone: %d/10000' $i; done; printf '\nend\n'"""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(command)
        assert result.output_path is not None
        frames = result.output_path.read_bytes().count(b"\rdone: ")
    assert (result.output, result.truncated, frames) == ("start\ndone: 10000/10000\nend\n", False, 10000)


@both
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"abc\b\bX\n", "aXc\n"),
        (r"one\ntwo\n\e[1A\e[2Kthree\n", "one\nthree\n"),
        (r"|\b/\b-\b\\\bdone\n", "done\n"),
        (r"long line\rshort\n", "shortline\n"),
        (r"long line\r\e[Kshort\n", "short\n"),
        (r"\e[31mred\e[0m plain\n", "red plain\n"),
        (r"a\e[5Cb\n", "a     b\n"),
        (r"ab\e[2Dxy\n", "xy\n"),
        (r"a\r\nb\r\n", "a\nb\n"),
        (r"line 1\nline 2\n\e[2A\e[Kgone 1\n\e[Kgone 2\n", "gone 1\ngone 2\n"),
        (r"\e[s\e[ubell\a\n", "bell\n"),
        (r"\e[?25lhidden cursor\e[?25h\n", "hidden cursor\n"),
        (r"before \e[?1049hin the editor\e[?1049lafter\n", "before after\n"),
    ],
)
async def test_redraws_give_what_a_screen_would_show(tmp_path: Path, provider: Provider, text: str, shown: str) -> None:
    """T25, D27: backspaces, cursor movement, erasing, colours, spinners."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"printf '{text}'")
    assert result.output == shown


@both
@pytest.mark.parametrize("wipe", [r"\e[H\e[2J", r"\e[3J", r"\ec", r"\e[H\e[2J\e[3J", r"\e[1;1H\e[J", r"\e[!p\ec\e[2J"])
async def test_clearing_the_screen_loses_no_output(tmp_path: Path, provider: Provider, wipe: str) -> None:
    """T25, D28: a person may not want to see it any more; a log keeps it."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"echo before; printf '{wipe}'; echo after")
    assert [line for line in result.output.splitlines() if line] == ["before", "after"]


@pytest.mark.parametrize("program", ["clear", "tput clear", "reset -Q 2>&1"])
async def test_programs_that_clear_lose_no_output(tmp_path: Path, program: str) -> None:
    """T25, D28: `clear`, `tput` and `reset` themselves, on a real terminal; the next command is clean."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(f"echo before; {program}; echo after")
        after = await terminal.run("echo clean")
    lines = [line for line in result.output.splitlines() if line]
    assert (lines[0], lines[-1], after.output) == ("before", "after", "clean\n")


# --- D29, D30, Much of it ---


@both
async def test_5_000_lines_are_complete(tmp_path: Path, provider: Provider) -> None:
    """T25, T27, D29: 500 of them in the text, with a notice; all in the file; all in the text when asked for."""
    everything = "".join(f"{n}\n" for n in range(1, 5001))
    wide = Settings(output_line_limit=10_000, output_character_limit=1_000_000)
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        short = await terminal.run("seq 5000")
        assert short.output_path is not None
        kept = short.output_path.read_bytes().replace(b"\r\n", b"\n").decode()
    async with open_terminal(cwd=tmp_path, provider=provider, settings=wide) as terminal:
        whole = await terminal.run("seq 5000")
    lines = short.output.splitlines()
    assert (short.truncated, len(lines), lines[0], lines[349], lines[351], lines[-1]) == (
        True,
        501,
        "1",
        "350",
        "4851",
        "5000",
    )
    assert "4,500 lines" in lines[350]
    assert (kept, whole.output, whole.truncated) == (everything, everything, False)


@both
async def test_the_whole_output_can_be_read_by_line_and_searched(tmp_path: Path, provider: Provider) -> None:
    """T27: what the text left out is one question away."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        execution = await terminal.start("seq 5000")
        await execution.result(10)
        middle = execution.spool.lines(2500, 2502)
        found = execution.spool.search("^4321", limit=5)
    assert ([line.strip() for line in middle.lines], middle.total) == ([b"2500", b"2501", b"2502"], 5000)
    assert [each.line_number for each in found] == [4321]


@both
async def test_a_line_of_5_mb_is_bounded_and_not_slow(tmp_path: Path, provider: Provider) -> None:
    """T25, D30: no newline to cut at: cut by characters, in time that grows with the size alone."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("head -c 5000000 /dev/zero | tr '\\0' x; (exit 3)")
    kept = result.output.count("x")
    assert (result.exit_code, result.truncated, result.output_bytes) == (3, True, 5_000_000)
    assert (45_000 < kept <= 50_000, len(result.output) < 50_200, result.duration < 5) == (True, True, True)


# --- D31, D32, Text that looks odd ---


@both
async def test_text_at_the_wrap_column_is_neither_split_nor_doubled(tmp_path: Path, provider: Provider) -> None:
    """T25, D31: wide, combining and joined characters where an 80-column terminal would wrap."""
    lines = [" " * pad + "x" * (80 - 4 - pad) + "漢字e\u0301👩‍👩‍👧🏳️‍🌈ก้\u200b|" for pad in range(8)]
    (tmp_path / "text").write_text("\n".join(lines) + "\n")
    async with open_terminal(cwd=tmp_path, provider=provider, settings=Settings(columns=80)) as terminal:
        result = await terminal.run("cat text")
    assert result.output.splitlines() == lines


@both
async def test_output_that_looks_like_a_prompt_is_output(tmp_path: Path, provider: Provider) -> None:
    """T16, D32: the end is told by marks, never by what the last line looks like."""
    text = "$ \n>>> \nuser@host:~$ \nroot@vm:/# ls\n% \n> \n(venv) $ \nPassword: \nbash-5.2$ "
    (tmp_path / "text").write_text(text)
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("cat text; sleep 0.05; (exit 3)")
        prompt = await terminal.run("""printf '%s' "user@host:~$ "; sleep 0.05; echo after""")
    assert (result.output, result.exit_code, prompt.output) == (text, 3, "user@host:~$ after\n")


# --- D33, Questions to the terminal ---

ASK = """\
import os, select, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, sys.argv[1].encode().decode('unicode_escape').encode('latin-1'))
reply = b''
while select.select([0], [], [], float(sys.argv[2]))[0]:
    reply += os.read(0, 100)
    if reply.endswith((b'R', b'c', b'n', b't', b'y', b'\\\\', b'\\a')):
        break
termios.tcsetattr(0, termios.TCSANOW, before)
print(reply)
"""


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (r"\x1b[6n", b"\x1b[40;1R"),
        (r"\x1b[c", b"\x1b[?62;22c"),
        (r"\x1b[5n", b"\x1b[0n"),
        (r"\x1b[18t", b"\x1b[8;40;120t"),
        (r"\x1b]11;?\x07", b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"),
        (r"\x1b]10;?\x1b\\", b"\x1b]10;rgb:dcdc/dcdc/dcdc\x1b\\"),
    ],
)
async def test_a_program_that_listens_gets_an_answer(tmp_path: Path, question: str, reply: bytes) -> None:
    """Answered once, never shown, and nothing is left over for the shell."""
    (tmp_path / "ask.py").write_text(ASK)
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(f"{PYTHON} ask.py '{question}' 5")
        after = await terminal.run("echo clean")
    assert (result.output, result.exit_code) == (f"{reply!r}\n", 0)
    assert (after.output, after.exit_code) == ("clean\n", 0)


async def test_an_answer_is_the_programs_own_size(tmp_path: Path) -> None:
    """After a resize the answers follow."""
    (tmp_path / "ask.py").write_text(ASK)
    async with open_terminal(cwd=tmp_path) as terminal:
        terminal.resize(rows=33, columns=99)
        result = await terminal.run(rf"{PYTHON} ask.py '\x1b[18t' 5")
    assert result.output == repr(b"\x1b[8;33;99t") + "\n"


@pytest.mark.parametrize("question", [r"\e[6n", r"\e[c", r"\e]11;?\a", r"\e[6n\e[c\e]10;?\a\e]11;?\e\\"])
async def test_a_question_of_nobody_is_neither_shown_nor_typed(tmp_path: Path, question: str) -> None:
    """`printf` does not listen: an answer would be typed into the shell, or read by the next program."""
    async with open_terminal(cwd=tmp_path) as terminal:
        asked = await terminal.run(f"printf '{question}x\\n'; (exit 3)")
        at_prompt = await terminal.run("echo clean")
        reader = await terminal.run(f"printf '{question}'; read -t 0.1 line; echo \"[$line]\"")
        after = await terminal.run("echo $?")
    assert (asked.output, asked.exit_code, at_prompt.output) == ("x\n", 3, "clean\n")
    assert (reader.output.splitlines()[-1], after.output) == ("[]", "0\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_an_answer_never_reaches_the_next_command(
    tmp_path: Path, shell: str, require: Callable[[str], None]
) -> None:
    """The one that asked has ended without listening; the next reads keys (`read` of fish does)."""
    require(shell)
    async with open_terminal(cwd=tmp_path, shell=shell) as terminal:
        await terminal.run(r"printf '\033[6n\033[c'")
        execution = await terminal.start(
            "sh -c 'stty -icanon; head -c 6; stty icanon'" if shell != "fish" else "read x"
        )
        await execution.waiting_for(input=True, timeout=10)
        await execution.send("typed\n")
        result = await execution.result(10, on_timeout="kill")
    assert "typed" in result.output and "[" not in result.output


async def test_an_answer_that_comes_too_late_is_not_a_command(tmp_path: Path) -> None:
    """A program asks in raw mode and leaves without listening. If it restores the terminal in the very moment we
    answer, the kernel echoes the answer (seen once in 40 times here); it is never run, nor read by the next command."""
    leave = ASK.replace("while select", "while False and select")
    (tmp_path / "ask.py").write_text(leave)
    async with open_terminal(cwd=tmp_path) as terminal:
        asked = [await terminal.run(rf"{PYTHON} ask.py '\x1b[6n\x1b[c' 0") for _ in range(5)]
        after = [await terminal.run("echo clean") for _ in range(3)]
    assert [(each.output.splitlines()[0], each.exit_code) for each in asked] == [("b''", 0)] * 5
    assert [(each.output, each.exit_code) for each in after] == [("clean\n", 0)] * 3


# --- D34, What a terminal is told to do ---


@both
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"\e]8;;http://example.com\e\\link\e]8;;\e\\ text\n", "link text\n"),
        (r"\e]8;id=1;file:///etc/passwd\alink\e]8;;\a\n", "link\n"),
        (r"\e]0;title\atext\e]2;other\e\\\n", "text\n"),
        (r"\e]52;c;c2VjcmV0\atext\n", "text\n"),
        (r"\e]9;notification\atext\e]777;notify;a;b\a\n", "text\n"),
        (r"\e]1337;File=inline=1:AAAA\atext\n", "text\n"),
        (r"\e_Gf=24;AAAA\e\\text\eP1$r0m\e\\\n", "text\n"),
    ],
)
async def test_links_titles_and_clipboards_leave_only_text(
    tmp_path: Path, provider: Provider, text: str, shown: str
) -> None:
    """T25, D34: the text of a link stays; titles, notifications, images and clipboard writes are not text."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(f"printf '{text}'")
    assert result.output == shown


@pytest.mark.parametrize("question", [r"\x1b]52;c;?\x07", r"\x1b[21t", r"\x1bP$qm\x1b\\", r"\x1b]0;evil\x07\x1b[20t"])
async def test_what_a_program_could_have_chosen_is_never_told_back(tmp_path: Path, question: str) -> None:
    """Clipboard, title and settings reports would arrive as typed input: no answer at all."""
    (tmp_path / "ask.py").write_text(ASK)
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(f"{PYTHON} ask.py '{question}' 0.2")
    assert result.output == "b''\n"


# --- D35, D36, Whose output ---


async def test_what_a_job_prints_between_commands_is_nobodys_output(tmp_path: Path) -> None:
    """T16, D35: the kernel does not tell who wrote on a terminal. What comes between two commands belongs to neither;
    what a job prints while another command runs can only be shown with it."""
    os.mkfifo(tmp_path / "gate")
    watcher = Watcher()
    async with open_terminal(cwd=tmp_path, listener=watcher) as terminal:
        first = await terminal.run("(read x <gate; echo la''te) & echo fg")
        (tmp_path / "gate").write_text("go\n")
        await watcher.until(b"late")
        second = await terminal.run("echo second")
        third = await terminal.run("echo third; jobs")
    assert (first.output.splitlines()[-1], first.exit_code) == ("fg", 0)
    assert "late" not in first.output + second.output + third.output
    assert (second.output, third.output) == ("second\n", "third\n")


async def test_the_notice_of_a_finished_job_is_no_output(tmp_path: Path) -> None:
    """T16, D35: `[1]+ Done` is said between commands, by the shell to a person.

    D wants it removed always. In the middle of a later list (`sleep 1; echo`) bash says it too, and there it can't be
    told from what a program prints; it stays.
    """
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("sleep 0.01 &")
        await terminal.run("wait")
        results = [await terminal.run(f"echo {n}") for n in range(3)]
    assert [each.output for each in results] == ["0\n", "1\n", "2\n"]


@both
async def test_output_and_errors_keep_their_order(tmp_path: Path, provider: Provider) -> None:
    """T16, D36: one stream, in the order of the writes."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run(
            "for i in 1 2 3; do echo o$i; echo e$i >&2; done; sh -c 'echo a; echo b >&2; echo c'"
        )
    assert result.output == "o1\ne1\no2\ne2\no3\ne3\na\nb\nc\n"


@both
async def test_repeated_lines_are_folded_for_a_model_only(tmp_path: Path, provider: Provider) -> None:
    """T25: three or more equal lines in a row; the output itself stays as it was."""
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("for i in 1 2 3 4 5; do echo same; done; echo other")
    assert result.output == "same\n" * 5 + "other\n"
    assert result.for_model() == "same\n[… the line above 4 more times]\nother\n"
