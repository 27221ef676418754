"""Judge text that is typed into a running terminal, by the program that reads it.

a secret is asked for           → denied: only a person answers that
a shell, or an interpreter      → the command, or the code, that it is
`:!make` in an editor or pager  → the command after the `!`
an approved command's question  → part of that approval
anybody else                    → asked

A command for a shell is never allowed here just because it is harmless. It goes to a live shell, where `ls` may mean
something else. Only the person's grants allow it.
"""

import re
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from tarmac.policy.actions import Execute, SendInput
from tarmac.policy.programs.program import Trait, known
from tarmac.policy.verdict import Decision, Risk, Rule, Verdict, worst
from tarmac.policy.visible import shortened, visible

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
    """May this be typed? `judge` judges a command."""
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
    """Whether it is an answer, and no more, to what somebody is known to wait for."""
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
    """As if the same code were given on a command line; but never allowed for that."""
    code = action.text.rstrip("\r\n")  # Enter is no part of it
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
    """The verdict of a command, told of its being typed: nothing to run by itself, nothing to grant."""
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
