"""Judge what an agent wants to do: read it, judge its parts, weigh them.

Execute ─check─ parse (shfmt, cached) ─ judge each part ─ text inside parts, again ─ weigh → Verdict
SendInput ─ judge_input(): by the program that reads it → Verdict
Connect, UseServer ─ its grant, or a question → Verdict
"""

import asyncio
import os
import re
import shlex
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from tarmac.errors import PlaceFailed
from tarmac.events import TaskId
from tarmac.policy import budget, files
from tarmac.policy.decision import Grants, Scales, Whole
from tarmac.policy.files import Files
from tarmac.policy.grants import PrefixRules
from tarmac.policy.judgement import Court, Judgement
from tarmac.policy.parse.command import CommandLine, ObstacleKind, read_line
from tarmac.policy.parse.parser import Unreadable, check_text, dialect_of, is_powershell, parse, same_in_bash
from tarmac.policy.places import Ground
from tarmac.policy.programs.effects import effect_of
from tarmac.policy.programs.program import Trait, known, registry
from tarmac.policy.programs.repository import check_repository
from tarmac.policy.verdict import (
    Action,
    Basis,
    Connect,
    Decision,
    Enforcement,
    Execute,
    KillTerminal,
    OpenTerminal,
    PolicySettings,
    ReadFile,
    Risk,
    Rule,
    SendInput,
    SuggestedGrant,
    Unproven,
    UseServer,
    Verdict,
    WriteFile,
    worst,
)
from tarmac.policy.visible import shortened, visible

# Hosts that give away the credentials of this machine.
METADATA = frozenset({"169.254.169.254", "fd00:ec2::254", "metadata.google.internal", "100.100.100.200"})
KNOWN_VARIABLES = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ")  # never secret
PARSERS_AT_ONCE = 3
DEEPEST_SCRIPT = 4  # bash -c "bash -c …"
FEW = 8  # commands of a line that is judged at once
QUICK = 512  # characters of a line that is read and judged at once; a longer one is judged in a thread


@dataclass(frozen=True, slots=True)
class _Known:
    """A verdict, and what it depends on."""

    verdict: Verdict
    noted: dict[str, budget.Found]
    grants: tuple[str | None, ...]


