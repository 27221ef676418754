"""Where a command's streams lead when nothing is written: to /dev/null, or between 1 and 2; and what it reads."""

from collections.abc import Sequence

from tarmac.policy.parse.command import Redirect
from tarmac.policy.programs.grammar import Unproven
from tarmac.policy.verdict import Stage


def streams_of(redirects: Sequence[Redirect]) -> Stage:
    """Where the streams lead, by redirections that write nothing: to /dev/null, or between 1 and 2."""
    stdin: str | None = None
    text: str | None = None
    out, err = "out", "err"
    for each in redirects:
        target = each.target.text if each.target and each.target.literal else None
        match (each.fd, each.op, target):
            case ("" | "1", ">" | ">>" | ">|", "/dev/null"):
                out = "null"
            case ("2", ">" | ">>", "/dev/null"):
                err = "null"
            case ("", "&>" | "&>>", "/dev/null"):
                out = err = "null"
            case ("2", ">&", "1"):
                err = out
            case ("" | "1", ">&", "2"):
                out = "err" if err == "err" else err
            case ("" | "0", "<", str(path)):
                stdin, text = path, None
            case ("" | "0", "<<<", _) if each.target and each.target.text is not None and not each.target.home:
                stdin, text = None, f"{each.target.text}\n"
            case ("" | "0", "<<", _) if each.body is not None:
                stdin, text = None, each.body
            case (_, "<<" | "<<-" | "<<<", _):
                raise Unproven("it holds a here-document")
            case _:
                raise Unproven(f"it redirects: {each.source}")
    return Stage((), stdin=stdin, text=text, stdout=out, stderr=err)  # type: ignore[arg-type]
