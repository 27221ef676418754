"""The corpus: commands with the verdict a careful person would give, and the project they are judged in.

corpus/*.toml → Entry …

It was written from the requirements and the programs' manuals, not from the rules, so that it can find them wrong.
Files named `heldout_…` are not read by whoever writes the rules: they measure how far the rules generalise.
A list of decisions or risks means that each of them is right; `@WORKSPACE@` in a line is the workspace's path.
"""

import shlex
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).with_name("corpus")
DECISIONS = frozenset({"allow", "ask", "deny"})
RISKS = frozenset({"low", "medium", "high", "critical"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One command and what a verdict on it may be."""

    file: str
    line: str
    decisions: frozenset[str]
    risks: frozenset[str]
    why: str
    kind: str  # everyday or hostile
    shell: str = "bash"
    cwd: str = "."

    @property
    def held_out(self) -> bool:
        """The policy's author has not seen it."""
        return self.file.startswith("heldout_")

    @property
    def topic(self) -> str:
        """Its file's name, whether held out or not."""
        return self.file.removeprefix("heldout_")

    def line_in(self, workspace: Path) -> str:
        """The line as it would be typed in that workspace."""
        return self.line.replace("@WORKSPACE@", shlex.quote(str(workspace)))


@cache
def entries() -> tuple[Entry, ...]:
    """Every command of every file."""
    return tuple(
        _entry(path.stem, raw)
        for path in sorted(CORPUS.glob("*.toml"))
        for raw in tomllib.loads(path.read_text(encoding="utf-8"))["command"]
    )


def _entry(file: str, raw: dict[str, Any]) -> Entry:
    return Entry(
        file=file,
        line=raw["line"],
        decisions=_either(raw["decision"]),
        risks=_either(raw["risk"]),
        why=raw["why"],
        **{name: raw[name] for name in raw.keys() - {"line", "decision", "risk", "why"}},
    )


def _either(value: str | Iterable[str]) -> frozenset[str]:
    return frozenset({value} if isinstance(value, str) else value)


FILES = {
    "README.md": "# A small shop\n\nTODO: describe it\n",
    "Makefile": "all:\n\ttrue\n",
    "Dockerfile": "FROM scratch\n",
    "docker-compose.yml": "services: {}\n",
    "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"test": "true"}, "dependencies": {}}\n',
    "pyproject.toml": "[project]\nname = 'shop'\n",
    "requirements.txt": "flask\n",
    "tsconfig.json": '{"compilerOptions": {"target": "es2022"}}\n',
    ".gitignore": "node_modules\n",
    ".env": "API_KEY=not-a-real-one\n",
    ".tarmacignore": "private/\n",
    ".github/workflows/ci.yml": "on: push\n",
    "src/app.py": "def main():\n    return 0\n",
    "src/utils.py": "import os\n",
    "src/index.ts": "export {}\n",
    "src/api/routes.py": "routes = []\n",
    "tests/test_app.py": "def test_it():\n    pass\n",
    "docs/guide.md": "## Guide\n",
    "docs/with space.md": "## Space\n",
    "data/a.txt": "1\n",
    "data/b.txt": "2\n",
    "data/list.csv": "a:b\n",
    "data/logo.png": "not a picture\n",
    "data/numbers.txt": "3\n",
    "data/sales.csv": "a,b,3\n",
    "data/table.tsv": "a\t1\n",
    "data/users.json": '[{"name": "bob", "age": 40}]\n',
    "logs/app.log": "ERROR no\n",
    "scripts/build.sh": "true\n",
    "private/plan.md": "nobody's business\n",
    "deploy/id_rsa": "not a real key\n",
    "node_modules/left-pad/index.js": "module.exports = 0\n",
}


def make_project(folder: Path) -> Path:
    """A small realistic workspace, some way below `folder`: a git repository with links that lead out of it."""
    root = folder / "alice" / "projects" / "shop"  # `..` and `../..` are still no root of a machine
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for link in ("link-out", "src/link-out"):
        (root / link).symlink_to("/etc")
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True, timeout=20)
    subprocess.run(["git", "add", "."], cwd=root, check=True, timeout=20)  # all but node_modules is tracked
    return root