class Policy:
    """The judge. It holds rules and a cache, and no process."""

    def __init__(
        self,
        settings: PolicySettings | None = None,
        *,
        rules: PrefixRules | None = None,
        grants: Grants | None = None,
        files: Files | None = None,
        environ: Mapping[str, str] = os.environ,
        enforcement: Enforcement = Enforcement.LANDLOCK,
    ) -> None:
        self.settings = settings or PolicySettings()
        self.rules = rules or PrefixRules()
        self.grants = grants
        self.files = files or Files()
        self._home = environ.get("HOME", "")
        self._variables = {name: environ[name] for name in KNOWN_VARIABLES if name in environ}
        self._enforcement = enforcement
        self._court = self._make_court(self.files)
        self._turns: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._verdicts: OrderedDict[tuple[Execute, Path, TaskId | None], _Known] = OrderedDict()
        self._lines: OrderedDict[tuple[str, str], CommandLine | Unreadable] = OrderedDict()

    def _make_court(self, files: Files) -> Court:
        return Court(files, self.rules.programs.get, self._variables, self._enforcement)

    async def judge(self, action: Action, *, workspace: Path, task: TaskId | None = None) -> Verdict:
        """Judge an action. Never raises because of what the action contains, and never waits for a person."""
        verdict = await self._judge(action, workspace, task)
        if self.settings.only_reads and verdict.decision != "deny" and not _only_reads(action, verdict):
            reason = "at the level `plan` nothing is changed; the person can switch to `ask`"
            return replace(
                verdict, decision="deny", reason=reason, rule=Rule.ONLY_READS, basis=Basis.SETTING, plan=None
            )
        return verdict

    async def _judge(self, action: Action, workspace: Path, task: TaskId | None) -> Verdict:
        match action:
            case Execute():
                return await self._judge_command(action, workspace, task)
            case OpenTerminal():
                there = self.files.elsewhere
                return _judge_opening_there(action) if there else await self._judge_opening(action, workspace, task)
            case KillTerminal():
                return _judge_killing(action)
            case ReadFile() | WriteFile() if self.files.elsewhere:
                judge = partial(self.files.afresh().judge, action, workspace=workspace, settings=self.settings)
                return await asyncio.to_thread(judge)
            case ReadFile() | WriteFile():
                return self.files.judge(action, workspace=workspace, settings=self.settings)
            case SendInput():
                return await self._judge_input(action, workspace, task)
            case Connect():
                return _judge_connection(action, self.grants, workspace=workspace, task=task)
            case UseServer():
                return _judge_server(action, self.grants, workspace=workspace, task=task)

    # commands

    async def _judge_command(self, action: Execute, workspace: Path, task: TaskId | None) -> Verdict:
        if self.files.elsewhere:
            return (await self._weighed(action, workspace, task, self._make_court(self.files.afresh())))[0]
        key = (action, workspace, task)
        known = self._verdicts.get(key)
        if known is not None and self._still(known, action, workspace, task):
            self._verdicts.move_to_end(key)
            return known.verdict
        noted = budget.begin_notes()
        try:
            verdict, grants = await self._weighed(action, workspace, task, self._court)
        finally:
            budget.end_notes()
        if grants is not None and not any("*" in path or "?" in path for path in noted):  # a pattern can't be watched
            self._verdicts[key] = _Known(verdict, noted, grants)
            while len(self._verdicts) > self.settings.cache_size:
                self._verdicts.popitem(last=False)
        return verdict

    async def _weighed(
        self, action: Execute, workspace: Path, task: TaskId | None, court: Court
    ) -> tuple[Verdict, tuple[str | None, ...] | None]:
        """The verdict, and what the grants say about the line; None: it couldn't be read.

        At another place, the files there are looked at. Nothing is proven, because no plan runs there.
        """
        budget.begin(court.files.system)
        try:
            if court.files.elsewhere:
                ground = await asyncio.to_thread(Ground.of, action.cwd, workspace, home=self._home)
            else:
                ground = Ground.of(action.cwd, workspace, home=self._home)
            whole = await self._whole(action, ground, court)
            verdict = Scales(self.settings, self.rules, self.grants).weigh(action, whole, workspace, task)
            return verdict, self._grants_for(action, verdict, workspace, task)
        except (Unreadable, budget.Spent) as error:
            return self._unread(action, error.reason), None
        except RecursionError:
            return self._unread(action, "it is nested too deeply"), None
        except PlaceFailed:
            raise
        except Exception as error:  # a bug of ours must never allow anything, nor crash the caller
            return self._unread(action, f"the judge itself failed: {type(error).__name__}", rule=Rule.ASK_FAILED), None
        finally:
            budget.end()

    def _still(self, known: "_Known", action: Execute, workspace: Path, task: TaskId | None) -> bool:
        same = self._grants_for(action, known.verdict, workspace, task) == known.grants
        return same and budget.holds(known.noted)

    def _grants_for(
        self, action: Execute, verdict: Verdict, workspace: Path, task: TaskId | None
    ) -> tuple[str | None, ...]:
        """What the grants say about a line now. A cached verdict is valid only while they say the same."""
        if self.grants is None:
            return ()
        line = self.grants.covers_line(action.command, cwd=action.cwd, workspace=workspace, task=task)
        words = [
            self.grants.covers_words(each.words, workspace=workspace, task=task) for each in verdict.parts if each.words
        ]
        return (self.grants.trouble, line, *words)

    async def _whole(self, action: Execute, ground: Ground, court: Court) -> Whole:
        """Parse the line, then all shell text inside its commands, down to a limited depth."""
        dialect = dialect_of(action.shell)
        whole = Whole()
        if dialect is None:
            plain = same_in_bash(action)
            provable = plain is not None
            if plain is None and is_powershell(action.shell):
                check_text(action.command, longest=self.settings.longest_command, deepest=self.settings.deepest_nesting)
                from tarmac.policy.parse.powershell import read_powershell

                line = await asyncio.to_thread(read_powershell, action.command)
            else:
                line = await self._read(plain or action.command, "bash")  # if bash differs: only for its risk
        else:
            line = await self._read(action.command, dialect)
            provable = True
        provable = provable and len(action.command) <= self.settings.longest_allowed
        top = await self._judged(court, line, ground, may_prove=provable, dialect=dialect or "bash")
        whole.top, whole.parts, whole.extra = top, list(top.parts), list(top.line_effects)
        obstacles = [each for each in top.obstacles if each.kind is not ObstacleKind.ELSEWHERE]
        whole.plain = line.steps is not None and not obstacles and not line.hurdles
        waiting = [(script, here, 1) for script, _, here in top.scripts]
        while waiting:
            script, here, depth = waiting.pop(0)
            if depth > DEEPEST_SCRIPT or len(whole.parts) > 200:
                does = "hides its command behind too many others"
                whole.extra.append(effect_of(Rule.ASK_HIDDEN, "high", does, known=False))
                break
            try:
                inner = await self._read(script, dialect or "bash")
            except Unreadable as error:
                does = f"runs text that can't be read: {error.reason}"
                whole.extra.append(effect_of(Rule.ASK_HIDDEN, "high", does, known=False))
                continue
            judged = await self._judged(court, inner, here, may_prove=False)
            whole.parts += judged.parts
            whole.extra += judged.line_effects
            waiting += [(each, ground, depth + 1) for each, _, ground in judged.scripts]
        return whole

    async def _judged(
        self, court: Court, line: CommandLine, ground: Ground, *, may_prove: bool, dialect: str = "bash"
    ) -> Judgement:
        """Judge a parsed line. A long line, or one with patterns or loops, is judged in a thread."""

        def judge() -> Judgement:
            with budget.working():
                return court.judge_line(line, ground, may_prove=may_prove, dialect=dialect)

        patterns = any(word.glob or word.brace for simple in line.simples for word in simple.words)
        much = patterns or len(line.text) > QUICK or len(line.simples) > FEW or line.hurdles  # a loop is unrolled
        return await asyncio.to_thread(judge) if much or court.files.elsewhere else judge()

    async def _read(self, text: str, dialect: str) -> CommandLine:
        """Parse a line, or take it from the cache."""
        key = (text, dialect)
        known = self._lines.get(key)
        if known is None:
            try:
                settings = self.settings
                check_text(text, longest=settings.longest_command, deepest=settings.deepest_nesting)
                async with self._turn():  # waiting for a slot does not count towards the timeout
                    tree = await parse(text, dialect, timeout=settings.parse_timeout)
                if len(text) > QUICK:
                    known = await asyncio.to_thread(read_line, tree, text, most=settings.most_parts)
                else:
                    known = read_line(tree, text, most=settings.most_parts)
            except Unreadable as error:
                if error.passing:
                    raise
                known = error
            self._lines[key] = known
            while len(self._lines) > self.settings.cache_size:
                self._lines.popitem(last=False)
        if isinstance(known, Unreadable):
            raise Unreadable(known.reason)
        return known

    def _turn(self) -> asyncio.Semaphore:
        """A slot for a parser process. Only a few run at once."""
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = (loop, asyncio.Semaphore(PARSERS_AT_ONCE))
        return self._turns[1]

    def _unread(self, action: Execute, reason: str, *, rule: str = Rule.ASK_UNREADABLE) -> Verdict:
        return Verdict(
            decision="ask",
            risk="high",
            reason=reason,
            part=action.command[:200],
            explanation="could do anything",
            rule=rule,
            personal=reason,
        )

    # terminals and input

    async def _judge_opening(self, action: OpenTerminal, workspace: Path, task: TaskId | None) -> Verdict:
        decision: Decision
        name = action.shell.rpartition("/")[2]
        part = shlex.join((action.shell, *action.arguments))
        if action.arguments:  # they may run anything: `bash -c …`
            verdict = await self._judge_command(Execute(part, cwd=action.cwd), workspace, task)
            decision = "deny" if verdict.decision == "deny" else "ask"
            return replace(verdict, decision=decision, plan=None)
        ground = Ground.of(action.cwd, workspace, home=self._home)
        inside, prompts = ground.inside, _why_prompts_run(ground)
        program = _program_of_whom(action, workspace)
        known = name in ("bash", "sh", "zsh", "fish", "dash", "ksh") and not program
        explanation = f"opens a terminal with {action.shell if program else name} in {action.cwd}"
        judged = partial(Verdict, part=part, explanation=explanation, rule="terminal.open")
        if inside and known and not prompts:
            reason = "a shell in the workspace runs nothing automatically"
            decision = "allow" if self.settings.auto_approve_safe_commands else "ask"
            return judged(decision=decision, risk="low", reason=reason)
        elsewhere = prompts or "it is outside of the workspace"
        reason = elsewhere if known else (program or "an unknown shell may do anything")
        return judged(decision="ask", risk="high" if program else "medium", reason=reason)

    async def _judge_input(self, action: SendInput, workspace: Path, task: TaskId | None) -> Verdict:
        return await judge_input(action, judge=lambda command: self._judge_command(command, workspace, task))


