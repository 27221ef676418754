"""Where a program is installed, its own parser decides whether our table reads an option as it does.

Alone at the end, an option that takes a value complains that it lacks one. And of `-x -- --no-such-option` the last
word is an operand where `-x` is a flag. Where it takes a value, `--` is that value, and the program complains of an
option that it does not know. So a table that takes one for the other is found without knowing anything of the program
but how it complains.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tarmac.policy.plan import environment
from tarmac.policy.programs.checks import OWN
from tarmac.policy.programs.program import Grammar, grammars

pytestmark = [pytest.mark.programs, pytest.mark.slow]

UNKNOWN = "--no-such-option"
PATIENCE = 30  # seconds: pip takes three on a quiet machine
_COMPLAINT = re.compile(
    r"(unrecogni[sz]ed|unknown|invalid|illegal|bad|no such) (option|flag|switch)|(unrecogni[sz]ed|unexpected) argument",
    re.IGNORECASE,
)
_LACKING = re.compile(
    r"requires an? (argument|value|parameter)|needs an? (argument|value)|expected one argument|missing argument"
    r"|argument missing|option requires",
    re.IGNORECASE,
)
# They stop at these, whatever follows; or they wait, or need what this machine has not.
_ENDS = frozenset(("help", "version", "h", "V"))
_NOT_ASKED = frozenset(("tail -f", "tail -F", "tail --follow", "top", "journalctl", "dmesg", "sleep"))
_SLOW = frozenset(("npm", "pip3", "docker", "podman", "kubectl", "gh", "helm", "terraform", "apt", "man", "apropos"))


class NoAnswer(Exception):
    """A program that did not end in time. Its silence says nothing of its options."""


@cache
def stderr_of(words: tuple[str, ...], folder: Path) -> str:
    """What a program prints when it gets these words, with nothing to read, in an empty folder.

    It has no network (`pip list -o` asks the index), and what it started ends with it.
    """
    try:
        ran = subprocess.run(
            (*alone(), *words),
            cwd=folder,
            env=environment(os.environ, workspace=folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(" ".join(words)) from None
    return ran.stderr.decode(errors="replace") + ran.stdout.decode(errors="replace")[:2000]


@cache
def alone() -> tuple[str, ...]:
    """What to put before a program so that it has processes of its own and no network; nothing where that can't be."""
    words = ("bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-net", "--unshare-pid", "--die-with-parent")
    try:
        works = subprocess.run((*words, "true"), capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if works else ()


def complains(words: tuple[str, ...], folder: Path) -> bool:
    """Whether the program takes `UNKNOWN` among these words for an option."""
    text = stderr_of(words, folder)
    return any(_COMPLAINT.search(line) and ("no-such-option" in line or "-- '-'" in line) for line in text.splitlines())


def listed() -> Iterator[Grammar]:
    for name, program in grammars().items():
        words = name.split()
        if program.prefix or program.check in OWN or program.instead or program.single or name in _NOT_ASKED:
            continue
        if words[0] not in _SLOW and shutil.which(words[0]) is not None:
            yield program


def wrong_options(program: Grammar, folder: Path) -> list[str]:
    """The options of `program` that it reads in another way than the table says."""
    own = tuple(program.name.split())
    try:
        tells = complains((*own, UNKNOWN), folder) and not complains((*own, "--", UNKNOWN), folder)
    except NoAnswer as silent:
        pytest.skip(f"`{silent}` does not end within {PATIENCE} s")
    options = [(f"-{letter}", kind) for letter, kind in program.short.items()]
    options += [(f"--{name}", kind) for name, kind in program.long.items()]
    found = []
    for option, kind in options:
        if option.lstrip("-") in _ENDS or f"{program.name} {option}" in _NOT_ASKED or kind == "+":
            continue
        try:
            found += wrong_option(own, option, kind, folder, tells=tells)
        except NoAnswer:
            continue  # it waits for something
    return found


def wrong_option(own: tuple[str, ...], option: str, kind: str, folder: Path, *, tells: bool) -> list[str]:
    alone = stderr_of((*own, option), folder)
    if _COMPLAINT.search(alone) and "no-such" not in alone:
        return []  # it does not know the option at all: then it does nothing
    needs = _LACKING.search(alone) is not None
    if kind in ("", "::"):
        if needs or (tells and complains((*own, option, "--", UNKNOWN), folder)):
            return [f"{option} takes a value"]
    elif tells and not needs and complains((*own, option, UNKNOWN), folder):
        return [f"{option} takes no value"]
    return []


@pytest.mark.parametrize("program", [pytest.param(each, id=each.name) for each in listed()])
def test_the_program_itself_reads_its_options_as_the_table_does(program: Grammar, tmp_path: Path) -> None:
    """P2: a flag that takes a value would hide the option behind it."""
    assert wrong_options(program, tmp_path) == []
