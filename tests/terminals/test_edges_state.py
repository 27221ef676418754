"""Where the terminal stands: the shell's own word, whatever a directory is called (research/terminals.md D, 54, 55)."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tarmac.errors import DirectoryUnavailable
from tarmac.terminals import Settings, open_terminal
from tarmac.terminals.events import DirectoryChanged, TerminalEvent
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell

both = pytest.mark.parametrize("provider", ["pty", "exec"])

NAMES = {
    "spaces": b" with  spaces ",
    "semicolon": b"a;touch owned;b",
    "newline": b"new\nline",
    "trailing newline": b"newline\n",
    "dollar": b"$HOME $(touch owned) `touch owned`",
    "leading dash": b"-P",
    "double dash": b"--",
    "only a dash": b"-",
    "quotes": b'it\'s "quoted"',
    "backslash": b"back\\slash\\x3b\\n",
    "glob": b"*?[a]{b,c}",
    "tilde": b"~",
    "hash": b"#no comment",
    "history": b"!!bang!",
    "not UTF-8": b"caf\xe9 \xff\xfe",
    "emoji": "📁 é e\u0301".encode(),
    "escape": b"esc\x1b[31m\x07bell\x1b]0;x\x07",
    "control": b"\x01\x03\x04\x13\x16\x1a\x7f",
    "carriage return": b"a\rb",
    "tab": b"a\tb",
    "a mark": b"\x1b]633;D;0\x07",
    "deleted": b"gone (deleted)",
    "dots": b"...",
    "long": b"x" * 255,
    "percent": b"%s%n",
    "colon": b"a:b=c",
}


def odd_directory(parent: Path, name: bytes) -> Path:
    path = Path(os.fsdecode(os.fsencode(parent) + b"/" + name))
    path.mkdir()
    return path


# --- D54, Names ---


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
async def test_cd_into_any_name_is_tracked_exactly(tmp_path: Path, name: bytes) -> None:
    """T7, D54: byte for byte, told at the end of the very command that moved."""
    target = odd_directory(tmp_path, name)
    (tmp_path / "name").write_bytes(os.fsencode(target) + b"\0")
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run('IFS= read -r -d "" there <name; cd -- "$there"')
        stays = await terminal.run('[[ $PWD == "$there" ]]')
        assert (result.cwd, result.exit_code, terminal.cwd) == (target, 0, target)
    assert (stays.exit_code, stays.cwd, (tmp_path / "owned").exists()) == (0, target, False)


@both
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
async def test_a_terminal_can_be_moved_to_any_name(tmp_path: Path, provider: Provider, name: bytes) -> None:
    """T6, D54: before the command runs, without a trace in its output or code. (`exec` runs there and stays home.)"""
    target = odd_directory(tmp_path, name)
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        result = await terminal.run("touch here; (exit 3)", cwd=target)
        after = await terminal.run("true")
    assert (result.output, result.exit_code, (target / "here").exists()) == ("", 3, True)
    home = target if provider == "pty" else tmp_path
    assert (after.cwd, [each.name for each in tmp_path.iterdir()]) == (home, [os.fsdecode(name)])


@both
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
async def test_a_terminal_can_be_opened_in_any_name(tmp_path: Path, provider: Provider, name: bytes) -> None:
    """T6, D54: from its first moment on."""
    target = odd_directory(tmp_path, name)
    async with open_terminal(cwd=target, provider=provider) as terminal:
        result = await terminal.run("touch here")
    assert (result.cwd, (target / "here").exists()) == (target, True)


async def test_a_symlink_keeps_its_name_as_the_shell_does(tmp_path: Path) -> None:
    """T7, D54: `cd link` is the link's name (logical), `cd -P link` the true one (physical)."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    async with open_terminal(cwd=tmp_path) as terminal:
        logical = await terminal.run("cd link; pwd")
        deep = await terminal.run("cd deep; pwd")
        up = await terminal.run("cd ..; pwd")
        physical = await terminal.run(f"cd -P {tmp_path}/link; pwd")
    assert [each.cwd for each in (logical, deep, up, physical)] == [
        tmp_path / "link",
        tmp_path / "link" / "deep",
        tmp_path / "link",
        tmp_path / "real",
    ]
    assert [each.output for each in (logical, physical)] == [f"{tmp_path}/link\n", f"{tmp_path}/real\n"]