def _judge_opening_there(action: OpenTerminal) -> Verdict:
    """Judge a terminal at another place: what a shell there runs at its start can't be seen from here."""
    return Verdict(
        decision="ask",
        risk="medium",
        reason="what a shell runs at its start at another place can't be seen from here",
        part=" ".join((action.shell, *action.arguments)),
        explanation=f"opens a terminal with {action.shell.rpartition('/')[2]} in {action.cwd}",
        rule="terminal.open",
    )


_SYSTEM_PROGRAMS: Final = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew", "/nix/store")


def _program_of_whom(action: OpenTerminal, workspace: Path) -> str:
    """Why a path given as the shell may be any program; "" for a plain name, or a program of the system."""
    if "/" not in action.shell:
        return ""
    named = Path(os.path.normpath(action.cwd / action.shell))
    path = Path(os.path.realpath(named))
    if any(
        each.is_relative_to(folder) for each in (named, path) for folder in (workspace, os.path.realpath(workspace))
    ):
        return "it runs a program of the workspace as the shell"
    system = any(path.is_relative_to(each) for each in _SYSTEM_PROGRAMS)
    return "" if system else "it runs a program as the shell that does not belong to the system"


def _why_prompts_run(ground: Ground) -> str:
    """Why a shell's prompt here may run a program of the repository. Most prompts ask git for its state."""
    try:
        check_repository(ground, planned=False)
    except Unproven as error:
        return f"your shell's prompt may run a program of this repository: {error.reason}"
    return ""


