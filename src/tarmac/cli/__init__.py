"""The command `tarmac VERB …`. Each verb is a module, imported when it is used.

main() → --version, --help at once | VERBS[verb] → module.main(arguments) → exit code

`tarmac --version` costs little more than starting Python, so nothing else is imported up here.
"""

import sys

from tarmac.cli.exit_status import FAILED, UNUSABLE, complain, silence_stdout
from tarmac.cli.verb_list import ELSEWHERE, VERBS, HelpShown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main(arguments: list[str] | None = None) -> int:
    """What `tarmac` does; the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_closed()
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        silence_stdout()
        return 141
    finally:
        if arguments is None:  # the program ends: nobody need look for garbage in what it leaves (ADR 198)
            import gc

            gc.freeze()
    return code


def _dispatch(words: list[str]) -> int:
    verb, rest = (words[0], words[1:]) if words else (_alone(), [])
    if verb in ("--version", "-V"):
        import tarmac

        print(f"tarmac {tarmac.__version__}")
        return 0
    if verb in ("--help", "-h"):
        verb = "help"
    if verb not in VERBS:
        from tarmac.cli.parser import suggest

        kind = "option" if verb.startswith("-") else "command"
        known = [*VERBS, "--version", "--help"]
        return complain(f"there is no {kind} `{verb}`", hint=suggest(verb, known) or "`tarmac --help` lists them")
    if verb == "help" or rest[:1] in (["--help"], ["-h"]):
        from tarmac.cli.parser import show_help

        return show_help(rest if verb == "help" else [verb])
    return _run(verb, rest)


def _alone() -> str:
    """What `tarmac` without words does: open a session where a person is, else print the help."""
    return "run" if sys.stdin.isatty() and sys.stdout.isatty() else "help"


def _run(verb: str, rest: list[str]) -> int:
    from importlib import import_module

    from tarmac.errors import BadRequest, ConfigError, TarmacError

    module, _, function = ELSEWHERE.get(verb, verb).partition(":")
    try:
        do: Callable[[list[str]], int] = getattr(import_module(f"tarmac.cli.{module}"), function or "main")
        return do(rest)
    except HelpShown:
        return 0
    except TarmacError as error:
        code = UNUSABLE if isinstance(error, BadRequest | ConfigError) else FAILED
        return complain(error.what, hint=error.hint, code=code)
    except BrokenPipeError:
        raise
    except OSError as error:  # no space, no permission: the machine's trouble, not a bug to trace
        if isinstance(error, FileNotFoundError) and not error.filename and _nowhere():
            return complain("the current folder no longer exists", hint="cd to a folder that exists")
        where = f": {error.filename}" if error.filename else ""
        return complain(f"{error.strerror or error}{where}", code=FAILED)
    except MemoryError:
        return complain("there is not enough memory", hint="raise the limit: `ulimit -v`", code=FAILED)
    except ImportError as error:  # damaged, or no memory was left to load it
        hint = "raise the limit on memory (`ulimit -v`), or reinstall Tarmac"
        return complain(f"a part of Tarmac can't be loaded: {error}", hint=hint, code=FAILED)


def _nowhere() -> bool:
    """Whether the directory we were started in was removed."""
    import os

    try:
        os.getcwd()  # noqa: PTH109 (what it is does not matter)
    except FileNotFoundError:
        return True
    return False


def _open_closed() -> None:
    """Started with a standard stream closed (`>&-`): lead it nowhere, or the next file we open takes its place."""
    import os

    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
