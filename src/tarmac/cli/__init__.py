"""The command `tarmac VERB …`. Each verb is a module, imported when it is used.

main() → --version, --help at once | VERBS[verb] → module.main(arguments) → exit code

`tarmac --version` costs little more than starting Python, so nothing is imported up here.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERBS = {
    "run": 'Work on a task: tarmac run "make the tests pass".',
    "resume": "Go on with a task of before.",
    "join": "Look on at a task that another process works on, and answer it.",
    "models": "List the models that you can use, with window and price.",
    "demo": "Watch a scripted agent repair a small project; needs no model.",
    "web": "Open the page: tasks, approvals and live terminals in a browser.",
    "serve": "Keep tasks, terminals and the page, without opening a browser.",
    "tasks": "List tasks, show, search, export and delete them.",
    "import": "Take in the tasks of Roo-Code.",
    "config": "Show what is set, and where each value comes from.",
    "acp": "Let an editor drive Tarmac's agent (Agent Client Protocol).",
    "host": "Run another agent (ACP) with Tarmac's terminals and policy.",
    "terminals": "List terminals that outlive the program, attach to one, end them.",
    "grants": "List what was always allowed, and take it back.",
    "check": "Judge a command, or many as JSON lines, without running it.",
    "exec": "Run one command in a fresh terminal, or many as JSON lines.",
    "doctor": "Look whether all of it works on this machine, and what to do.",
    "fleet": "Show the nodes of a cluster, their terminals and their load.",
    "mcp": "Serve terminals to any MCP client.",
    "mcp-servers": "Show the MCP servers that tasks can use, check them, sign in.",
    "tour": "Watch a real terminal at work: a dozen short commands.",
    "completion": "Print the completion of `tarmac` for bash, zsh or fish.",
    "help": "Show this page, or that of a command: tarmac help exec.",
}
ELSEWHERE = {
    "import": "import_roo",
    "mcp-servers": "mcp_servers",
    "resume": "run:resume",
    "serve": "web:serve",
}  # other modules
UNUSABLE = 2  # the command line makes no sense
FAILED = 125  # Tarmac itself failed, or nobody knows how the command ended


class HelpShown(Exception):
    """The person asked for the help of a verb, and has it."""


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
        _silence_stdout()
        return 141
    finally:
        if arguments is None:  # the program ends: to look for garbage in what it leaves took a seventh of its time
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
            return complain("the folder that you are in is gone", hint="cd to one that is there")
        where = f": {error.filename}" if error.filename else ""
        return complain(f"{error.strerror or error}{where}", code=FAILED)
    except MemoryError:
        return complain("there is not enough memory", hint="raise the limit: `ulimit -v`", code=FAILED)
    except ImportError as error:  # damaged, or no memory was left to load it
        hint = "raise the limit on memory (`ulimit -v`), or install Tarmac anew"
        return complain(f"a part of Tarmac can't be loaded: {error}", hint=hint, code=FAILED)


def _nowhere() -> bool:
    """Whether the directory we were started in was removed."""
    import os

    try:
        os.getcwd()  # noqa: PTH109 (what it is does not matter)
    except FileNotFoundError:
        return True
    return False


def complain(what: str, *, hint: str = "", code: int = UNUSABLE) -> int:
    """Say on standard error what went wrong and what to do next; returns `code`."""
    text = f"tarmac: {what}\n" + (f"  hint: {hint}\n" if hint else "")
    try:
        from tarmac.show.harmless import harmless

        text = harmless(text)  # it may quote anybody
        if sys.stderr.isatty():
            text = _wrapped(text)
    except (ImportError, MemoryError):  # there is not even memory for that
        text = "".join(each if each == "\n" or " " <= each <= "~" else "?" for each in text)
    try:
        sys.stdout.flush()
        sys.stderr.write(text.encode("utf-8", "backslashreplace").decode())
        sys.stderr.flush()
    except BrokenPipeError:
        _silence_stdout()
    return code


def _wrapped(text: str) -> str:
    """`text`, broken between words to fit the terminal."""
    import os

    from tarmac.show.columns import wrapped
    from tarmac.show.look import look_of

    return "\n".join(wrapped(text, look_of(sys.stderr, os.environ).columns - 1, indent="    "))


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


def _silence_stdout() -> None:
    """Nobody reads it any more: keep Python from complaining about that when it flushes at its end."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