def _only_reads(action: Action, verdict: Verdict) -> bool:
    """Whether the action changes nothing, as far as is known."""
    match action:
        case ReadFile() | KillTerminal():
            return True
        case Execute() | SendInput():
            return verdict.plan is not None or (verdict.risk == "low" and verdict.basis in (Basis.PROVEN, Basis.EFFECT))
        case Connect() | UseServer():
            return verdict.risk == "low"
        case OpenTerminal() | WriteFile():
            return False


def _judge_killing(action: KillTerminal) -> Verdict:
    verdict = partial(Verdict, part=f"terminal {action.terminal}", rule="terminal.kill")
    if action.running is None:
        return verdict(decision="allow", risk="low", reason="nothing runs in it", explanation="closes a terminal")
    reason, explanation = f"`{action.running[:80]}` runs in it", "closes a terminal and ends what runs in it"
    return verdict(decision="ask", risk="medium", reason=reason, explanation=explanation)


def read_tables() -> None:
    """Read all tables now. It takes a few milliseconds, once in a process, or more without a bytecode cache."""
    registry()
    files.protected_name("x")


def _judge_connection(action: Connect, grants: Grants | None, *, workspace: Path, task: TaskId | None) -> Verdict:
    """Ask about each host once, and always about a host of this machine or a private network."""
    words = ("host", action.host, *(("private",) if action.private else ()))  # a public name may lead elsewhere later
    explanation = f"fetches from {action.host}"
    verdict = partial(Verdict, part=action.url, explanation=explanation)
    if action.host.strip("[]").rpartition(":")[0] in METADATA or action.host.strip("[]") in METADATA:
        reason = "it gives away the credentials of this machine"
        return verdict(decision="deny", risk="critical", reason=reason, rule="connect.metadata")
    grant = grants.covers_use(words, workspace=workspace, task=task) if grants else None
    if grant:
        return _granted(grant, action.url, explanation)
    offers = (SuggestedGrant("use", f"connections to {action.host}", words),)
    verdict = partial(verdict, decision="ask", suggested_grants=offers)
    if action.private:
        reason, personal = "it is an address of this machine or a private network", "it reaches into a private network"
        return verdict(risk="high", reason=reason, rule="connect.private", personal=personal)
    return verdict(risk="medium", reason="the host is not allowed yet", rule="connect.host")


