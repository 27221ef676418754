"""What keeps a command to reading that runs without a question."""

from tarmac.terminals.doctor.check import Case, Finding, Findings, aside
from tarmac.terminals.process.confinement import LEAST_ABI, SIGNALS_ABI, Means, landlock_abi, means


async def check_confinement(case: Case) -> Findings:
    """Landlock and seccomp, or bubblewrap, or nothing."""
    yield await aside(_found)


def _found() -> Finding:
    abi = landlock_abi()
    facts = {"by": means().value, "landlock": abi}
    match means():
        case Means.LANDLOCK:
            signals = "" if abi >= SIGNALS_ABI else "; signals are kept in by seccomp"
            return Finding(
                name="confinement",
                level="ok",
                what=f"Landlock {abi} and seccomp keep commands to reading that run without a question{signals}",
                facts=facts,
            )
        case Means.BUBBLEWRAP:
            why = f"Landlock {abi} is too old" if abi else "this kernel has no Landlock"
            return Finding(
                name="confinement",
                level="ok",
                what=f"bubblewrap keeps commands to reading that run without a question: {why}",
                facts=facts,
            )
    return Finding(
        name="confinement",
        level="warning",
        what="nothing keeps a command to reading here, so only a few well-known ones run without a question",
        advice=f"use a Linux kernel with Landlock {LEAST_ABI} or newer (6.2), or install bubblewrap",
        facts=facts,
    )
