"""Stand between an editor and its agent, and write down what both say: `python wire_tap.py FILE editor agent COMMAND…`.

Each line of FILE is `{"editor": message}` or `{"agent": message}`, in the order of the wire: a message is written down
before it is passed on.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def tapped(file: Path, outer: str, inner: str, command: list[str]) -> list[str]:
    """The command with the tap in front of it."""
    return [sys.executable, __file__, str(file), outer, inner, *command]


def keep(tape: Path, to: Path, *, project: Path) -> None:
    """Put a recording into the repository, as it is but for this machine's paths."""
    text = tape.read_text().replace(str(project), "/project").replace(str(tape.parent), "/elsewhere")
    to.write_text(text)


def main(file: Path, outer: str, inner: str, command: list[str]) -> int:
    """Until the agent ends; its exit status."""
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None and agent.stdout is not None
    lock = threading.Lock()

    def pass_on(who: str, source: IO[bytes], sink: IO[bytes]) -> None:
        for line in source:
            with lock, file.open("a") as tape:
                tape.write(json.dumps({who: json.loads(line)}, ensure_ascii=False) + "\n")
            sink.write(line)
            sink.flush()
        sink.close()

    threading.Thread(target=pass_on, args=(outer, sys.stdin.buffer, agent.stdin), daemon=True).start()
    pass_on(inner, agent.stdout, sys.stdout.buffer)
    return agent.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
