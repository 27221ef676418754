"""Stand between an editor and its agent, and write down what both say: `python wire_tap.py FILE COMMAND…`.

Each line of FILE is `{"editor": message}` or `{"agent": message}`, in the order of the wire: a message is written down
before it is passed on.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main(file: Path, command: list[str]) -> int:
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

    threading.Thread(target=pass_on, args=("editor", sys.stdin.buffer, agent.stdin), daemon=True).start()
    pass_on("agent", agent.stdout, sys.stdout.buffer)
    return agent.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
