"""What a child asks of the kernel between fork and exec, about its own children and its parent."""

import signal
import sys
from collections.abc import Callable
from functools import cache

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def prepare() -> None:
    """Load what `become_subreaper` needs; call it before the fork, where an import is still safe."""
    _prctl()


def become_subreaper() -> None:
    """Adopt the orphans among all descendants; for the child between fork and exec. Survives the exec.

    Does nothing where there is no prctl: orphans then go to init, and only `sweep` may find them.
    """
    if prctl := _prctl():
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(sig: int = signal.SIGTERM) -> None:
    """Get `sig` when the thread that forked us is gone, however; for the child between fork and exec, after `prepare`.

    For a process that must not outlive a host that was killed. Survives the exec; its own children don't inherit it.
    """
    if prctl := _prctl():
        prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)


@cache
def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    import ctypes  # here, for the many who open no terminal

    try:
        prctl = ctypes.PyDLL(None).prctl  # PyDLL: keeps the GIL, as after a fork there is nobody to hand it to
    except (OSError, AttributeError):
        return None
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    function: Callable[..., int] = prctl
    return function