async def test_a_deleted_directory_is_left_with_a_notice(tmp_path: Path) -> None:
    """T7, D54: the next command runs in the nearest parent that is left, and says so once."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    async with open_terminal(cwd=tmp_path / "a" / "b") as terminal:
        await terminal.run("true")
        shutil.rmtree(tmp_path / "a")
        result = await terminal.run("pwd; touch here")
        after = await terminal.run("pwd")
    assert (result.output, result.exit_code, result.cwd) == (f"{tmp_path}\n", 0, tmp_path)
    assert ("was deleted" in " ".join(result.notes), after.notes) == (True, ())
    assert (tmp_path / "here").exists()


async def test_a_command_that_deletes_its_own_directory_ends_as_it_should(tmp_path: Path) -> None:
    """T7, D54: with its code; the one after is moved out."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run("mkdir d; cd d; rmdir ../d; (exit 3)")
        after = await terminal.run("pwd")
    assert (result.exit_code, result.reason, after.output, after.cwd) == (3, "done", f"{tmp_path}\n", tmp_path)


async def test_a_directory_deleted_and_made_again_is_the_new_one(tmp_path: Path) -> None:
    """T7, D54: the shell stands in the old one, which has the same name; files must land in the new."""
    (tmp_path / "d").mkdir()
    async with open_terminal(cwd=tmp_path / "d") as terminal:
        await terminal.run("true")
        (tmp_path / "d").rmdir()
        (tmp_path / "d").mkdir()
        result = await terminal.run("touch here; (exit 3)")
    assert (result.exit_code, (tmp_path / "d" / "here").exists(), result.cwd) == (3, True, tmp_path / "d")


async def test_a_renamed_directory_is_known_by_its_new_name(tmp_path: Path) -> None:
    """T7, D54: the kernel's word, when the shell's own is out of date."""
    (tmp_path / "old").mkdir()
    async with open_terminal(cwd=tmp_path / "old") as terminal:
        await terminal.run("true")
        (tmp_path / "old").rename(tmp_path / "new")
        result = await terminal.run("touch here")
    assert ((tmp_path / "new" / "here").exists(), result.cwd) == (True, tmp_path / "new")


@pytest.mark.parametrize("lie", ["PWD=/etc", "declare PWD=/etc", "unset PWD", "PWD=$'\\e]633;D;0\\a'", "OLDPWD=/etc"])
async def test_a_shell_that_lies_about_pwd_is_not_believed(tmp_path: Path, lie: str) -> None:
    """T7, D54: $PWD is a variable like any other; the kernel knows."""
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(lie)
        after = await terminal.run("true")
    assert (result.cwd, after.cwd, after.exit_code) == (tmp_path, tmp_path, 0)


# --- D55, Ways to move ---


@pytest.mark.parametrize(
    ("command", "code", "where"),
    [
        ("cd a", 0, "a"),
        ("cd a/b && cd .. && false", 1, "a"),
        ("cd a || true; cd nowhere 2>/dev/null", 1, "a"),
        ("pushd a >/dev/null", 0, "a"),
        ("pushd a >/dev/null; pushd b >/dev/null; popd >/dev/null", 0, "a"),
        ("pushd a >/dev/null; popd >/dev/null", 0, "."),
        ("cd a; cd b; cd - >/dev/null", 0, "a"),
        ("go() { cd a/b; return 4; }; go", 4, "a/b"),
        (". ./move.sh", 6, "a/b"),
        ("builtin cd a", 0, "a"),
        ("command cd a", 0, "a"),
        ("eval 'cd a'", 0, "a"),
        ("{ cd a; } >/dev/null", 0, "a"),
        ("cd a; exec 3>&1", 0, "a"),
        ("CDPATH=a; cd b >/dev/null", 0, "a/b"),
        ("shopt -s autocd; a 2>/dev/null >/dev/null", 0, "a"),
        ("if cd a; then (exit 3); fi", 3, "a"),
        ("for d in a b; do cd $d; done", 0, "a/b"),
        ("cd a/../a/./b/..", 0, "a"),
        ("cd a//b///", 0, "a/b"),
        ("trap 'cd a' USR1; kill -USR1 $$", 0, "a"),
        ("(cd a)", 0, "."),
        ("(cd a; cd b; pwd >/dev/null)", 0, "."),
        ("x=$(cd a)", 0, "."),
        ("cd a | true", 0, "."),
        ("cd a & wait", 0, "."),
        ("bash -c 'cd a'", 0, "."),
        ("env -C a true", 0, "."),
        ("echo cd a >/dev/null", 0, "."),
        ("alias cd=:; unalias cd; cd a", 0, "a"),
        ("cd() { builtin cd a; }; cd anywhere", 0, "a"),
        ("cd a; set -- x; shift", 0, "a"),
    ],
)
async def test_every_way_to_move_is_known(tmp_path: Path, command: str, code: int, where: str) -> None:
    """T7, D55: `pushd`, `popd`, `cd -`, functions, scripts, lists that fail; a subshell moves nobody."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "move.sh").write_text("cd a\ncd b\nreturn 6\n")
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(command)
        after = await terminal.run("/bin/pwd")
        assert (result.exit_code, result.cwd, terminal.cwd) == (code, tmp_path / where, tmp_path / where)
    assert after.output == f"{tmp_path / where}\n"


async def test_cd_without_words_goes_home(tmp_path: Path, own_state: Path) -> None:
    """T7, D55: and `cd -` comes back."""
    async with open_terminal(cwd=tmp_path) as terminal:
        home = await terminal.run("cd")
        back = await terminal.run("cd -")
    assert (home.cwd, back.cwd, back.output) == (own_state, tmp_path, f"{tmp_path}\n")


async def test_a_move_is_told_once_as_an_event(tmp_path: Path) -> None:
    """T7, T32: one for each change, none for a command that stays."""
    (tmp_path / "a").mkdir()
    moves: list[Path] = []

    def listen(event: TerminalEvent) -> None:
        if isinstance(event, DirectoryChanged):
            moves.append(event.cwd)

    async with open_terminal(cwd=tmp_path, listener=listen) as terminal:
        for command in ("true", "cd a", "true", "cd ..", "(cd a)"):
            await terminal.run(command)
    assert moves == [tmp_path / "a", tmp_path]


@pytest.mark.parametrize("command", ["cd a; sleep 100", "cd a; while :; do :; done", "cd a; read x"])
async def test_a_move_in_an_interrupted_command_is_known(tmp_path: Path, command: str) -> None:
    """T7, T17: the end mark is lost with the line; the prompt tells the directory."""
    (tmp_path / "a").mkdir()
    async with open_terminal(cwd=tmp_path) as terminal:
        result = await terminal.run(command, timeout=0.2, on_timeout="interrupt")
    assert (result.exit_code, result.cwd) == (130, tmp_path / "a")


# T6: moving for a command


async def test_a_move_leaves_no_trace(tmp_path: Path) -> None:
    """T6: neither in the output, the code, `$?`, nor `$_`; the shell's variables are as they were."""
    (tmp_path / "a").mkdir()
    async with open_terminal(cwd=tmp_path) as terminal:
        await terminal.run("x=kept; CDPATH=/; (exit 42)")
        result = await terminal.run("echo $? $x; pwd", cwd=tmp_path / "a")
        same = await terminal.run("pwd", cwd=tmp_path / "a")
    assert (result.output, result.exit_code, result.cwd) == (f"42 kept\n{tmp_path}/a\n", 0, tmp_path / "a")
    assert (same.output, same.notes) == (f"{tmp_path}/a\n", ())


