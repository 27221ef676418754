"""fs/read_text_file and fs/write_text_file: files for the agent, as the policy lets it have them."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tarmac.acp.host.parameters import Object, optional_number, wanted_path, wanted_text
from tarmac.acp.host.permission import HostRecorder, Permission
from tarmac.acp.peer import Refused
from tarmac.acp.wire import NOT_FOUND
from tarmac.errors import ToolDenied
from tarmac.events import CallId
from tarmac.policy.actions import ReadFile
from tarmac.tasks.state import TaskState
from tarmac.tools.edit.save import read_bytes, save_file
from tarmac.tools.file_access import check_workspace
from tarmac.tools.tool import Done, Go, Ready, Want


@dataclass(slots=True)
class Files:
    """The files of one hosted agent."""

    state: TaskState
    permission: Permission

    async def read(self, params: Object) -> Object:
        """Its text, or `limit` lines of it from `line` (from 1) on."""
        path = wanted_path(params, "path")
        first, most = optional_number(params, "line", least=0), optional_number(params, "limit", least=0)
        data: bytes | None = None

        async def act(_: Go) -> Done:
            nonlocal data
            data = await asyncio.to_thread(read_bytes, self._behind(path))
            return Done(content=())

        await self._run("fs/read_text_file", f"Reading {path}", Want(action=ReadFile(path)), act)
        if data is None:
            raise Refused(NOT_FOUND, f"there is no file {path}")
        text = data.decode("utf-8", "replace")
        if first is not None or most is not None:
            lines = text.splitlines(keepends=True)
            start = max(first or 1, 1) - 1
            text = "".join(lines[start : None if most is None else start + most])
        return {"content": text}

    async def write(self, params: Object) -> Object:
        """All of it or nothing; what was approved is what is written, over what was seen."""
        path, content = wanted_path(params, "path"), wanted_text_with_nul(params).encode("utf-8", "replace")
        target = self._behind(path)
        before = await asyncio.to_thread(read_bytes, target)
        want = self.permission.file_want(path, before, content)

        async def act(_: Go) -> Done:
            check_workspace(self.state.context.workspace)
            if self._behind(path) != target:
                raise ToolDenied(f"{path} has come to mean another file meanwhile")
            await asyncio.to_thread(save_file, target, content, expected=before, new=before is None)
            return Done(content=())

        await self._run("fs/write_text_file", f"Writing {path}", want, act)
        return {}

    async def _run(self, name: str, title: str, want: Want, act: Callable[[Go], Awaitable[Done]]) -> None:
        call = CallId(f"fs-{secrets.token_hex(4)}")
        ready = Ready(title=title, done=title, act=act, wants=(want,))
        await self.permission.run(call, name, ready, HostRecorder(self.state))

    def _behind(self, path: Path) -> Path:
        here = self.state.context.workspace
        return self.state.context.files.look(path, cwd=here, workspace=here).path


def wanted_text_with_nul(params: Object) -> str:
    """Of a file, any text."""
    value = params.get("content")
    return value if isinstance(value, str) else wanted_text(params, "content")
