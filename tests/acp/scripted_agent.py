"""An agent by hand, as a process: it does what the prompt says, a JSON list of steps, and keeps what it heard.

{"call": METHOD, "params": {…}, "as": NAME}   ask and wait          {"send": …} ask, {"await": NAME} wait
{"update": {…}} · {"raw": "junk"} · {"shell": "sleep 9 &"} · {"stop": REASON} · {"until": METHOD} · {"die": 3}

"$NAME.key" in params is what came back under that name. Everything is written to $AGENT_LOG at the end of a turn.
"""

import json
import os
import subprocess
import sys
from typing import Any

answers: dict[int, Any] = {}
heard: list[Any] = []
found: dict[str, Any] = {}
names: dict[str, int] = {}
waiting: list[Any] = []
numbers = 0


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> None:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    heard.append(message)
    if "method" not in message:
        answers[message["id"]] = message.get("result", {"error": message.get("error")})
    elif "id" in message:
        waiting.append(message)


def fill(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        name, _, key = value[1:].partition(".")
        return found[name][key] if name in found else value
    if isinstance(value, dict):
        return {key: fill(each) for key, each in value.items()}
    return [fill(each) for each in value] if isinstance(value, list) else value


def ask(step: dict[str, Any], method: str) -> None:
    global numbers
    numbers += 1
    names[step.get("as", str(numbers))] = numbers
    send({"id": numbers, "method": method, "params": fill({"sessionId": "s1", **step["params"]})})


def result(name: str) -> None:
    while names[name] not in answers:
        read()
    found[name] = answers[names[name]]


def play(steps: list[dict[str, Any]]) -> str:
    for step in steps:
        if "call" in step:
            ask(step, step["call"])
            result(step.get("as", str(numbers)))
        elif "send" in step:
            ask(step, step["send"])
        elif "await" in step:
            result(step["await"])
        elif "update" in step:
            send({"method": "session/update", "params": {"sessionId": "s1", "update": step["update"]}})
        elif "raw" in step:
            sys.stdout.write(step["raw"] + "\n")
        elif "shell" in step:
            subprocess.run(["sh", "-c", step["shell"]], check=False)
        elif "until" in step:
            while not any(each.get("method") == step["until"] for each in heard):
                read()
        elif "stop" in step:
            return str(step["stop"])
        elif "die" in step:
            print("it is all over", file=sys.stderr)
            os._exit(step["die"])
    return "end_turn"


def main() -> None:
    while True:
        if not waiting:
            read()
            continue
        message = waiting.pop(0)
        match message["method"]:
            case "initialize":
                shape = json.loads(os.environ.get("AGENT_INITIALIZE", '{"protocolVersion":1,"agentCapabilities":{}}'))
                send({"id": message["id"], "result": shape})
            case "session/new":
                early = {"sessionUpdate": "usage_update", "used": 1, "size": 2}
                send({"method": "session/update", "params": {"sessionId": "s1", "update": early}})
                if os.environ.get("AGENT_AUTH"):
                    send({"id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
                else:
                    send({"id": message["id"], "result": {"sessionId": "s1"}})
            case "session/prompt":
                stop = play(json.loads(message["params"]["prompt"][0]["text"]))
                with open(os.environ["AGENT_LOG"], "w") as file:  # noqa: PTH123
                    json.dump({"found": found, "heard": heard}, file)
                send({"id": message["id"], "result": {"stopReason": stop}})
                late = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": " (late)"}}
                send({"method": "session/update", "params": {"sessionId": "s1", "update": late}})
            case _:
                send({"id": message["id"], "result": None})


main()