def _judge_server(action: UseServer, grants: Grants | None, *, workspace: Path, task: TaskId | None) -> Verdict:
    """Ask about each tool once, and again when the server changes its description."""
    words = ("server", action.server, action.tool, action.digest)
    what = f"the MCP server {action.server}"
    what = f"the tool {action.tool} of {what}" if action.tool else what
    part = f"{action.server} {action.tool}".strip()
    explanation = f"uses {what}" if action.tool else f"starts {what}"
    if action.allowed and not action.changed:
        return Verdict(
            decision="allow",
            risk="low",
            reason="your mcp_servers.toml allows it" if action.tool else "you configured it, or allowed it before",
            part=part,
            explanation=explanation,
            rule="server.user",
            basis=Basis.USER_RULE,
        )
    grant = grants.covers_use(words, workspace=workspace, task=task) if grants else None
    if grant:
        return _granted(grant, part, explanation)
    changed = f"{what} has changed since it was used before"
    return Verdict(
        decision="ask",
        risk="high" if action.changed or not action.tool else "medium",
        reason=changed if action.changed else "it runs code that Tarmac does not know",
        part=part,
        explanation=explanation,
        rule="server.changed" if action.changed else "server.tool" if action.tool else "server.start",
        suggested_grants=(SuggestedGrant("use", what, words),),
        personal=changed if action.changed else "" if action.tool else "the workspace names the command",
    )


def _granted(grant: str, part: str, explanation: str) -> Verdict:
    return Verdict(
        decision="allow",
        risk="medium",
        reason="you allowed it",
        part=part,
        explanation=explanation,
        rule=f"grant.{grant}",
        basis=Basis.GRANT,
        grant=grant,
    )


# Text that is typed into a running terminal

LONGEST_ANSWER = 200
_VERSION = re.compile(r"[\d.]+$")
_INTERRUPT = "\x03"
# Keys that choose, move or leave, and in no program we know start another.
_HARMLESS_KEYS = re.compile(r"(?:[ynYNq \r\n0-9]|\x1b\[[ABCDHF]|\x1b\[[56]~|\x1bO[ABCD])")
# `:!make` and `:%!sort` in an editor, `!ls` in a pager: the rest of the line is a command.
_SHELL_ESCAPE = re.compile(r"\x1b*(?::[^!\r\n]*)?!\s*(?P<command>[^\r\n]+)[\r\n]")
# One word or a path: whoever takes it for a command, or for code, finds nothing in it that runs.
_ANSWER = re.compile(r"[\w./@:+,=~-]*[\r\n]?")
_QUESTION = re.compile(r"[?:\])›…]\s*$")
# jshell runs as `java`, iex as `beam.smp`: what ends like a prompt reads commands, whatever its process is called.
_PROMPT = re.compile(r"[>$#%»]\s*$")
_ASKS_FOR_A_SECRET = re.compile(
    r"pass(?:word|phrase|wd|code)|\bpin\b|secret|token|api.?key|one.?time|otp\b|2fa|private key", re.IGNORECASE
)


def is_relay(name: str | None) -> bool:
    """Whether another machine or another terminal is behind this program."""
    return Trait.RELAY in known(name).traits


async def judge_input(action: SendInput, *, judge: Callable[[Execute], Awaitable[Verdict]]) -> Verdict:
    """May this be typed into a running terminal? That depends on the program that reads it. `judge` judges a command.

    a secret is asked for           → denied: only a person answers that
    a shell, or an interpreter      → the command, or the code, that it is
    `:!make` in an editor or pager  → the command after the `!`
    an approved command's question  → part of that approval
    anybody else                    → asked

    A command for a shell is never allowed here just because it is harmless. It goes to a live shell, where `ls` may
    mean something else. Only the person's grants allow it.
    """
    name = _VERSION.sub("", Path(action.foreground or "").name.lstrip("-")) or None
    if action.awaiting == "secret":
        return _verdict(action, "deny", "high", "a secret is asked for: only a person may type that", Rule.INPUT_SECRET)
    if not action.text:
        return _verdict(action, "allow", "low", "it types nothing", "input.nothing")
    if action.text == _INTERRUPT:
        return _verdict(action, "allow", "low", "it interrupts, and no more", "input.interrupt")
    program = known(name)
    if Trait.TYPED_SHELL in program.traits:
        return await _to_shell(action, str(name), judge)
    if program.typed_code:
        return await _as_code(action, str(action.foreground), program.typed_code, judge)
    if Trait.TYPED_CODE in program.traits:
        return _verdict(action, "ask", "high", f"{name} runs what it reads", "input.code")
    if Trait.KEYBOARD in program.traits and (escape := _SHELL_ESCAPE.match(action.text)):
        return await _escaped(action, str(name), escape["command"], judge)
    if is_relay(name):
        return _verdict(action, "ask", "high", f"nobody can see who reads it behind {name}", "input.relay")
    if _ASKS_FOR_A_SECRET.search(action.prompt):
        return _verdict(action, "ask", "high", "what is asked for looks like a secret", Rule.INPUT_SECRET)
    if action.approved and _answers(action, name):
        return _verdict(action, "allow", "low", "it answers a question of a command that was approved", "input.answer")
    who = f"what {name} does with it" if name else "who would read it"
    return _verdict(action, "ask", "medium", f"it is not known {who}", "input.unknown")


