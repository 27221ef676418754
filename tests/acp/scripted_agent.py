"""An agent by hand, as a process: it does what the prompt says, a JSON list of steps, and keeps what it heard.

{"call": METHOD, "params": {…}, "as": NAME}   ask and wait          {"send": …} ask, {"await": NAME} wait
{"update": {…}} · {"raw": "junk"} · {"shell": "sleep 9 &"} · {"stop": REASON} · {"until": METHOD} · {"die": 3}
{"later": [STEP …]}   when the turn has ended
{"connect": NAME, "env": …, "with": [COMMAND …]}   start the MCP server it was given, and shake hands
{"tool": NAME, "arguments": {…}, "as": NAME, "on": NAME}   call one of its tools; {"begin": …} without waiting

"$NAME.key" in params is what came back under that name. Everything is written to $AGENT_LOG at the end of a turn.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

answers: dict[int, Any] = {}
heard: list[Any] = []
found: dict[str, Any] = {}
names: dict[str, int] = {}
waiting: list[Any] = []
servers: list[Any] = []
later: list[Any] = []
logged_in: list[str] = []
connected: "dict[str, subprocess.Popen[str]]" = {}
numbers = 0


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(update: dict[str, Any]) -> None:
    send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})


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


def connect(step: dict[str, Any]) -> None:
    """Start the injected MCP server as it is told, or with what the step changes about that."""
    entry = servers[0]
    env = {each["name"]: each["value"] for each in entry["env"]}
    env = {name: value.format(**env) for name, value in step["env"].items()} if "env" in step else env
    argv = [*step.get("with", []), entry["command"], *entry["args"]]
    pipe = subprocess.PIPE
    server = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **env})
    connected[step["connect"]] = server
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "scripted", "version": "1"}}
    answer = speak(server, "initialize", hello)
    found[step["connect"]] = answer
    if "refused" not in answer:
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        server.stdin.write(json.dumps(note) + "\n")  # type: ignore[union-attr]


def list_tools() -> None:
    slowly = ["sh", "-c", f'sleep {os.environ["AGENT_EARLY"]}; exec "$@"', "sh"]
    connect({"connect": "mcp", "with": slowly})
    time.sleep(1)
    speak(connected["mcp"], "tools/list", {})
    heard.append({"method": "tools listed"})


def begin(server: "subprocess.Popen[str]", method: str, params: Any) -> int:
    global numbers
    numbers += 1
    assert server.stdin
    try:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": numbers, "method": method, "params": params}) + "\n")
        server.stdin.flush()
    except BrokenPipeError:
        pass
    return numbers


def speak(server: "subprocess.Popen[str]", method: str, params: Any) -> Any:
    assert server.stdout and server.stderr
    id = begin(server, method, params)
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == id and "method" not in message:
            return message.get("result", {"error": message.get("error")})
    return {"refused": server.stderr.read().strip()}


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
        elif "connect" in step:
            connect(step)
        elif "tool" in step or "begin" in step:
            name = step.get("tool") or step["begin"]
            params = {"name": name, "arguments": fill(step["arguments"])}
            act = speak if "tool" in step else begin
            found[step["as"]] = act(connected[step.get("on", "mcp")], "tools/call", params)
        elif "until" in step:
            while not any(each.get("method") == step["until"] for each in heard):
                read()
        elif "later" in step:
            later.extend(step["later"])
        elif "stop" in step:
            return str(step["stop"])
        elif "die" in step:
            print("it is all over", file=sys.stderr)
            os._exit(step["die"])
    return "end_turn"


def steps_of(text: str) -> list[dict[str, Any]]:
    try:
        steps: list[dict[str, Any]] = json.loads(text)
    except ValueError:
        steps = [{"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{text}!"}}}]
    return steps


def misbehave(how: str) -> None:
    """What agents do that are none."""
    match how:
        case "dies":
            print("no key", file=sys.stderr)
            sys.exit(7)
        case "mute":
            while sys.stdin.readline():
                pass
        case "garbage":
            print("Welcome to some-agent! Usage: some-agent [--acp]")
            sys.exit(0)
        case "floods":
            try:
                while True:
                    print('{"jsonrpc":"2.0","method":"x"}' * 1000)
            except OSError:
                os._exit(0)
        case "deaf":  # does not mind that nobody speaks with it any more
            Path(os.environ["PIDS"]).write_text(str(os.getpid()))
            while True:
                time.sleep(1000)
        case "stays":  # takes no hint
            import signal

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen(["setsid", "sh", "-c", f"trap '' TERM; echo $$ > {os.environ['PIDS']}; sleep 1000"])


def main() -> None:
    misbehave(os.environ.get("AGENT_HOW", ""))
    while True:
        if not waiting:
            read()
            continue
        message = waiting.pop(0)
        match message["method"]:
            case "initialize":
                shape = json.loads(os.environ.get("AGENT_INITIALIZE", '{"protocolVersion":1,"agentCapabilities":{}}'))
                send({"id": message["id"], "result": shape})
            case "session/new" | "session/load" | "session/resume":
                servers[:] = message["params"]["mcpServers"]
                early: dict[str, Any] = {"sessionUpdate": "usage_update", "used": 1, "size": 2}
                if message["method"] == "session/load":
                    early = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of before"}}
                send({"method": "session/update", "params": {"sessionId": "s1", "update": early}})
                if os.environ.get("AGENT_NO_MCP") and servers:
                    send({"id": message["id"], "error": {"code": -32602, "message": "no servers, please"}})
                elif os.environ.get("AGENT_AUTH") and not logged_in:
                    send({"id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
                else:
                    if os.environ.get("AGENT_EARLY"):
                        threading.Thread(target=list_tools, daemon=True).start()
                    modes = json.loads(os.environ.get("AGENT_SESSION", "{}"))
                    send({"id": message["id"], "result": {"sessionId": "s1", **modes}})
            case "authenticate":
                if message["params"]["methodId"] == "wrong":
                    send({"id": message["id"], "error": {"code": -32603, "message": "no such key"}})
                    continue
                logged_in.append(message["params"]["methodId"])
                send({"id": message["id"], "result": {}})
            case "session/prompt" if os.environ.get("AGENT_VERSION") == "2":
                tell({"sessionUpdate": "state_update", "state": "running"})
                send({"id": message["id"], "result": {"messageId": "m0"}})
                stop = play(steps_of(message["params"]["prompt"][0]["text"]))
                with open(os.environ["AGENT_LOG"], "w") as file:  # noqa: PTH123
                    json.dump({"found": found, "heard": heard}, file)
                error = {"error": {"code": -32603, "message": "no quota"}} if stop == "error" else {}
                tell({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop, **error})
            case "session/prompt":
                stop = play(steps_of(message["params"]["prompt"][0]["text"]))
                with open(os.environ["AGENT_LOG"], "w") as file:  # noqa: PTH123
                    json.dump({"found": found, "heard": heard}, file)
                send({"id": message["id"], "result": {"stopReason": stop}})
                steps, later[:] = later[:], []
                play(steps)
                late = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": " (late)"}}
                send({"method": "session/update", "params": {"sessionId": "s1", "update": late}})
            case _:
                send({"id": message["id"], "result": None})


main()
