"""`tarmac doctor`: what of Tarmac works on this machine, what does not, and what to do about it.

checks → examine() → findings → a page for people, or one JSON object → exit status

The checks of terminals are in tarmac.terminals.doctor, those of tasks in tarmac.tasks.checkup; others are added here.
"""

import dataclasses
import json
import os
import shutil
import sys
import tempfile
import textwrap
import time
from collections import Counter
from contextlib import aclosing
from pathlib import Path

import tarmac
from tarmac.cli.parser import parse as parse_arguments
from tarmac.cli.shutdown import run
from tarmac.errors import BadRequest, TarmacError
from tarmac.models.provider import Model
from tarmac.show.look import look_of
from tarmac.tasks.checkup import checks as tasks_checks
from tarmac.terminals.doctor import Case, Check, Finding, Findings, Level, aside, examine
from tarmac.terminals.doctor.system_checks import check_confinement, check_kernel, check_limits, check_storage
from tarmac.terminals.doctor.terminal_checks import check_daemon, check_shells
from tarmac.terminals.process.confinement import Means, means
from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.dialects import KNOWN

COLOURS: dict[Level, str] = {"ok": "32", "note": "2", "warning": "35", "problem": "1;31"}
NAMES = 19  # columns
NAMES_OF_ATTACKS = 50
WIDEST = 110
TERMINALS = (
    Check("shells", check_shells, seconds=120),
    Check("kernel", check_kernel, seconds=30),
    Check("kernel", check_confinement, seconds=30),
    Check("limits", check_limits, seconds=10),
    Check("files", check_storage, seconds=10),
    Check("terminals that outlive the program", check_daemon, seconds=20),
)


def main(arguments: list[str]) -> int:
    """Look at everything; 0 when all is well, 1 when something is not."""
    options, words = parse_arguments("doctor", arguments)
    given = {name: values[-1] for name, values in options.items()}
    if words:
        raise BadRequest(f"the doctor takes no `{words[0]}`", hint="tarmac doctor --shell zsh looks at one shell")
    wanted = tuple(options.get("shell", ()))
    settings = Settings()
    if "timeout" in given:
        settings = dataclasses.replace(settings, shell_integration_timeout=_seconds(given["timeout"]))
    case = Case(environ=os.environ, settings=settings, shells=wanted or KNOWN, wanted=wanted)
    if "confinement" in given:
        return run(lambda stop: consult((ATTACKS,), case, json_wanted="json" in given))
    model = Check("model", ask_model if "ask-model" in given else look_at_model, seconds=60)
    checks = (*TERMINALS, *tasks_checks(repair="repair" in given), *PROGRAMS, model)
    return run(lambda stop: consult(checks, case, json_wanted="json" in given))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 60:
        raise BadRequest(f"--timeout must be a number of seconds up to 60, more than 0, not `{text}`")
    return seconds


async def consult(checks: tuple[Check, ...], case: Case, *, json_wanted: bool) -> int:
    """Make the checks, show what they find as it comes, count."""
    found: list[tuple[str, Finding]] = []
    page = DoctorPage()
    if not json_wanted:
        page.begin()
    async with aclosing(examine(checks, case)) as findings:  # or a terminal stays open when nobody reads any more
        async for topic, finding in findings:
            found.append((topic, finding))
            if not json_wanted:
                page.show(topic, finding)
    counts = Counter(finding.level for _, finding in found)
    well = not counts["warning"] and not counts["problem"]
    if json_wanted:
        said = [{"topic": topic, **dataclasses.asdict(finding)} for topic, finding in found]
        print(json.dumps({"version": tarmac.__version__, "ok": well, "findings": said}))
    else:
        page.end(counts)
    return 0 if well else 1


# Programs that other parts of Tarmac need