def _answers(action: SendInput, name: str | None) -> bool:
    """Whether it is only an answer, and its program is known to wait for one."""
    if name is None:
        return False
    if _PROMPT.search(action.prompt):
        return False
    if action.awaiting == "keys" or Trait.KEYBOARD in known(name).traits:
        return action.awaiting in ("keys", "line") and _HARMLESS_KEYS.fullmatch(action.text) is not None
    asked = action.awaiting == "line" and _QUESTION.search(action.prompt) is not None
    return asked and len(action.text) <= LONGEST_ANSWER and _ANSWER.fullmatch(action.text) is not None


async def _to_shell(action: SendInput, name: str, judge: Callable[[Execute], Awaitable[Verdict]]) -> Verdict:
    line = action.text.rstrip("\r\n")
    if not line:
        return _verdict(action, "ask", "medium", f"it makes {name} run whatever is typed already", "input.shell")
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", line):
        return _verdict(action, "ask", "high", f"to {name} some of these keys are commands", "input.shell")
    found = await judge(Execute(line, cwd=action.cwd, shell=str(action.foreground)))
    reason, decision = found.reason, found.decision
    if decision == "allow" and (found.plan is not None or "!" in line):
        decision, reason = "ask", f"it would be typed into a live {name}, where words may mean other things by now"
    return _as_typed(action, found, decision=decision, risk=found.risk, reason=reason, rule="input.shell")


async def _as_code(
    action: SendInput, program: str, option: str, judge: Callable[[Execute], Awaitable[Verdict]]
) -> Verdict:
    """Judge code as if it were given on a command line. It is never allowed for that alone."""
    code = action.text.rstrip("\r\n")  # Enter is not part of it
    found = await judge(Execute(shlex.join([program, option, code]), cwd=action.cwd))
    decision: Decision = "deny" if found.decision == "deny" else "ask"
    reason = found.reason if found.decision != "allow" else f"{program} runs what it reads"
    risk = worst(found.risk, "medium")
    return _as_typed(action, found, decision=decision, risk=risk, reason=reason, rule="input.code")


async def _escaped(
    action: SendInput, program: str, command: str, judge: Callable[[Execute], Awaitable[Verdict]]
) -> Verdict:
    """A command that an editor or a pager would run. It is never allowed, as the keys may mean something else."""
    found = await judge(Execute(command, cwd=action.cwd))
    decision: Decision = "deny" if found.decision == "deny" else "ask"
    reason = found.reason if found.decision != "allow" else f"{program} would run `{shortened(visible(command), 60)}`"
    risk = worst(found.risk, "medium")
    return _as_typed(action, found, decision=decision, risk=risk, reason=reason, rule="input.escape")


def _as_typed(action: SendInput, found: Verdict, *, decision: Decision, risk: Risk, reason: str, rule: str) -> Verdict:
    """The verdict on a command that is typed instead: without a plan, and with nothing to grant."""
    grant = found.rule if decision == "allow" else rule
    typed = f"types into {action.foreground}: {found.explanation}"
    return replace(
        found,
        decision=decision,
        risk=risk,
        reason=reason,
        explanation=typed,
        rule=grant,
        plan=None,
        suggested_grants=(),
    )


def _verdict(action: SendInput, decision: Decision, risk: Risk, reason: str, rule: str) -> Verdict:
    what = "a secret" if action.awaiting == "secret" else f"“{shortened(visible(action.text), 80)}”"
    return Verdict(
        decision=decision,
        risk=risk,
        reason=reason,
        part="" if action.awaiting == "secret" else action.text,
        explanation=f"types {what} for {action.foreground or 'nobody knows whom'}",
        rule=rule,
        personal=reason if rule == Rule.INPUT_SECRET else "",
    )
