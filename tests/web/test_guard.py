"""Who may use the server: exact names, our own pages, proofs, and no process of an agent."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.served import PATIENCE, Served, built, page, served
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tarmac.config import load_config
from tarmac.loopback.http_server import own_names
from tarmac.loopback.peer import Peer, peer_of
from tarmac.web.guard import STRANGER_REFUSED, TOKEN_LASTS, Access, Guard
from tarmac.web.server import ServerOptions, open_server

Answer = tuple[int, dict[str, str], bytes]


async def request(server: Served, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    return await asyncio.to_thread(_request, server.port, method, path, body, headers)


def _request(port: int, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.putrequest(method, path, skip_host="host" in named, skip_accept_encoding=True)
        for name, value in {**named, "content-length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def bearer(server: Served) -> str:
    return f"Bearer {server.proof()}"


async def test_a_token_lets_one_browser_in_once(tmp_path: Path) -> None:
    """A4: the token is exchanged for a proof; a second time, and a wrong one, get nothing."""
    async with served(tmp_path) as server:
        body = json.dumps({"token": server.token()}).encode()
        first = await request(server, "POST", "/api/session", body, content_type="application/json")
        again = await request(server, "POST", "/api/session", body, content_type="application/json")
        wrong = await request(server, "POST", "/api/session", b'{"token": "x"}', content_type="application/json")
        assert (first[0], again[0], wrong[0]) == (200, 403, 403)
        proof = json.loads(first[2])["proof"]
        let_in = await request(server, "GET", "/api/tasks", authorization=f"Bearer {proof}")
        assert (let_in[0], json.loads(let_in[2])) == (200, {"tasks": []})


@pytest.mark.parametrize("path", ["/api/tasks", "/api/settings", "/api/grants", "/api/usage", "/api/files?q=a"])
async def test_without_a_proof_nothing_is_told(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as server:
        none = await request(server, "GET", path)
        wrong = await request(server, "GET", path, authorization="Bearer wrong")
        assert (none[0], wrong[0]) == (401, 401)


async def test_names_and_origins_must_be_exactly_ours(tmp_path: Path) -> None:
    """A4: DNS rebinding, other pages of this machine, and foreign pages are refused, with a valid proof, too."""
    async with served(tmp_path) as server:
        proof, port = bearer(server), server.port

        async def status(**headers: str) -> int:
            return (await request(server, "GET", "/api/tasks", b"", authorization=proof, **headers))[0]

        assert await status(host=f"evil.example:{port}") == 421
        assert await status(host="127.0.0.1") == 421
        assert await status(host=f"127.0.0.1:{port + 1}") == 421
        assert await status(origin="http://evil.example") == 403
        assert await status(origin=f"http://127.0.0.1:{port + 1}") == 403
        assert await status(origin=f"https://127.0.0.1:{port}") == 403
        assert await status(origin="null") == 403
        assert await status(origin=f"http://localhost:{port}") == 200
        assert await status() == 200


async def test_a_post_is_json_and_nothing_else(tmp_path: Path) -> None:
    """A4: what a foreign page can send without a preflight is refused before it is read."""
    async with served(tmp_path) as server:
        proof = bearer(server)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await request(server, "POST", "/api/invite", b"{}", authorization=proof, content_type=kind)
            assert answer[0] == 415, kind
        fine = await request(server, "POST", "/api/invite", b"{}", authorization=proof, content_type="application/json")
        assert fine[0] == 200
        for verb in ("PUT", "DELETE", "OPTIONS", "TRACE"):
            assert (await request(server, verb, "/api/tasks", authorization=proof))[0] == 405


async def test_the_page_has_a_policy_with_a_new_nonce_each_time(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        first, second = await request(server, "GET", "/"), await request(server, "GET", "/")
        policy = first[1]["content-security-policy"]
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert f'nonce="{nonce}"'.encode() in first[2] and b"__NONCE__" not in first[2]
        assert nonce not in second[1]["content-security-policy"]
        assert "default-src 'none'" in policy and "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy and "set-cookie" not in first[1]
        script = await request(server, "GET", "/assets/a1.js")
        assert (script[0], script[1]["cache-control"].endswith("immutable")) == (200, True)
        for path in ("/../pyproject.toml", "/assets/../../server.py", "/assets/%2e%2e/index.html", "/nothing.js"):
            assert (await request(server, "GET", path))[0] == 404, path


async def test_a_socket_that_proves_nothing_is_closed_within_two_seconds(tmp_path: Path) -> None:
    """A4: silent, or with a wrong proof."""
    async with served(tmp_path) as server:
        uri, origin = f"ws://127.0.0.1:{server.port}/api/socket", f"http://127.0.0.1:{server.port}"
        began = time.monotonic()
        async with connect(uri, origin=_any(origin)) as silent:
            with pytest.raises(ConnectionClosed) as closed:
                await silent.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4408
        assert 1.5 < time.monotonic() - began < 10
        for first in ('{"hello": "wrong"}', "{}", "no json", '{"do": "create", "text": "x"}'):
            async with connect(uri, origin=_any(origin)) as wrong:
                await wrong.send(first)
                with pytest.raises(ConnectionClosed) as closed:
                    await wrong.recv()
                assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401


async def test_a_foreign_page_gets_no_socket(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for origin in ("http://evil.example", f"http://127.0.0.1:{server.port + 1}", "null"):
            with pytest.raises(InvalidStatus) as refused:
                async with connect(f"ws://127.0.0.1:{server.port}/api/socket", origin=_any(origin)):
                    pass
            assert refused.value.response.status_code == 403


def _any(origin: str) -> Any:
    return origin


@pytest.mark.shell
async def test_an_agents_process_gets_nothing_even_with_a_proof(tmp_path: Path, require: Any) -> None:
    """A4: `curl` from a terminal of Tarmac's reaches no data, and can't redeem a token."""
    require("curl")
    async with served(tmp_path) as server, page(server.port, server.proof()) as one:
        base = f"http://127.0.0.1:{server.port}"
        opened = (await one.do("open"))["terminal"]
        terminal = server.server.state.terminals.get(opened)
        look = await terminal.run(f"curl -s -H 'Authorization: Bearer {server.proof()}' {base}/api/tasks")
        assert "may not use the page" in look.output
        token = json.dumps({"token": server.token()})
        post = f"curl -s -H 'Content-Type: application/json' -d '{token}' {base}/api/session"
        redeem = await terminal.run(f"({post} &) ; sleep 0; setsid -w {post}")
        assert "proof" not in redeem.output and "may not use the page" in redeem.output


CLEARED = "ulimit -x unlimited; exec env -i PATH=/usr/bin:/bin bash"


@pytest.mark.shell
@pytest.mark.parametrize("how", ["{curl}", "setsid -w {curl}", "({curl}; true) | cat"])
async def test_an_agent_that_cleared_its_mark_and_its_environment_is_still_one(
    tmp_path: Path, require: Any, how: str
) -> None:
    """A4: another Tarmac's shell is known by its parents, whatever it forgot. The server is not the one above it."""
    require("curl")
    async with served(tmp_path) as server:
        script = tmp_path / "other.py"
        script.write_text(OTHER_TARMAC)
        url = f"http://127.0.0.1:{server.port}/api/tasks"
        curl = f'curl -s -H "Authorization: Bearer {server.proof()}" {url}'
        words = [sys.executable, str(script), f"{CLEARED} -c '{how.format(curl=curl)}'"]
        other = await asyncio.to_thread(_detached, words, tmp_path / "said")
        assert "may not use the page" in other, other