@both
async def test_a_command_does_not_run_where_there_is_no_directory(tmp_path: Path, provider: Provider) -> None:
    """T6: gone, or a file: a clear error, nothing is run, and the terminal stays where it was."""
    (tmp_path / "file").write_text("")
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        for place, what in (("gone", "does not exist"), ("file", "is a file"), ("file/x", "is a file")):
            with pytest.raises(DirectoryUnavailable, match=what) as caught:
                await terminal.run("touch ran", cwd=tmp_path / place)
            assert caught.value.hint
        after = await terminal.run("ls; (exit 3)")
        assert (terminal.busy, terminal.cwd) == (False, tmp_path)
    assert (after.output, after.exit_code) == ("file\n", 3)


@both
async def test_a_directory_that_vanishes_at_the_last_moment_stops_the_command(
    tmp_path: Path, provider: Provider
) -> None:
    """T6: it was there when we looked, and not when the shell went: the command does not run elsewhere."""
    place = tmp_path / "vanishing"
    place.mkdir()
    async with open_terminal(cwd=tmp_path, provider=provider, settings=Settings(command_delay=0.2)) as terminal:
        run = asyncio.create_task(terminal.run("touch ran", cwd=place))
        await asyncio.sleep(0)  # it has looked, and waits for its delay
        place.rmdir()
        with pytest.raises(DirectoryUnavailable):
            await run
        after = await terminal.run("ls; (exit 3)")
        assert (terminal.busy, terminal.cwd, terminal.current) == (False, tmp_path, None)
    assert (after.output, after.exit_code, after.fresh_shell) == ("", 3, False)


async def test_a_relative_directory_is_seen_from_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T6: `cwd` is the caller's path, whatever directory the shell is in."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    async with open_terminal(cwd="a") as terminal:
        await terminal.run("cd /")
        result = await terminal.run("pwd", cwd=Path("a/b"))
    assert result.output == f"{tmp_path}/a/b\n"


@both
async def test_exec_stays_where_it_began(tmp_path: Path, provider: Provider) -> None:
    """T1: variables and directories last in a `pty`; a process a command has none to keep."""
    (tmp_path / "a").mkdir()
    async with open_terminal(cwd=tmp_path, provider=provider) as terminal:
        await terminal.run("cd a; x=1; f() { :; }")
        result = await terminal.run('echo "${x-unset}"; pwd')
    kept, fresh = f"1\n{tmp_path}/a\n", f"unset\n{tmp_path}\n"
    assert result.output == (kept if provider == "pty" else fresh)
