"""End what the terminals of a killed program left running.

open → guard(mark) ─ pipe → sh, which waits for the pipe to close → every process with one of these marks is killed

A program that is killed with SIGKILL closes nothing. The kernel then hangs up its terminals, and what ignores a hang-up
(`nohup`, `setsid`, a trap) would go on for ever. So one small `sh` runs beside the program as long as it has terminals
open. It knows their birthmarks (birthmark.py), and it sees the end of the program as the end of a pipe.

It can't help when it is killed as well, nor find what has lost its birthmark: see birthmark.py. A program that forks
without exec hands the pipe to its child, and then the end of that child counts.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

# Waits, notes marks (`+ mark`, `- mark`), and when nobody can write any more, kills until a whole scan finds nobody.
SCRIPT = r"""
trap '' HUP INT QUIT TERM
marks=' '
while read -r sign mark; do
  case $sign in
    +) marks="$marks$mark " ;;
    -) marks="${marks%% $mark *} ${marks#* $mark }" ;;
  esac
done
case $marks in *[0-9]*) ;; *) exit 0 ;; esac
sleep 0.3
round=0
while [ $round -lt 50 ]; do
  round=$((round + 1)) found=
  for limits in /proc/[0-9]*/limits; do
    while read -r max file locks soft rest; do
      case "$max $file $locks" in
        'Max file locks')
          case $marks in *" $soft "*) pid=${limits#/proc/}; kill -9 "${pid%/limits}" && found=1 ;; esac
          break ;;
      esac
    done <"$limits"
  done 2>/dev/null
  [ -n "$found" ] || [ $round -lt 3 ] || exit 0
done
"""

_marks: set[int] = set()
_watchdog: "subprocess.Popen[bytes] | None" = None


def guard(mark: int | None) -> None:
    """Have everything with this birthmark ended if this program is killed."""
    if mark is None or sys.platform != "linux":
        return
    _marks.add(mark)
    if _watchdog is None:
        _start()
    else:
        _tell(f"+ {mark}\n")


def release(mark: int | None) -> "subprocess.Popen[bytes] | None":
    """The terminal with this birthmark is closed. After the last one the watchdog leaves: wait for the returned one."""
    if mark is None or mark not in _marks:
        return None
    _marks.discard(mark)
    _tell(f"- {mark}\n")
    return None if _marks else _stop()


def _start() -> None:
    import subprocess  # here: the terminal daemon needs the script alone

    global _watchdog  # one for the whole process, whose end is what is watched
    try:
        _watchdog = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            start_new_session=True,
        )
    except OSError:
        return  # no process to be had: the terminals work all the same
    _tell("".join(f"+ {each}\n" for each in _marks))


def _tell(lines: str) -> None:
    if _watchdog is None or _watchdog.stdin is None:
        return
    try:
        os.write(_watchdog.stdin.fileno(), lines.encode())
    except OSError:  # somebody killed it
        if (dead := _stop()) is not None:
            dead.wait()
        if _marks:
            _start()


def _stop() -> "subprocess.Popen[bytes] | None":
    global _watchdog
    watchdog, _watchdog = _watchdog, None
    if watchdog is not None and watchdog.stdin is not None:
        watchdog.stdin.close()
    return watchdog