async def attack_the_confinement(case: Case) -> Findings:
    """Attack what keeps commands to reading, with canaries of our own."""
    from tarmac.cli.breakout import attack

    if means() is Means.NONE:
        async for finding in check_confinement(case):
            yield finding
        return
    found, damage = await attack()
    for each in found:
        facts = {"stopped": each.stopped, "by": each.by, "error": each.error, "possible": each.possible}
        if not each.stopped:
            what = "was NOT stopped"
        elif each.possible:
            what = f"stopped by {each.by} ({each.error})"
        else:
            what = f"stopped ({each.error}); it does not work here without rules either"
        yield Finding(name=each.name, level="ok" if each.stopped else "problem", what=what, facts=facts)
    if damage:
        what = f"changed by an attack: {', '.join(damage)}"
        yield Finding(name="canaries", level="problem", what=what, advice="please report this: it is a bug in Tarmac")
    else:
        yield Finding(name="canaries", level="ok", what="all test files are unchanged, and nothing was received")


async def look_at_shfmt(case: Case) -> Findings:
    """What parses commands for the policy."""
    yield await aside(_shfmt)


async def look_at_bubblewrap(case: Case) -> Findings:
    """What makes the sandbox."""
    yield await aside(_bubblewrap)
    if finding := await aside(_sandbox):
        yield finding
    yield await aside(_trials)


async def look_at_model(case: Case) -> Findings:
    """Which model is configured, and whether it could be asked. Nothing is sent."""
    yield await aside(lambda: _model_of(case))


async def ask_model(case: Case) -> Findings:
    """Ask the configured model one short question."""
    from tarmac.models.messages import Message, Text
    from tarmac.models.provider import Completion, Prompt

    found = await aside(lambda: _model_of(case))
    if found.level != "ok":
        yield dataclasses.replace(found, level="problem")  # it was to be asked
        return
    model = await aside(lambda: _open_model(case))
    prompt = Prompt("Answer with one word.", (Message("user", (Text("Say OK."),)),), max_tokens=2000)
    began = time.monotonic()
    try:
        async with aclosing(model.stream(prompt, load=lambda blob: b"")) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Completion):
                    took = time.monotonic() - began
                    facts = {"seconds": took, "input": chunk.usage.input, "output": chunk.usage.output}
                    what = f"{model.info.id} answered in {took:.1f} s"
                    yield Finding(name="answer", level="ok", what=what, facts=facts)
    except TarmacError as error:
        yield Finding(name="answer", level="problem", what=error.what, advice=error.hint)


def _model_of(case: Case) -> Finding:
    """The configured model, opened and not asked."""
    from tarmac.config import load_config

    try:
        spec = load_config(Path.cwd(), case.environ).model
        if not spec:
            advice = "`tarmac` in a terminal helps you choose one"
            return Finding(name="model", level="note", what="none is configured", advice=advice)
        _open_model(case)
    except TarmacError as error:
        return Finding(name="model", level="warning", what=error.what, advice=error.hint)
    return Finding(name="model", level="ok", what=spec, facts={"model": spec})


def _open_model(case: Case) -> Model:
    from tarmac.config import load_config
    from tarmac.models.factory import open_model

    config = load_config(Path.cwd(), case.environ)
    spec = config.model or ""
    return open_model(spec, config.models_for(spec))


ATTACKS = Check("attacks on the confinement", attack_the_confinement, seconds=120)
PROGRAMS = (Check("programs", look_at_shfmt, seconds=10), Check("programs", look_at_bubblewrap, seconds=40))


def _shfmt() -> Finding:
    from tarmac.policy.parse.parser import parser_path

    path = parser_path()
    if path is None:
        return Finding(
            name="shfmt",
            level="warning",
            what="not installed: no command can be parsed, so Tarmac asks about every command",
            advice=f"{Path(sys.executable).name} -m pip install shfmt-py",
        )
    return Finding(name="shfmt", level="ok", what=f"parses commands for the policy ({path})", facts={"path": path})