OTHER_TARMAC = """
import asyncio, sys
from tarmac.terminals import open_terminal

async def main():
    async with open_terminal(shell="bash") as terminal:
        print((await terminal.run(sys.argv[1], timeout=60)).output)

asyncio.run(main())
"""


def _detached(words: list[str], said: Path) -> str:
    """What a program prints that is no child of ours: its parent has left."""
    script = "import os, subprocess, sys; os.fork() and os._exit(0); os.setsid(); " + (
        f"subprocess.run(sys.argv[2:], stdout=open(sys.argv[1] + '.part', 'w'), stderr=2, timeout={PATIENCE}); "
        "os.rename(sys.argv[1] + '.part', sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", script, str(said), *words], check=True, timeout=PATIENCE)
    end = time.monotonic() + PATIENCE
    while not said.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return said.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("sudo", [False, True])
async def test_another_user_gets_nothing_even_with_a_token(
    tmp_path: Path, require: Any, sudo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A4: the address is on the command line of the browser, which all users can read. Who used sudo is no other."""
    require("curl")
    if sudo:
        monkeypatch.setenv("SUDO_UID", "65534")
    async with served(tmp_path) as server:
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s"]
        words += ["-H", "Content-Type: application/json", "-d", json.dumps({"token": server.token()})]
        curl = [*words, f"http://127.0.0.1:{server.port}/api/session"]
        said = await asyncio.to_thread(_detached, curl, tmp_path / "said")
    assert ("proof" in said, STRANGER_REFUSED in said) == (sudo, not sudo), said


def test_a_peer_that_is_gone_is_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()):
            accepted, address = listening.accept()
            assert peer_of(address, listening.getsockname()) is Peer.PERSON
        assert peer_of(address, listening.getsockname()) is Peer.GONE
        accepted.close()


HOSTS = st.sampled_from(["127.0.0.1:80", "localhost:80", "[::1]:80", "evil:80", "127.0.0.1", "127.0.0.1:81", ""])
ORIGINS = st.sampled_from(["http://127.0.0.1:80", "http://localhost:80", "http://evil:80", "null", "127.0.0.1:80"])


@given(st.lists(HOSTS, max_size=3), st.lists(ORIGINS, max_size=3), st.sampled_from(["websocket", "http"]))
def test_only_one_own_host_and_at_most_one_own_origin_pass(hosts: list[str], origins: list[str], kind: str) -> None:
    headers = [(b"host", each.encode()) for each in hosts] + [(b"origin", each.encode()) for each in origins]
    guard = Guard(_nothing, own_names(80))
    passes = guard.refusal({"type": kind, "method": "GET", "headers": headers}) is None
    ours = own_names(80)
    assert passes == (
        len(hosts) == 1
        and hosts[0] in ours
        and len(origins) <= 1
        and all(each in [f"http://{name}" for name in ours] for each in origins)
    )


async def _nothing(*_: object) -> None:
    pass


def test_tokens_expire_and_guesses_of_others_lock_nobody_out() -> None:
    """A4: another user of this machine may send as many wrong tokens as they like."""
    now = [1000.0]
    access = Access(now=lambda: now[0])
    late = access.token()
    now[0] += TOKEN_LASTS + 1
    assert access.redeem(late) is None
    good = access.token()
    for _ in range(1000):
        assert access.redeem("a guess") is None
    proof = access.redeem(good)
    assert proof and access.knows(proof) and not access.knows(good)
    assert all(proof not in digest for digest, _ in access.proofs)


@pytest.mark.parametrize("yes", [True, False])
async def test_a_device_of_the_network_is_let_in_only_after_a_yes_on_the_machine(tmp_path: Path, yes: bool) -> None:
    """A4: with --lan the token alone is not enough, and without it nobody is asked.

    The request of another machine is given to the app itself.
    """
    asked: list[str] = []

    async def admit(host: str) -> bool:
        asked.append(host)
        return yes

    options = ServerOptions(port=0, admit=admit, static=built(tmp_path / "static"))
    async with open_server(load_config(tmp_path, os.environ), os.environ, options) as server:
        token, host = server.access.token(), f"127.0.0.1:{server.port}".encode()

        async def status(token: str) -> int:
            sent: list[Any] = []
            body = json.dumps({"token": token}).encode()
            headers = [(b"host", host), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            scope = {
                "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
                "path": "/api/session", "raw_path": b"/api/session", "query_string": b"", "root_path": "",
                "headers": headers, "client": ("192.168.7.9", 4711), "server": ("192.168.7.2", server.port),
            }  # fmt: skip

            async def receive() -> Any:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: Any) -> None:
                sent.append(message)

            await server.app(scope, receive, send)
            return int(sent[0]["status"])

        assert (await status("a guess"), asked) == (403, [])
        assert (await status(token), asked) == (200 if yes else 403, ["192.168.7.9"])
        asked.clear()
        if yes:
            assert (await status(token), asked) == (403, [])  # it was used
        else:
            assert server.access.redeem(token)  # a no leaves the token to who it is for
