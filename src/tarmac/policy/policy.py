"""Judge what an agent wants to do. Order: floor > ask always > the user's longest match > built-in allow.

Execute ─check─ parse (shfmt, cached) ─ judge each part ─ text inside parts, again ─ weigh → Verdict
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tarmac.events import TaskId
from tarmac.policy import budget, launchers, veto, witness
from tarmac.policy.actions import Action, Execute, KillTerminal, OpenTerminal, ReadFile, SendInput, WriteFile
from tarmac.policy.command import Line, Pipeline, Simple, read_line
from tarmac.policy.effects import Effect
from tarmac.policy.explain import explain_line, explain_part, reason_of
from tarmac.policy.files import Files
from tarmac.policy.input import judge_input
from tarmac.policy.judgement import ASK_ALWAYS, Court, Judged, Judgement
from tarmac.policy.parser import Unreadable, check_text, dialect_of, parse
from tarmac.policy.places import Ground
from tarmac.policy.settings import PolicySettings, PrefixRules
from tarmac.policy.verdict import RISKS, Decision, Part, Risk, Verdict, worst
from tarmac.policy.words import word_of

PARSERS_AT_ONCE = 3
DEEPEST_SCRIPT = 4  # bash -c "bash -c …"
QUICK = 512  # characters of a line that is read and judged at once; a longer one beside the event loop
_SIMPLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+- \t")
# Words that another shell takes for something of its own.
_ALIASES = frozenset(
    """
    ls dir cat echo pwd cp mv rm sort diff tee ps kill sleep type man curl wget history clear write cd set where
    select more measure start compare group foreach h r gc gci gl sl
