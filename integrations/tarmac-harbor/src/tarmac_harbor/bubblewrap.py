"""A Harbor environment without a container runtime: bubblewrap around this machine's own programs.

The root is made of this machine's folders, read-only; /app, /tmp, /tests and /logs are its own, and so are its
processes. The network is this machine's. It isolates less than a container does: use it to try agents out, not to
run what you don't trust. Images are not built: `environment/setup.sh` of the task, if there is one, runs in /app.
"""

import asyncio
import json
import os
import shlex
import shutil
from pathlib import Path
from typing import override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

OWN = ("app", "logs", "solution", "tests", "tmp", "harbor", "var", "run", "proc", "dev", "sys")
HOME = "/tmp/home"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Bubblewrap(BaseEnvironment):
    """Processes in namespaces of their own."""

    _process: asyncio.subprocess.Process | None = None
    _inside = 0  # the pid of its first process, as this machine sees it

    @staticmethod
    @override
    def type() -> str:
        return "bubblewrap"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(mounted=True)

    @override
    def _validate_definition(self) -> None:
        missing = [name for name in ("bwrap", "nsenter") if shutil.which(name) is None]
        if missing:
            raise FileNotFoundError(f"{' and '.join(missing)} must be installed (bubblewrap, util-linux)")

    @override
    async def start(self, force_build: bool) -> None:
        words = ["bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
        for each in sorted(Path("/").iterdir()):
            if each.name in OWN:
                continue
            words += (
                ["--symlink", str(each.readlink()), str(each)]
                if each.is_symlink()
                else ["--ro-bind-try", str(each), str(each)]
            )
        for name in ("/app", "/logs", "/solution", "/tests", "/tmp", "/harbor", "/run", HOME):
            words += ["--dir", name]
        words += ["--ro-bind", "/var", "/var", "--tmpfs", "/var/tmp"]
        for mount in self._mounts:
            words += ["--bind", str(mount["source"]), str(mount["target"])]
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words,
                *("--info-fd", str(writing), "sh", "-c", "echo; exec sleep infinity"),
                pass_fds=[writing],
                stdout=asyncio.subprocess.PIPE,
            )
        finally:
            os.close(writing)
        with os.fdopen(reading) as told:
            self._inside = json.load(told)["child-pid"]
        assert self._process.stdout is not None
        await self._process.stdout.readline()  # the pid is told before its root is in place
        setup = self.environment_dir / "setup.sh"
        if setup.exists():
            await self.upload_file(setup, "/tmp/setup.sh")
            done = await self.exec("bash -e /tmp/setup.sh && rm /tmp/setup.sh")
            if done.return_code != 0:
                raise RuntimeError(f"setup.sh failed: {done.stderr}")

    @override
    async def stop(self, delete: bool) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()  # its namespace ends with it, and all that runs there
            await self._process.wait()

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        given = {"PATH": PATH, "HOME": HOME, "LANG": "C.UTF-8", **self._persistent_env, **(env or {})}
        enter = ["nsenter", "--target", str(self._inside), "--mount", "--pid", "--ipc"]
        if os.geteuid() != 0:
            enter += ["--user", "--preserve-credentials"]
        script = f"cd {shlex.quote(cwd or '/app')} && {{ {command}\n}}"
        process = await asyncio.create_subprocess_exec(
            *enter,
            "bash",
            "-c",
            script,
            env=given,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
        return ExecResult(
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
            return_code=process.returncode or 0,
        )

    def _path(self, path: str) -> Path:
        return Path(f"/proc/{self._inside}/root/{path.lstrip('/')}")

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source_path, target)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._path(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        source = self._path(source_path)
        if not (Path(target_path).exists() and source.samefile(target_path)):  # a mounted folder has it already
            shutil.copyfile(source, target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        source = self._path(source_dir)
        if not (Path(target_dir).exists() and source.samefile(target_dir)):
            shutil.copytree(source, target_dir, dirs_exist_ok=True)
