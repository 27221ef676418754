"""Full-screen programs, driven as a model drives them: keys in, the screen out, one call a step."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools.workshop import Workshop

from tarmac.terminals import Terminal

pytestmark = pytest.mark.shell
Require = Callable[[str], None]


class Driver:
    """A program in a terminal of the task, and what its screen shows."""

    def __init__(self, shop: Workshop, terminal: Terminal) -> None:
        self.shop, self.terminal = shop, terminal
        self.told = ""

    async def keys(self, keys: str) -> str:
        self.told = await self.shop.text("send_to_terminal", id=self.terminal.id, keys=keys)
        return self.told

    async def text(self, text: str, *, enter: bool = False) -> str:
        self.told = await self.shop.text("send_to_terminal", id=self.terminal.id, text=text, enter=enter)
        return self.told

    async def whole(self) -> str:
        return await self.shop.text("read_terminal", id=self.terminal.id, screen=True)

    async def until(self, pattern: str) -> str:
        """The whole screen, once it has `pattern`: programs that redraw by themselves take their time."""
        for _ in range(50):
            if re.search(pattern, shown := await self.whole()):
                return shown
        raise AssertionError(f"{pattern!r} was never on the screen:\n{shown}")

    @property
    def ended(self) -> bool:
        return not self.terminal.busy


async def start(shop: Workshop, command: str) -> Driver:
    opened = await shop.call("open_persistent_terminal")
    terminal = shop.registry.get(opened.details["terminal"]["id"])
    await shop.call("run_persistent_command", id=terminal.id, command=f"TERM=xterm-256color {command}", timeout=0.2)
    assert terminal.busy
    return Driver(shop, terminal)


async def test_a_file_is_edited_and_saved_in_vim(shop: Workshop, require: Require) -> None:
    """T28."""
    require("vim")
    (shop.folder / "a.txt").write_text("one\ntwo\n")
    vim = await start(shop, "vim -u NONE -N a.txt")
    assert "▸ 1 │ ▮one" in await vim.until("one")
    assert "‹" not in await vim.keys("G o")
    assert "three" in await vim.text("three")
    assert "[unchanged: rows" in vim.told
    await vim.keys("Escape")
    assert vim.ended is False
    await vim.text(":wq", enter=True)
    assert vim.ended
    assert (shop.folder / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_file_is_edited_and_saved_in_nano(shop: Workshop, require: Require) -> None:
    """T28."""
    require("nano")
    (shop.folder / "a.txt").write_text("one\n")
    nano = await start(shop, "nano -I a.txt")
    await nano.until("GNU nano")
    await nano.text("zero ")
    assert "Save modified buffer?" in await nano.keys("C-x")
    assert "File Name to Write" in await nano.keys("y")
    await nano.keys("Enter")
    assert nano.ended
    assert (shop.folder / "a.txt").read_text() == "zero one\n"


async def test_less_shows_a_page_searches_and_quits(shop: Workshop, require: Require) -> None:
    """T28."""
    require("less")
    (shop.folder / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    less = await start(shop, "less numbers")
    assert "  1 │ line 1\n" in await less.until("line 1\n")
    assert "  1 │ line 40\n" in await less.keys("Space")
    await less.keys("/")
    assert "‹line 300›" in await less.text("line 300", enter=True)
    await less.keys("q")
    assert less.ended


async def test_an_entry_of_a_whiptail_menu_is_chosen(shop: Workshop, require: Require) -> None:
    """T28."""
    require("whiptail")
    menu = await start(shop, "whiptail --menu Fruit 12 40 3 a Apple b Banana c Cherry 2>chosen")
    assert re.search("‹a +Apple", await menu.until("Cherry"))
    assert re.search("‹b +Banana", await menu.keys("Down"))
    assert "‹<Ok>›" in await menu.keys("Tab")
    await menu.keys("Enter")
    assert menu.ended
    assert (shop.folder / "chosen").read_text() == "b"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


async def test_git_rebase_interactive_is_answered(shop: Workshop, require: Require) -> None:
    """T28: the editor that git starts is driven."""
    require("vim")
    git(shop.folder, "init", "-b", "main")
    git(shop.folder, "config", "user.name", "A")
    git(shop.folder, "config", "user.email", "a@example.org")
    for name in ("one", "two", "three"):
        (shop.folder / name).write_text(name)
        git(shop.folder, "add", name)
        git(shop.folder, "commit", "-m", name)
    rebase = await start(shop, "GIT_EDITOR='vim -u NONE -N' git rebase -q -i HEAD~2")
    assert re.search(r"1 │ ▮pick \w+ two", await rebase.until("Rebase"))
    await rebase.text("cwdrop")
    await rebase.keys("Escape")
    await rebase.text(":wq", enter=True)
    await rebase.terminal.waiting_for(timeout=10)
    assert rebase.ended
    assert git(shop.folder, "log", "--format=%s").split() == ["three", "one"]


async def test_less_in_tmux_is_looked_at_when_nothing_is_printed_any_more(shop: Workshop, require: Require) -> None:
    """T28: nobody can see who waits behind tmux."""
    require("tmux")
    (shop.folder / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    tmux = await start(shop, f"tmux -S {shop.folder}/socket -f /dev/null new-session less numbers")
    await tmux.until("line 1\n")
    told = await tmux.keys("Space")
    assert "settled: quiet" in told
    assert "line 45" in told
    await tmux.keys("q")
    await tmux.terminal.waiting_for(timeout=10)
    assert tmux.ended


FORM = """
import curses
def main(screen):
    curses.echo()
    screen.addstr(1, 2, "Name:"); screen.addstr(2, 2, "Town:")
    name = screen.getstr(1, 8).decode()
    town = screen.getstr(2, 8).decode()
    screen.addstr(4, 2, "Save? (y/n)", curses.A_REVERSE)
    if screen.getkey() == "y":
        open("form", "w").write(f"{name} of {town}")
