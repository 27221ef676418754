"""generate_image: against a server that speaks the language of OpenAI's images endpoint."""

import base64
import json
from dataclasses import replace

import pytest
from tests.models.server import Reply, refusal, serving
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import ToolFailed
from tarmac.models.image_model import ImageModel
from tarmac.models.messages import Image
from tarmac.models.provider import ModelSettings
from tarmac.policy import WriteFile

PNG = b"\x89PNG\r\n\x1a\n and the rest"


def _answer(data: bytes) -> Reply:
    body = json.dumps({"created": 1, "data": [{"b64_json": base64.b64encode(data).decode()}]})
    return Reply([body.encode()], content_type="application/json")


def _model(url: str, name: str = "gpt-image-1") -> ImageModel:
    return ImageModel(f"openai/{name}", ModelSettings(keys={"openai": "sk-12345678"}, base_urls={"openai": url}))


async def test_a_picture_is_asked_for_and_written(shop: Workshop) -> None:
    """S10: the file is judged as an edit, and a model that sees gets the picture."""
    async with serving(_answer(PNG)) as server:
        shop.bench = replace(shop.bench, image_model=_model(server.url), sees=True)
        ready = await shop.prepare("generate_image", prompt="a red house", file_path="art/house.png")
        assert [each.action for each in ready.wants] == [WriteFile(shop.folder / "art/house.png", new=True)]
        done = await shop.call("generate_image", prompt="a red house", path="art/house.png")
    assert (shop.folder / "art/house.png").read_bytes() == PNG
    assert text_of(done).startswith("The picture is in art/house.png")
    assert [shop.blobs[part.blob.sha256] for part in done.content if isinstance(part, Image)] == [PNG]
    [request] = server.requests
    assert (request.path, request.body) == (
        "/v1/images/generations",
        {"model": "gpt-image-1", "prompt": "a red house", "n": 1},
    )


@pytest.mark.parametrize(
    ("reply", "path", "why"),
    [
        (refusal(400, {"message": "That is not allowed."}), "a.png", "HTTP 400.: That is not allowed"),
        (_answer(b"<html>"), "a.png", "answered without a picture"),
        (_answer(PNG), "a.txt", "'a.txt' is not the name of a picture. It must end in .png"),
    ],
)
async def test_what_is_no_picture_is_not_written(shop: Workshop, reply: Reply, path: str, why: str) -> None:
    """S10: the provider's words reach the model; nothing is written."""
    async with serving(reply) as server:
        shop.bench = replace(shop.bench, image_model=_model(server.url))
        with pytest.raises(ToolFailed, match=why):
            await shop.call("generate_image", prompt="x", path=path)
    assert not (shop.folder / path).exists()


async def test_a_picture_of_another_format_than_its_name_is_kept(shop: Workshop) -> None:
    """S10: it was paid for."""
    async with serving(_answer(PNG)) as server:
        shop.bench = replace(shop.bench, image_model=_model(server.url))
        told = await shop.text("generate_image", prompt="x", path="a.jpg")
    assert (shop.folder / "a.jpg").read_bytes() == PNG
    assert "It is image/png, whatever its name says: rename it to *.png." in told