def _sandbox() -> Finding | None:
    """What the setting does here; None where it is off."""
    from tarmac.config import load_config

    try:
        config = load_config(Path.cwd(), os.environ)
        if config.terminals.sandbox is None:
            return None
        strict = config.strict_sandbox
    except TarmacError:  # `tarmac config` tells of it
        return None
    if strict:
        what = "on: commands of agents run in it, and medium risk needs no question"
        return Finding(name="sandbox", level="ok", what=what, facts={"strict": True})
    what = "on, but not fully enforced here, so medium risk needs a question"
    return Finding(name="sandbox", level="note", what=what, advice="see bubblewrap, above", facts={"strict": False})


def _trials() -> Finding:
    from tarmac.policy.trial import trial_program

    try:
        program = trial_program()
    except TarmacError as error:
        return Finding(name="trials", level="note", what=f"{error.what}; `t` is not offered", advice=error.hint)
    return Finding(
        name="trials", level="ok", what="a command can be tried on a copy before it runs", facts={"path": program}
    )


def _bubblewrap() -> Finding:
    from tarmac.policy.sandbox import Bubblewrap

    with tempfile.TemporaryDirectory(prefix="tarmac-doctor-") as folder:
        try:
            enforced = Bubblewrap(workspace=Path(folder)).enforced()
        except TarmacError as error:
            missing = shutil.which("bwrap") is None  # nobody need have it
            return Finding(
                name="bubblewrap", level="note" if missing else "warning", what=error.what, advice=error.hint
            )
    facts = {"enforced": enforced.yes, "not_enforced": enforced.no}
    if enforced.no:
        return Finding(
            name="bubblewrap",
            level="note",
            what=f"works, but in its sandboxes: {'; '.join(enforced.no)}",
            advice="limits need control groups (root, or a delegated group); the rest needs user namespaces",
            facts=facts,
        )
    return Finding(name="bubblewrap", level="ok", what="works, and everything is enforced", facts=facts)


# What people see


class DoctorPage:
    """Standard output: a topic, its findings in columns, advice below each; in colour where somebody sees it."""

    def __init__(self) -> None:
        tty = sys.stdout.isatty()
        self._paint = look_of(sys.stdout, os.environ).paint
        columns = shutil.get_terminal_size().columns if tty else WIDEST
        self._width = max(60, min(columns, WIDEST) - 1)
        self._topic = ""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")

    def begin(self) -> None:
        print(f"{self._paint('1', f'Tarmac {tarmac.__version__}')}: checking this machine", flush=True)

    def show(self, topic: str, finding: Finding) -> None:
        if topic != self._topic:
            print(f"\n{self._paint('1', topic)}")
            self._topic = topic
        names = max(NAMES, NAMES_OF_ATTACKS) if topic == ATTACKS.topic else NAMES
        name = finding.name if len(finding.name) < names else finding.name[: names - 2] + "…"
        margin = 2 + 9 + names
        room = self._width - margin
        lines = _wrapped(finding.what, room)
        lines += [f"→ {line}" if n == 0 else f"  {line}" for n, line in enumerate(_wrapped(finding.advice, room - 2))]
        level = self._paint(COLOURS[finding.level], f"{finding.level:<9}")
        for n, line in enumerate(lines):
            print(f"  {level}{name:<{names}}{line}" if n == 0 else f"{' ' * margin}{line}", flush=True)

    def end(self, counts: "Counter[Level]") -> None:
        problems, warnings = counts["problem"], counts["warning"]
        if not problems and not warnings:
            print(f"\n{self._paint('1;32', 'All is well.')}")
            return
        said = [_count(problems, "problem"), _count(warnings, "warning")]
        colour = COLOURS["problem" if problems else "warning"]
        print(f"\n{self._paint(colour, ' and '.join(each for each in said if each))}: see the arrows above.")


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of that width; what start-up files print may hold anything, and is made harmless."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return textwrap.wrap(plain, width, break_on_hyphens=False)


def _count(number: int, word: str) -> str:
    return "" if not number else f"{number} {word}{'s' if number > 1 else ''}"
