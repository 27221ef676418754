"""What a proof that a command only reads is made of."""

from dataclasses import dataclass

from tarmac.policy.verdict import Stage


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a command is harmless, and its stage of the plan."""

    stage: Stage
    rule: str
    why: str
    connects: str = ""  # the server or daemon that it asks: it reads, and is asked about all the same
    before: tuple[tuple[str, ...], ...] = ()  # what the stages before it must be, in place of what is written
