"""fetch_url: pages of real servers on loopback, which is a private address and says so."""

import asyncio
import gzip
import socket
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import ToolFailed
from tarmac.policy import Connect, Policy
from tarmac.policy.grants import GrantFile
from tarmac.tools.fetch_url import _fetch, _split, is_public, page_text, resolve

PAGE = b"""<!doctype html><html><head><title>T</title><script>alert(1)</script></head><body><h1>News</h1>
<p>One  <a href="/two">two</a></p><ul><li>first<li>second</ul><pre>def f():
    pass</pre></body></html>"""


@asynccontextmanager
async def served(answer: Callable[[str], bytes]) -> AsyncIterator[str]:
    """A server that answers each path with these bytes: its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        while (await reader.readline()).strip():
            pass
        writer.write(answer(line.split()[1]))
        await writer.drain()
        writer.close()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def ok(body: bytes, kind: str = "text/html", more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_a_page_becomes_text_behind_a_boundary(shop: Workshop) -> None:
    """S10: headings, links, lists and code; scripts are left out."""
    async with served(lambda _: ok(gzip.compress(PAGE), more="Content-Encoding: gzip\r\n")) as url:
        done = await shop.call("fetch_url", url=f"{url}/a#b")
    assert done.output == f"# News\n\nOne two <{url}/two>\n\n- first\n- second\n\n    def f():\n        pass"
    assert "untrusted: the page says it" in text_of(done) and "alert" not in text_of(done)


async def test_each_host_is_asked_about_and_a_private_one_at_every_level(shop: Workshop) -> None:
    """P1: loopback and private networks need a person; the address of cloud credentials is never fetched."""
    ready = await shop.prepare("fetch_url", url="http://127.0.0.1:9/x")
    action = ready.wants[0].action
    assert action == Connect("http://127.0.0.1:9/x", host="127.0.0.1:9", private=True)
    verdict = await Policy().judge(action, workspace=shop.folder)
    assert (verdict.decision, verdict.risk, bool(verdict.personal)) == ("ask", "high", True)
    public = await Policy().judge(Connect("https://example.com/", host="example.com"), workspace=shop.folder)
    assert (public.decision, public.risk, public.personal) == ("ask", "medium", "")
    assert public.suggested_grants[0].words == ("host", "example.com")
    for host in ("169.254.169.254", "169.254.169.254:80"):
        cloud = await Policy().judge(Connect(f"http://{host}/", host=host, private=True), workspace=shop.folder)
        assert cloud.decision == "deny"


async def test_redirects_stay_on_the_host_and_others_are_told(shop: Workshop) -> None:
    """P1: a redirect to another host is judged by its own call."""

    def answer(path: str) -> bytes:
        if path == "/here":
            return b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
        if path == "/away":
            return b"HTTP/1.1 301 Moved\r\nLocation: http://10.0.0.1/secret\r\nContent-Length: 0\r\n\r\n"
        if path == "/round":
            return b"HTTP/1.1 302 Found\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n"
        return ok(b"arrived", "text/plain")

    async with served(answer) as url:
        assert "arrived" in await shop.text("fetch_url", url=f"{url}/here")
        away = await shop.text("fetch_url", url=f"{url}/away")
        assert "redirects to another host" in away and "http://10.0.0.1/secret" in away
        assert "redirects more than 5 times" in await shop.failure("fetch_url", url=f"{url}/round")


async def test_long_pages_are_bounded_and_can_be_read_on(shop: Workshop) -> None:
    """S10."""
    async with served(lambda _: ok(b"".join(b"line %d\n" % n for n in range(20_000)), "text/plain")) as url:
        first = await shop.call("fetch_url", url=url)
        assert len(first.output) < 41_000 and "give start to read on" in text_of(first)
        later = await shop.call("fetch_url", url=url, start=100_000)
        assert later.output.splitlines()[2] not in first.output


async def test_what_is_no_text_or_no_address_is_said(shop: Workshop) -> None:
    """S10."""
    async with served(lambda path: ok(b"\x89PNG", "image/png") if path == "/p" else b"HTTP/1.1 404 No\r\n\r\n") as url:
        assert "not text, and not shown" in await shop.text("fetch_url", url=f"{url}/p")
        assert (await shop.call("fetch_url", url=f"{url}/x")).outcome == "failed"
    assert "can't be read" in await shop.failure("fetch_url", url=url)  # nobody listens any more
    for bad, why in (
        ("file:///etc/passwd", "not file"),
        ("http://user:pw@example.com/", "password"),
        ("http:///x", "not an address"),
        ("http://a b/", "not an address"),
        ("http://x:99999/", "not an address"),
    ):
        assert why in await shop.failure("fetch_url", url=bad)


def test_which_addresses_are_public() -> None:
    """P1."""
    for (
        private
    ) in "127.0.0.1 10.1.2.3 192.168.0.1 169.254.1.1 ::1 fe80::1 fd00::1 0.0.0.0 ::ffff:127.0.0.1 100.64.0.1".split():
        assert not is_public(private), private
    for tunnel in "::127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 2002:7f00:1:: fec0::1 ::ffff:0:10.0.0.1".split():
        assert not is_public(tunnel), tunnel
    for public in ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"):
        assert is_public(public), public


async def test_a_name_is_resolved_once(shop: Workshop) -> None:
    """P1: the addresses that are judged are those that are connected to."""
    target = await resolve("http://localhost:1/")
    assert target.private and set(target.addresses) <= {"127.0.0.1", "::1"}


async def test_a_name_is_looked_up_only_after_it_was_allowed(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1: a lookup tells servers of others the name, which the model chose."""
    asked: list[object] = []

    def look_up(host: object, *rest: object, **more: object) -> list[object]:
        asked.append(host)
        address = "10.0.0.7" if host == "inside.example" else "93.184.216.34"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    ready = await shop.first("fetch_url", url="http://secret.example/x")
    assert [each.action for each in ready.wants] == [Connect("http://secret.example/x", host="secret.example")]
    assert asked == [] and ready.then is not None
    assert (await ready.then()).wants == () and asked == ["secret.example"]
    inside = await shop.prepare("fetch_url", url="http://inside.example/")
    assert [each.action for each in inside.wants] == [
        Connect("http://inside.example/", host="inside.example", private=True)
    ]
    for spelling in ("http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://a.localhost/"):
        assert (await shop.first("fetch_url", url=spelling)).then is None  # no name: one question


