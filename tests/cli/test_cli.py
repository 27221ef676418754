"""`tarmac` itself: version, help, and what it says when it is asked nonsense."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import on_a_screen, tarmac

import tarmac as package
from tarmac.cli.parser import TABLE

pytestmark = pytest.mark.slow


def test_the_version_is_told_in_one_line() -> None:
    outcome = tarmac("--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"tarmac {package.__version__}\n", "")


def test_the_installed_command_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("tarmac")
    done = subprocess.run([script, "-V"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, f"tarmac {package.__version__}\n")


def test_the_version_imports_neither_asyncio_nor_importlib_metadata_nor_argparse() -> None:
    code = (
        "import sys; from tarmac.cli import main; code = main(['--version']);"
        "print([name for name in ('asyncio', 'importlib.metadata', 'argparse', 'tarmac.terminals', 'subprocess')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=30, env=_path())
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr


def _path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",), ("help", "--help")])
def test_the_front_page_says_what_it_is_lists_the_commands_and_gives_examples(arguments: tuple[str, ...]) -> None:
    outcome = tarmac(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    for wanted in (
        "real terminals for AI agents",
        "\n    exec ",
        "\n    tour ",
        "examples:",
        "tarmac exec --",
        "docs/",
    ):
        assert wanted in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize("verb", TABLE)
def test_a_help_page_fits_a_terminal_of_80_columns(verb: str) -> None:
    too_long = [line for line in tarmac(verb, "--help", COLUMNS="80").out.splitlines() if len(line) > 80]
    assert too_long == []


@pytest.mark.parametrize("arguments", [("exec", "--help"), ("exec", "-h"), ("help", "exec")])
def test_a_command_has_a_page_of_its_own(arguments: tuple[str, ...]) -> None:
    outcome = tarmac(*arguments)
    assert outcome.code == 0
    for wanted in ("--cwd", "--shell", "--provider", "--timeout", "--json", "--jsonl", "124", "125", "130"):
        assert wanted in outcome.out


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["exce"], "there is no command `exce`", "did you mean `exec`?"),
        (["--verison"], "there is no option `--verison`", "did you mean `--version`?"),
        (["frobnicate"], "there is no command `frobnicate`", "`tarmac --help` lists them"),
        (["help", "tuor"], "there is no command `tuor`", "did you mean `tour`?"),
        (["tour", "paris"], "the tour takes no arguments, not `paris`", "tarmac tour"),
        (["exec"], "there is no command to run", "tarmac exec -- COMMAND"),
        (["exec", "--"], "there is no command to run", "tarmac exec -- COMMAND"),
        (["exec", "--tmieout", "3", "true"], "there is no option `--tmieout`", "did you mean `--timeout`?"),
        (["exec", "--cwd"], "--cwd: expected one argument", "--help"),
        (["exec", "--timeout", "0", "true"], "--timeout must be a number of seconds, more than 0", "--timeout none"),
        (["exec", "--timeout", "-1", "true"], "--timeout must be a number of seconds, more than 0", "--timeout none"),
        (["exec", "--timeout", "soon", "true"], "--timeout must be a number of seconds", "--timeout none"),
        (["exec", "--timeout", "inf", "true"], "--timeout must be a number of seconds", "--timeout none"),
        (["exec", "--timeout", "nan", "true"], "--timeout must be a number of seconds", "--timeout none"),
        (["exec", "--provider", "ptty", "true"], "--provider is pty or exec, not `ptty`", "did you mean `pty`?"),
        (["exec", "--json", "--jsonl"], "--json and --jsonl exclude each other", "--jsonl"),
        (["exec", "--jsonl", "true"], "--jsonl reads its commands from standard input", "--jsonl"),
    ],
)
def test_nonsense_is_answered_by_what_is_wrong_and_what_to_do(arguments: list[str], what: str, hint: str) -> None:
    outcome = tarmac(*arguments)
    first, second = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (2, "")
    assert first.startswith(f"tarmac: {what}")
    assert second.startswith("  hint: ")
    assert hint in second


def test_on_a_narrow_screen_a_complaint_is_broken_between_words() -> None:
    """U6."""
    with on_a_screen("models", "--base-url", "http://127.0.0.1:9", columns=40) as screen:
        shown = screen.rest().decode().replace("\r", "")
        assert screen.process.returncode == 2
    lines = [
        "tarmac: --base-url needs --provider",
        "  hint: --provider compatible is for",
        "    a server of your own",
        "",
    ]
    assert shown.split("\n") == lines


def test_a_page_nobody_reads_to_its_end_makes_no_noise() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([sys.executable, "-m", "tarmac", "--help"], stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_every_verb_that_lists_or_shows_has_json() -> None:
    """A5: all but those that open something, speak a protocol or print a script for a shell."""
    speaks = {"web", "serve", "acp", "mcp", "tour", "completion"}
    lacks = {verb for verb, spec in TABLE.items() if all(each.name != "json" for each in spec.options)}
    assert lacks == speaks