""".split()
)


class Grants(Protocol):
    """What the person allowed before. The policy asks; it never stores."""

    def covers_line(self, line: str, *, cwd: Path, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this line, in this place."""

    def covers_words(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for a prefix of these words."""

    @property
    def trouble(self) -> str | None:
        """Why the stored grants can't be trusted: then everything asks."""


@dataclass(slots=True)
class _Whole:
    """A line and all text inside of it, judged."""

    parts: list[Judged] = field(default_factory=list)
    extra: list[Effect] = field(default_factory=list)
    top: Judgement | None = None
    plain: bool = False  # nothing but simple commands, one after the other


@dataclass(frozen=True, slots=True)
class _Known:
    """A verdict, and what it rests on."""

    verdict: Verdict
    noted: dict[str, witness.Found]
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
    ) -> None:
        self.settings = settings or PolicySettings()
        self.rules = rules or PrefixRules()
        self.grants = grants
        self.files = files or Files()
        self._court = Court(self.files, self.rules.programs.get)
        self._turns: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._verdicts: OrderedDict[tuple[Execute, Path, TaskId | None], _Known] = OrderedDict()
        self._lines: OrderedDict[tuple[str, str], Line | Unreadable] = OrderedDict()

    async def judge(self, action: Action, *, workspace: Path, task: TaskId | None = None) -> Verdict:
        """May this be done? It never raises for what the action holds, and never waits for a person."""
        match action:
            case Execute():
                return await self._judge_command(action, workspace, task)
            case OpenTerminal():
                return self._judge_opening(action, workspace)
            case KillTerminal():
                return _judge_killing(action)
            case ReadFile() | WriteFile():
                return self.files.judge(action, workspace=workspace, settings=self.settings)
            case SendInput():
                return await self._judge_input(action, workspace, task)

    # commands

    async def _judge_command(self, action: Execute, workspace: Path, task: TaskId | None) -> Verdict:
        key = (action, workspace, task)
        known = self._verdicts.get(key)
        if known is not None and self._still(known, action, workspace, task):
            self._verdicts.move_to_end(key)
            return known.verdict
        noted = witness.begin()
        budget.begin()
        try:
            whole = await self._whole(action, Ground.of(action.cwd, workspace))
            verdict = self._weigh(action, whole, workspace, task)
        except (Unreadable, budget.Spent) as error:
            return self._unread(action, error.reason)
        except RecursionError:
            return self._unread(action, "it is nested too deeply")
        except Exception as error:  # a fault of ours must never let anything pass, nor stop the one who asks
            return self._unread(action, f"the judge itself failed: {type(error).__name__}", rule="ask.failed")
        finally:
            witness.end()
            budget.end()
        if not any("*" in path or "?" in path for path in noted):  # a pattern of folders can't be watched
            self._verdicts[key] = _Known(verdict, noted, self._grants_for(action, verdict, workspace, task))
            while len(self._verdicts) > self.settings.cache_size:
                self._verdicts.popitem(last=False)
        return verdict

    def _still(self, known: "_Known", action: Execute, workspace: Path, task: TaskId | None) -> bool:
        same = self._grants_for(action, known.verdict, workspace, task) == known.grants
        return same and witness.holds(known.noted)

    def _grants_for(
        self, action: Execute, verdict: Verdict, workspace: Path, task: TaskId | None
    ) -> tuple[str | None, ...]:
        """What the grants say of a line now: a verdict holds only as long as they say the same."""
        if self.grants is None:
            return ()
        line = self.grants.covers_line(action.command, cwd=action.cwd, workspace=workspace, task=task)
        words = [
            self.grants.covers_words(each.words, workspace=workspace, task=task) for each in verdict.parts if each.words
        ]
        return (self.grants.trouble, line, *words)

    async def _whole(self, action: Execute, ground: Ground) -> _Whole:
        """Read the line, then all shell text that its commands carry, down to a depth."""
        dialect = dialect_of(action.shell)
        whole = _Whole()
        if dialect is None:
            plain = _words_of_any_shell(action)
            provable = plain is not None
            line = plain or await self._read(action.command, "bash")  # for its risk only
        else:
            line = await self._read(action.command, dialect)
            provable = True
        provable = provable and len(action.command) <= self.settings.longest_allowed
        top = await self._judged(line, ground, may_prove=provable, zsh=dialect == "zsh")
        whole.top, whole.parts, whole.extra = top, list(top.parts), list(top.line_effects)
        whole.plain = line.steps is not None and not top.obstacles
        waiting = [(script, here, 1) for script, _, here in top.scripts]
        while waiting:
            script, here, depth = waiting.pop(0)
            if depth > DEEPEST_SCRIPT or len(whole.parts) > 200:
                whole.extra.append(
                    Effect("high", "ask.hidden", "hides its command behind too many others", known=False)
                )
                break
            try:
                inner = await self._read(script, dialect or "bash")
            except Unreadable as error:
                whole.extra.append(
                    Effect("high", "ask.hidden", f"runs text that can't be read: {error.reason}", known=False)
                )
                continue
            judged = await self._judged(inner, here, may_prove=False)
            whole.parts += judged.parts
            whole.extra += judged.line_effects
            waiting += [(each, ground, depth + 1) for each, _, ground in judged.scripts]
        return whole

    async def _judged(self, line: Line, ground: Ground, *, may_prove: bool, zsh: bool = False) -> Judgement:
        """Judge a line that was read; a long one, or one with patterns to look up, beside the event loop."""

        def judge() -> Judgement:
            with budget.working():
                return self._court.judge_line(line, ground, may_prove=may_prove, zsh=zsh)

        patterns = any(word.glob for simple in line.simples for word in simple.words)
        return await asyncio.to_thread(judge) if patterns or len(line.text) > QUICK else judge()

    async def _read(self, text: str, dialect: str) -> Line:
        """Parse a line, or remember it."""
        key = (text, dialect)
        known = self._lines.get(key)
        if known is None:
            try:
                settings = self.settings
                check_text(text, longest=settings.longest_command, deepest=settings.deepest_nesting)
                async with self._turn():  # waiting for it is no part of the time it has
                    tree = await parse(text, dialect, timeout=settings.parse_timeout)
                if len(text) > QUICK:
                    known = await asyncio.to_thread(read_line, tree, text, most=settings.most_parts)
                else:
                    known = read_line(tree, text, most=settings.most_parts)
            except Unreadable as error:
                if "took too long" in error.reason or "started" in error.reason:
                    raise  # a busy machine is no property of the line
                known = error
            self._lines[key] = known
            while len(self._lines) > self.settings.cache_size:
                self._lines.popitem(last=False)
        if isinstance(known, Unreadable):
            raise Unreadable(known.reason)
        return known

    def _turn(self) -> asyncio.Semaphore:
        """A place among the parser's processes, of which few run at once."""
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = (loop, asyncio.Semaphore(PARSERS_AT_ONCE))
        return self._turns[1]

    def _unread(self, action: Execute, reason: str, *, rule: str = "ask.unreadable") -> Verdict:
        return Verdict(
            decision="ask",
            risk="high",
            reason=reason,
            part=action.command[:200],
            explanation="nobody can say what it would do",
            rule=rule,
        )

    # weighing

    def _weigh(self, action: Execute, whole: _Whole, workspace: Path, task: TaskId | None) -> Verdict:
        top = whole.top
        assert top is not None
        if not whole.parts:
            return Verdict(
                decision="ask",
                risk="low",
                reason="there is no command in it",
                part=action.command[:200],
                explanation="does nothing",
                rule="ask.empty",
            )
        trouble = self.rules.trouble or (self.grants.trouble if self.grants else None)
        planned = top.plan is not None and self.settings.auto_approve_safe_commands
        decided = [self._part(judged, workspace, task) for judged in whole.parts]
        risk: Risk = worst(*(part.risk for part in decided), *(effect.risk for effect in whole.extra))
        heaviest = max(decided, key=lambda p: (p.decision == "deny", RISKS.index(p.risk), p.decision == "ask"))
        decision: Decision = "ask"
        reason, rule, part = heaviest.reason, heaviest.rule, heaviest.text
        if any(each.decision == "deny" for each in decided):
            decision = "deny"
        elif extra := max(whole.extra, key=lambda e: RISKS.index(e.risk), default=None):
            if RISKS.index(extra.risk) >= RISKS.index(heaviest.risk):
                reason, rule, part = reason_of(extra), extra.rule, action.command[:200]
        elif trouble:
            reason, rule = f"everything is asked about: {trouble}", "ask.trouble"
        elif all(each.decision == "allow" for each in decided):
            own = [each for each in decided if not each.rule.startswith("read.")]
            if not own and planned:
                decision = "allow"
            elif own and whole.plain:
                decision = "allow"
                reason, rule, part = own[0].reason, own[0].rule, own[0].text
            elif not own:
                reason, rule = _why_not(top, self.settings), "ask.unproven"
        grant = (
            self._grant_for_line(action, decided, whole, workspace, task) if decision == "ask" and not trouble else None
        )
        if grant is not None:
            decision, rule, reason = "allow", f"grant.{grant}", "you allowed exactly this line"
        return Verdict(
            decision=decision,
            risk=risk,
            reason=reason,
            part=part,
            explanation=explain_line(decided, [effect.does for effect in whole.extra]),
            rule=rule,
            plan=top.plan if decision == "allow" and planned and rule.startswith("read.") else None,
            parts=tuple(decided),
            suggested_grants=launchers.suggest(action.command, decided, risk=risk) if decision == "ask" else (),
        )

    def _part(self, judged: Judged, workspace: Path, task: TaskId | None) -> Part:
        """One command of the line: what is decided of it, by itself."""
        words = judged.simple.literal_words()
        text = judged.simple.text
        if judged.proof is not None:
            deny = self._denied(judged)
            if deny:
                return Part(
                    text,
                    words,
                    decision="deny",
                    risk="low",
                    reason=f"`{' '.join(deny)}` is in the denied commands list",
                    explanation=explain_part(judged),
                    rule="user.deny",
                )
            decision: Decision = "allow" if self.settings.auto_approve_safe_commands else "ask"
            return Part(
                text,
                words,
                decision=decision,
                risk="low",
                reason=f"it {judged.proof.why}",
                explanation=explain_part(judged),
                rule=judged.proof.rule,
            )
        effect = judged.worst
        decision, rule, reason = self._decide(judged, effect, words, workspace, task)
        return Part(
            text, words, decision=decision, risk=effect.risk, reason=reason, explanation=explain_part(judged), rule=rule
        )

    def _decide(
        self, judged: Judged, effect: Effect, words: tuple[str, ...] | None, workspace: Path, task: TaskId | None
    ) -> tuple[Decision, str, str]:
        if effect.deny:
            return "deny", effect.rule, f"never allowed: it {effect.does}"
        deny = self._denied(judged)
        always = effect.risk == "critical" or any(each.rule in ASK_ALWAYS for each in judged.effects)
        allow = None if always else self._allowed(judged, words)
        if deny and (allow is None or len(deny) >= len(allow)):
            return "deny", "user.deny", f"`{' '.join(deny)}` is in the denied commands list"
        if allow:
            return "allow", "user.allow", f"you allowed `{' '.join(allow)}`"
        if not always and words and self.grants and not _more_than_words(judged.simple):
            grant = self.grants.covers_words(words, workspace=workspace, task=task)
            if grant is not None:
                return "allow", f"grant.{grant}", "you allowed this before"
        if (
            effect.risk == "medium"
            and not self.settings.ask_medium
            and all(e.known for e in judged.effects)
            and not always
        ):
            return "allow", "settings.ask_medium", "medium risk is not asked about"
        if effect.does.startswith("may ") or (effect.rule == "effect.read" and effect.risk == "low"):
            return "ask", "ask.unproven", judged.unproven or reason_of(effect)
        return "ask", effect.rule, reason_of(effect)

    def _denied(self, judged: Judged) -> tuple[str, ...]:
        """The longest deny rule that names this command, or one inside of it."""
        found = [rule for rule in self.rules.deny for words in judged.reaches if _begins(words, rule)]
        return max(found, key=len, default=())

    def _allowed(self, judged: Judged, words: tuple[str, ...] | None) -> tuple[str, ...]:
        """The longest allow rule for exactly these words: no variables, no files written, nothing in front."""
        if words is None or _more_than_words(judged.simple):
            return ()
        found = [rule for rule in self.rules.allow if not launchers.refusal(rule) and launchers.fits(rule, words)]
        return max(found, key=len, default=())

    def _grant_for_line(
        self, action: Execute, decided: Sequence[Part], whole: _Whole, workspace: Path, task: TaskId | None
    ) -> str | None:
        if self.grants is None or "critical" in (
            *(part.risk for part in decided),
            *(effect.risk for effect in whole.extra),
        ):
            return None
        if any(
            effect.rule in ASK_ALWAYS - {"effect.secret", "effect.environment", "effect.ignored"}
            for judged in whole.parts
            for effect in judged.effects
        ):
            return None
        return self.grants.covers_line(action.command, cwd=action.cwd, workspace=workspace, task=task)

    # terminals and input

    def _judge_opening(self, action: OpenTerminal, workspace: Path) -> Verdict:
        name = action.shell.rpartition("/")[2]
        part = " ".join((action.shell, *action.arguments))
        inside = Ground.of(action.cwd, workspace).inside
        known = name in ("bash", "sh", "zsh", "fish", "dash", "ksh") and not action.arguments
        explanation = f"opens a terminal with {name} in {action.cwd}"
        if inside and known:
            decision: Decision = "allow" if self.settings.auto_approve_safe_commands else "ask"
            return Verdict(
                decision=decision,
                risk="low",
                reason="a shell in the workspace runs nothing by itself",
                part=part,
                explanation=explanation,
                rule="terminal.open",
            )
        reason = (
            "it is outside of the workspace"
            if known
            else "a shell with arguments, or an unknown one, runs what they say"
        )
        return Verdict(
            decision="ask", risk="medium", reason=reason, part=part, explanation=explanation, rule="terminal.open"
        )

    async def _judge_input(self, action: SendInput, workspace: Path, task: TaskId | None) -> Verdict:
        async def judge(command: Execute) -> Verdict:
            return await self._judge_command(command, workspace, task)

        return await judge_input(action, judge=judge)