async def test_a_host_that_was_allowed_and_leads_into_a_private_network_is_asked_about_again(
    shop: Workshop, tmp_path: Path
) -> None:
    """P1: the name of a public host may be given another address later."""
    grants = GrantFile(tmp_path / "private" / "grants.json")
    policy = Policy(grants=grants)
    public = Connect("https://a.example/", host="a.example")
    found = await policy.judge(public, workspace=shop.folder)
    grants.add(found.suggested_grants[0], scope="everywhere", risk=found.risk)
    assert (await policy.judge(public, workspace=shop.folder)).decision == "allow"
    inside = await policy.judge(replace(public, private=True), workspace=shop.folder)
    assert (inside.decision, bool(inside.personal)) == ("ask", True)
    grants.add(inside.suggested_grants[0], scope="everywhere", risk=inside.risk)
    assert (await policy.judge(replace(public, private=True), workspace=shop.folder)).decision == "allow"


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/html", "<meta charset=windows-1251><p>Привет".encode("cp1251"), "Привет"),
        ("text/html", "<meta http-equiv=x content='text/html; charset=Shift_JIS'><p>日本".encode("shift_jis"), "日本"),
        ("text/plain; charset=utf-16", "héllo".encode("utf-16"), "héllo"),
        ("text/plain", "héllo".encode("utf-16"), "héllo"),
        ("text/plain", b"\xef\xbb\xbfhi", "hi"),
        ("text/plain; charset=hex", b"hi", "hi"),
        ("text/plain; charset=idna", b"hi", "hi"),
        ("text/plain; charset=unicode_escape", rb"a\n\x41", r"a\n\x41"),
        ("text/plain; charset=nonsense", "é".encode(), "é"),
        ('text/plain; charset="ISO-8859-1"', "é".encode("latin-1"), "é"),
    ],
)
async def test_odd_charsets(shop: Workshop, kind: str, body: bytes, text: str) -> None:
    """S10: the encoding is that of the header, or of the page itself; a codec that makes no text is not used."""
    async with served(lambda _: ok(body, kind)) as url:
        assert (await shop.call("fetch_url", url=url)).output == text


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/wiki/Zürich?q=ä b", "/wiki/Z%C3%BCrich?q=%C3%A4%20b"),
        ("/a%20b/c+d?x=1&y=%26#part", "/a%20b/c+d?x=1&y=%26"),
        ("?only=query", "/?only=query"),
    ],
)
async def test_an_address_that_is_not_ascii_asks_for_the_right_page(shop: Workshop, path: str, sent: str) -> None:
    """S10: letters are not left out, which would be another page."""
    asked: list[str] = []
    async with served(lambda each: asked.append(each) or ok(b"x", "text/plain")) as url:  # type: ignore[func-returns-value]
        await shop.text("fetch_url", url=f"{url}{path}")
    assert asked == [sent]


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127.1", "0177.0.0.1", "2130706433", "0x7f000001", "[::ffff:7f00:1]"])
async def test_every_spelling_of_this_machine_is_private(host: str) -> None:
    """P1."""
    assert (await resolve(f"http://{host}:1/")).private
    assert _split("http://müller.example/").hostname == "xn--mller-kva.example"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ok(zlib.compress(b"<p>small"), more="Content-Encoding: deflate\r\n"), "small"),
        (ok(b"\x1b\x03)\x00", more="Content-Encoding: br\r\n"), "compressed it as 'br', which it was not asked for"),
        (ok(bytes(range(256)), "text/plain"), "says that it is 'text/plain', but it is binary, and not shown"),
        (b"HTTP/1.1 200 OK\r\n\r\n\0\1\2", "says that it is 'nothing', but it is binary"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nonly this", "It broke off before its end."),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nthis\r\n9\r\nbro", "It broke off before its end."),
        (b"HTTP/1.1 302 No\r\nLocation: http://[::ffff:127.0.0.1]:1/x\r\n\r\n", "redirects to another host"),
    ],
)
async def test_what_a_server_should_not_send_is_told(shop: Workshop, answer: bytes, told: str) -> None:
    """S10: no garbage, no page that ends early without a word, no redirect into this machine."""
    async with served(lambda _: answer) as url:
        ready = await shop.prepare("fetch_url", url=url)
        try:
            assert told in text_of(await shop.act(ready))
        except ToolFailed as error:
            assert told in error.what


