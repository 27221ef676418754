"""The tool generate_image: a picture that a model makes, as a file of the workspace."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from tarmac.errors import TarmacError, ToolFailed
from tarmac.models.messages import Image, Part, Text
from tarmac.policy import WriteFile
from tarmac.tools import file_access
from tarmac.tools.file_access import digest
from tarmac.tools.file_change import open_original
from tarmac.tools.tool import PATH_SPELLINGS, Bench, Done, Go, Group, Intent, Need, Ready, Seen, Tool, Want

SUFFIXES: Final = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateImage(Tool):
    name: ClassVar[str] = "generate_image"
    group: ClassVar[Group] = "edit"
    needs: ClassVar[Need | None] = "image model"
    description: ClassVar[str] = "Have a picture made from a description, and write it to a file."
    spellings: ClassVar[Mapping[str, str]] = PATH_SPELLINGS

    prompt: Annotated[str, Meta(min_length=1, description="What is to be seen, in detail.")]
    path: Annotated[str, Meta(min_length=1, description="The file, such as `docs/logo.png`.")]

    async def prepare(self, bench: Bench) -> Ready:
        model = bench.image_model
        if model is None:
            raise ToolFailed("No model here makes pictures.")
        original = await open_original(bench, self.path, must_exist=False)
        place = original.place

        async def act(_: Go) -> Done:
            try:
                made = await model.generate(self.prompt)
                if place.path.suffix.lower().replace(".jpeg", ".jpg") != SUFFIXES[made.media_type]:
                    raise ToolFailed(f"The picture is {made.media_type}: give it a path with that suffix.")
                await file_access.looking(bench, file_access.unmoved, place)
                new = original.data is None
                await asyncio.to_thread(bench.files.system.save, place.path, made.data, expected=original.data, new=new)
            except ToolFailed:
                raise
            except TarmacError as error:
                raise ToolFailed(error.what, hint=error.hint) from None
            seen = Seen(path=place.path, digest=digest(made.data), how="edited")
            parts: list[Part] = [Text(f"The picture is in {place.name} ({len(made.data):,} bytes).")]
            if bench.sees and len(made.data) <= bench.settings.largest_image:
                parts.append(Image(bench.store(made.data, made.media_type)))
            return Done(content=tuple(parts), seen=(seen,), details={"picture": {"path": str(place.path)}})

        want = Want(
            action=WriteFile(place.full, new=original.data is None, leads_to=place.path),
            before=original.data,
            outside=not place.look.inside,
            protected=place.look.protected,
        )
        before = digest(original.data)
        return Ready(
            title=f"Making the picture {place.name}",
            done=f"Made the picture {place.name}",
            wants=(want,),
            intents=(Intent(path=place.path, before=before, after=""),),  # nobody knows yet what it will be
            act=act,
        )