def _judge_killing(action: KillTerminal) -> Verdict:
    part = f"terminal {action.terminal}"
    if action.running is None:
        return Verdict(
            decision="allow",
            risk="low",
            reason="nothing runs in it",
            part=part,
            explanation="closes a terminal",
            rule="terminal.kill",
        )
    return Verdict(
        decision="ask",
        risk="medium",
        reason=f"`{action.running[:80]}` runs in it",
        part=part,
        explanation="closes a terminal and ends what runs in it",
        rule="terminal.kill",
    )


def _why_not(top: Judgement, settings: PolicySettings) -> str:
    if not settings.auto_approve_safe_commands:
        return "you want to be asked about every command"
    return top.obstacles[0] if top.obstacles else "it can't be run without a shell"


def _more_than_words(simple: Simple) -> bool:
    """Whether a command is more than its words: variables in front, files written or read by redirection."""
    harmless = ("/dev/null", "1", "2", "-")
    return bool(simple.assigns) or any(r.target is None or r.target.text not in harmless for r in simple.redirects)


def _begins(words: tuple[str, ...], rule: tuple[str, ...]) -> bool:
    first = words[0].rpartition("/")[2] or words[0]
    return bool(rule) and (words[: len(rule)] == rule or (first, *words[1 : len(rule)]) == rule)


def _words_of_any_shell(action: Execute) -> Line | None:
    """fish, PowerShell and others: plain words mean the same in all of them. None when the line holds more."""
    text = action.command.strip()
    words = text.split()
    if not words or not set(text) <= _SIMPLE or words[0] in _ALIASES or "=" in words[0] or text.startswith("-"):
        return None
    try:
        if veto.split(text) != words:
            return None
    except veto.Vetoed:
        return None
    simple = Simple(tuple(word_of(word) for word in words), (), (), text)
    return Line(text, [simple], [], (Pipeline("always", (simple,), (False,)),))