@given(st.text(alphabet=st.sampled_from("<>/ap![]-h1 =\"'&;x\n"), max_size=200))
def test_any_page_becomes_text(source: str) -> None:
    assert isinstance(page_text(source, "http://x/"), str)


@pytest.mark.parametrize("piece", ["<!--", "<![", "<a ", "<?", "</", "<!x", "<", "&", "<a x='"])
def test_a_hostile_page_does_not_hold_up_the_task(piece: str) -> None:
    """The time grows with the length, and not with its square."""
    started = time.process_time()
    page_text(f"<p>News</p>{piece * 100_000}", "http://x/")
    assert time.process_time() - started < 5
    assert page_text("<![if x]><p>One</p><![foo[ two <!-- three") == "One"


async def test_headers_that_never_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that reads ends in time, too: a program waits for its threads when it exits."""
    monkeypatch.setattr("tarmac.tools.fetch_url.PATIENCE", 1.0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not reader.at_eof():
            writer.write(b"a")
            try:
                await asyncio.wait_for(reader.read(1 << 16), 0.1)
            except TimeoutError:
                continue
        writer.close()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        target = await resolve(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        reading = asyncio.create_task(asyncio.to_thread(_fetch, target))
        with pytest.raises(ToolFailed, match="in time"):
            await reading
        await left.wait()


async def test_a_page_that_never_ends_is_shown_as_far_as_it_came(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S10: a stream of events, for one."""
    monkeypatch.setattr("tarmac.tools.fetch_url.PATIENCE", 1.0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
        while not reader.at_eof():
            writer.write(b":\n")
            try:
                await asyncio.wait_for(reader.read(1 << 16), 0.1)
            except TimeoutError:
                continue
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        told = await shop.text("fetch_url", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    assert "data: one" in told and "It was cut after 1 s." in told