curses.wrapper(main)
"""


async def test_an_ncurses_form_is_filled_in(shop: Workshop) -> None:
    """T28."""
    (shop.folder / "form.py").write_text(FORM)
    form = await start(shop, f"{sys.executable} form.py")
    assert "▸ 2 │   Name: ▮" in await form.until("Town")
    assert "▸ 3 │   Town: ▮" in await form.text("Ada", enter=True)
    assert "‹Save? (y/n)›" in await form.text("London", enter=True)
    await form.keys("y")
    assert form.ended
    assert (shop.folder / "form").read_text() == "Ada of London"


async def test_fzf_is_narrowed_down(shop: Workshop, require: Require) -> None:
    """T28."""
    require("fzf")
    fzf = await start(shop, "seq 1000 | fzf >found")
    assert "1000/1000" in await fzf.until("1000/1000")
    await fzf.text("777")
    assert re.search(r"\b1/1000", await fzf.until(r"\b1/1000"))
    await fzf.keys("Enter")
    assert fzf.ended
    assert (shop.folder / "found").read_text() == "777\n"


async def test_htop_filters_its_processes(shop: Workshop, require: Require) -> None:
    """T28: a program that redraws by itself."""
    require("htop")
    htop = await start(shop, "htop")
    await htop.until("F10.*Quit")
    assert "Filter" in await htop.keys("F4")
    await htop.text("nothing-has-this-name")
    await htop.keys("Enter")
    assert "python" not in await htop.until("F10.*Quit")
    await htop.keys("q")
    assert htop.ended


async def test_top_is_sorted_and_left(shop: Workshop, require: Require) -> None:
    """T28."""
    require("top")
    top = await start(shop, "top")
    await top.until("PID USER")
    assert "Help for Interactive Commands" in await top.keys("h")
    await top.keys("q")
    await top.until("PID USER")
    await top.keys("q")
    assert top.ended


async def test_a_python_session_answers_with_text(shop: Workshop) -> None:
    """T28: it takes keys and draws no screen, so its output is told."""
    python = await start(shop, f"{sys.executable} -q")
    assert "\n42\n" in await python.text("6 * 7", enter=True)
    assert "Screen" not in python.told
    await python.text("exit()", enter=True)
    assert python.ended


async def test_a_directory_is_entered_in_midnight_commander(shop: Workshop, require: Require) -> None:
    """T28."""
    require("mc")
    (shop.folder / "inner").mkdir()
    (shop.folder / "inner" / "deep.txt").write_text("x")
    mc = await start(shop, f"HOME={shop.folder} mc -u -X . {shop.folder}/inner")
    assert re.search("‹.*UP--DIR", await mc.until("deep.txt"))
    for _ in range(5):  # past what mc has just made in its home
        if re.search("‹/inner", await mc.keys("Down")):
            break
    assert "‹/inner" in mc.told
    assert "deep.txt" in await mc.keys("Enter")
    await mc.keys("F10")
    if not mc.ended:
        await mc.keys("Enter")
    assert mc.ended


async def test_a_dialog_in_another_shell_script_is_confirmed(shop: Workshop, require: Require) -> None:
    """T28: the program in front is not the command that was given."""
    require("whiptail")
    (shop.folder / "ask.sh").write_text("whiptail --yesno Really? 8 30 && echo yes >answer || echo no >answer\n")
    dialog = await start(shop, "bash ask.sh")
    assert "‹<Yes>›" in await dialog.until("Really")
    assert "‹<No>›" in await dialog.keys("Right")
    await dialog.keys("Enter")
    assert dialog.ended
    assert (shop.folder / "answer").read_text() == "no\n"


async def test_the_row_in_which_a_secret_is_typed_is_withheld(shop: Workshop) -> None:
    """T19, T28."""
    (shop.folder / "ask.py").write_text("import getpass; print('public'); getpass.getpass('key for wallet 17: ')")
    driver = await start(shop, f"{sys.executable} ask.py")
    shown = await driver.until("withheld")
    assert "public" in shown
    assert "wallet 17" not in shown.partition("Screen")[2]


async def test_without_the_emulator_the_result_says_what_to_install(
    shop: Workshop, require: Require, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T28: keys work all the same."""
    require("less")
    monkeypatch.setitem(sys.modules, "pyghostty", None)
    monkeypatch.setitem(sys.modules, "pyghostty.core", None)
    (shop.folder / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    less = await start(shop, "less numbers")
    said = await shop.failure("read_terminal", id=less.terminal.id, screen=True)
    assert "pyghostty" in said
    assert "pip install 'tarmac[screen]'" in await less.keys("Space")
    await less.keys("q")
    assert less.ended


async def test_a_terminal_without_a_screen_says_so(shop: Workshop) -> None:
    """T28."""
    terminal = await shop.registry.open(cwd=shop.folder, task=shop.bench.task, provider="exec")
    said = await shop.failure("read_terminal", id=terminal.id, screen=True)
    assert f"terminal {terminal.id} has no screen" in said
