"""How Tarmac says on the command line what went wrong, and with which status it ends."""

import sys

UNUSABLE = 2  # the command line makes no sense
FAILED = 125  # Tarmac itself failed, or nobody knows how the command ended


def complain(what: str, *, hint: str = "", code: int = UNUSABLE) -> int:
    """Say on standard error what went wrong and what to do next; returns `code`."""
    text = f"tarmac: {what}\n" + (f"  hint: {hint}\n" if hint else "")
    try:
        from tarmac.show.look import harmless

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
        silence_stdout()
    return code


def _wrapped(text: str) -> str:
    """`text`, broken between words to fit the terminal."""
    import os

    from tarmac.show.look import look_of, wrapped

    return "\n".join(wrapped(text, look_of(sys.stderr, os.environ).columns - 1, indent="    "))


def silence_stdout() -> None:
    """Nobody reads it any more: keep Python from complaining about that when it flushes at its end."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
