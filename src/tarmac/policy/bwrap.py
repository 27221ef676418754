"""bubblewrap on this machine: whether it can make a sandbox, by which flags, and what then holds. Found by trying it.

probe("bwrap") → Program(path, flags, holds), or SandboxUnavailable, which says why
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from tarmac.errors import SandboxUnavailable
from tarmac.paths import remove_scratch, scratch_dir
from tarmac.seccomp import sandbox_filter

# Joins the control groups, opens the filter, becomes bwrap. Without any of these it does not start.
JOIN = """
while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 126; shift; done
shift; [ -z "$1" ] || exec 9<"$1" || exit 126; shift; exec "$@"
"""
# What holds, told from within; one word for each.
_TRY = r"""
(: >"$1/made") 2>/dev/null || echo files
[ $$ = 1 ] && [ "$(ls /proc | grep -c '^[0-9]')" -lt 9 ] && echo processes
[ "$(grep -c : /proc/net/dev)" = 1 ] && echo network
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status && [ ! -w /proc/sys/kernel/core_pattern ] && echo privileges
grep -q '^Seccomp:[[:space:]]*2' /proc/self/status && echo calls
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A bwrap that works, and how."""

    path: str
    flags: tuple[str, ...]
    holds: frozenset[str]


_BASE = ("--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--cap-drop", "ALL")
# The best first: in a user namespace that allows no other, in one that does, and for root without.
_WAYS = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())


@cache
def probe(program: str) -> Program:
    """The way that works here, tried out; SandboxUnavailable when none does. Only a success is remembered."""
    path = shutil.which(program)
    if path is None:
        raise SandboxUnavailable(
            f"there is no `{program}` on this machine", hint="install bubblewrap (on Debian: apt install bubblewrap)"
        )
    why = ""
    outside = scratch_dir(os.environ)
    try:
        call_filter = sandbox_filter()
        (outside / "filter").write_bytes(call_filter or b"")
        for way in _WAYS if os.geteuid() == 0 else _WAYS[:2]:
            flags = (*_BASE, *way)
            words = [path, *flags, "--die-with-parent", "--as-pid-1", "--unshare-net", "--ro-bind", "/", "/"]
            words += ["--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
            words += ["--perms", "1777", "--size", "1048576", "--tmpfs", "/var/tmp"]
            words += [*(["--seccomp", "9"] if call_filter else []), "--", "/bin/sh", "-c", _TRY, "sh", str(outside)]
            tried = subprocess.run(
                ["/bin/sh", "-c", JOIN, "sh", "--", str(outside / "filter"), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            holds = frozenset(tried.stdout.split())
            if {"files", "processes", "privileges"} <= holds:
                return Program(path, flags, holds)
            why = (
                why or tried.stderr.strip().rpartition("\n")[2] or f"only {', '.join(sorted(holds)) or 'nothing'} held"
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    finally:
        remove_scratch(outside)
    raise SandboxUnavailable(
        f"`{program}` can't make a sandbox here: {why}",
        hint="user namespaces may be turned off: see kernel.unprivileged_userns_clone, user.max_user_namespaces",
    )
