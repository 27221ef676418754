"""A secret that a command asks for is typed on a page of this machine. The client never sees it."""

import asyncio
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from tests.mcp.peers import Person, connected, ran, refused

pytestmark = pytest.mark.shell
ASKS = "read -rsp 'Password: ' x; echo; echo \"it has ${#x} characters\""


def fetched(url: str, data: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
    body = urllib.parse.urlencode(data).encode() if data is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Typist(Person):
    """Opens the page, and types there."""

    def __init__(self, *typed: str, **more: Any) -> None:
        super().__init__(**more)
        self.typed = list(typed)
        self.opened: list[str] = []
        self.pages: list[tuple[int, str]] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        if not isinstance(params, types.ElicitRequestURLParams):
            return await super().__call__(context, params)
        self.opened.append(params.url)
        self.questions.append(params.message)
        if not self.typed:
            return types.ElicitResult(action="decline")
        self.pages.append(await asyncio.to_thread(fetched, params.url))
        self.pages.append(await asyncio.to_thread(fetched, params.url, {"secret": self.typed.pop(0)}))
        return types.ElicitResult(action="accept")


async def test_a_secret_is_typed_on_a_page_and_the_client_never_has_it(tmp_path: Path) -> None:
    """A3, T19: the page shows the command and its prompt; what was typed is in no result and in no log."""
    person = Typist("hunter2-tarmac")
    async with connected(tmp_path, "legacy", person) as client:
        result = await ran(client, ASKS)
        gone = await asyncio.to_thread(fetched, person.opened[0])
    assert "it has 14 characters" in result["output"] and result["exit_code"] == 0
    (_, form), (status, thanks) = person.pages
    assert "Password:" in form and "read -rsp" in form and 'type="password"' in form
    assert (status, "It was typed" in thanks, gone[0]) == (200, True, 404)
    assert person.opened[0].startswith("http://127.0.0.1:") and "hunter2" not in str(result)
    logs = [path for path in (Path.home()).rglob("*") if path.is_file() and b"hunter2-tarmac" in path.read_bytes()]
    assert logs == []


async def test_one_that_asks_again_is_asked_about_again(tmp_path: Path) -> None:
    """A3, T19: a new address for each."""
    person = Typist("wrong", "right")
    twice = "for i in 1 2; do read -rsp 'Password: ' x; [ $x = right ] && echo in && break; done"
    async with connected(tmp_path, "legacy", person) as client:
        result = await ran(client, twice)
    assert "in" in result["output"] and len(set(person.opened)) == 2


async def test_who_declines_is_not_waited_for_and_the_model_is_told(tmp_path: Path) -> None:
    """A3: the texts at a secret's prompt say the same."""
    person = Typist()
    async with connected(tmp_path, "legacy", person) as client:
        result = await ran(client, ASKS, timeout=30)
        answered = await refused(client, "send_to_terminal", id=result["terminal_id"], text="guess")
    assert (result["awaiting"], len(person.opened)) == ("secret", 1)
    same = "Only a person may type it, and you can't. End the command (interrupt_terminal)"
    assert same in result["next"] and same in answered


async def test_the_page_is_for_people_alone(tmp_path: Path) -> None:
    """A3, P6: not for processes of ours, other names, other pages' forms, or two lines; and nothing was typed."""
    found: list[int] = []

    class Prober(Typist):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            if isinstance(params, types.ElicitRequestURLParams) and not found:
                await asyncio.to_thread(self.probe, params.url)
            return await super().__call__(context, params)

        def probe(self, url: str) -> None:
            fetch = f"import urllib.request as r; r.urlopen({url!r})"
            child = subprocess.run([sys.executable, "-c", fetch], capture_output=True, text=True, check=False)
            found.append(403 if "403" in child.stderr else 0)
            found.append(fetched(url, Host="evil.example")[0])
            found.append(fetched(url, {"secret": "x"}, Origin="http://evil.example")[0])
            found.append(fetched(url, {"secret": "a\nb"})[0])
            found.append(fetched(url + "x")[0])

    person = Prober("four")
    async with connected(tmp_path, "legacy", person) as client:
        result = await ran(client, ASKS)
    assert found == [403, 403, 403, 400, 404] and "it has 4 characters" in result["output"]
