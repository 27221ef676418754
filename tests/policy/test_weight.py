"""How much a command weighs, and what is said of it: what a reviewer found too light, too heavy or untrue."""

from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, Verdict

WORKSPACE = Path("/home/dev/project")


async def judge(line: str, *, shell: str = "bash") -> Verdict:
    return await Policy().judge(Execute(line, cwd=WORKSPACE, shell=shell), workspace=WORKSPACE)


# D1


@pytest.mark.parametrize(
    "line", ["find / -type f -delete", "find / -delete", "find / -type d -delete", "find / -name '*' -delete"]
)
async def test_all_files_of_the_machine_are_the_machine(line: str) -> None:
    """P1 (D1): whatever does not narrow it down leaves the floor in place."""
    assert (await judge(line)).rule == "floor.root"


@pytest.mark.parametrize(
    "line",
    [
        "find / -type f -exec rm {} +", "find / -size +1M -delete", "find / -mtime +30 -delete", "mv /* /dev/null",
        "find / -user me -delete", "mv / /tmp/x", "rsync -a --delete empty/ /", "rsync -a --delete-after empty/ /",
        "dd if=x of=/dev/$DISK", "dd if=x of=/dev/${DISK}1", "cat x > /dev/$DISK", "find /etc -type f -delete",
    ],
)  # fmt: skip
async def test_what_ends_the_machine_is_critical(line: str) -> None:
    """P3 (D1)."""
    verdict = await judge(line)
    assert (verdict.decision, verdict.risk) == ("ask", "critical") or verdict.decision == "deny"


@pytest.mark.parametrize("line", ["find / -name '*.tmp' -delete", "find . -type f -delete", "rsync -a --delete a/ b/"])
async def test_what_is_narrowed_down_is_high(line: str) -> None:
    """P3 (D1)."""
    assert (await judge(line)).risk == "high"
