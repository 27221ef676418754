"""Whatever tree of files and links a workspace is, nothing from outside of it is told to a model; nothing raises."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.prompts.instructions import LONGEST, MOST, read_instructions, read_replacement
from tarmac.prompts.modes import load_modes

SECRET = "the secret of another"
NAMES = [
    *("AGENTS.md", "CLAUDE.md", ".roomodes", ".tarmac", ".tarmac/rules", ".tarmac/rules/a.md", ".tarmac/rules/b"),
    *(".tarmac/modes", ".tarmac/modes/x.md", ".tarmac/system-prompt-code.md", ".roo", ".roo/rules", ".roo/rules/c.md"),
    *(".clinerules", ".roorules", ".tarmac/rules-code", ".tarmac/rules-code/d.md", "sub", "sub/e.md", ".git", ".env"),
]
TARGETS = [
    *(
        "{out}/secret.md",
        "{out}",
        "../outside/secret.md",
        "../../outside",
        "../../../outside/secret.md",
        "..",
        ".",
        "/",
    ),
    *(
        "AGENTS.md",
        "sub",
        "sub/e.md",
        ".env",
        "a.md",
        "{out}/loop",
        "../workspace/sub",
        "x" * 300,
        "/dev/zero",
        "/dev/stdin",
    ),
]
TEXTS = [
    "inside",
    "+++\nrole = 'inside'\n+++\n",
    "customModes:\n- slug: y\n  roleDefinition: inside\n",
    "\0",
    "+++\n",
    "",
]

steps = st.lists(
    st.tuples(st.just("file"), st.sampled_from(NAMES), st.sampled_from(TEXTS))
    | st.tuples(st.just("folder"), st.sampled_from(NAMES), st.just(""))
    | st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(TARGETS))
    | st.tuples(st.just("pipe"), st.sampled_from(NAMES), st.just("")),
    max_size=14,
)


def build(root: Path, made: list[tuple[str, str, str]]) -> Path:
    work, out = root / "workspace", root / "outside"
    work.mkdir()
    out.mkdir()
    (out / "secret.md").write_text(f"+++\nrole = '{SECRET}'\n+++\n{SECRET}\n")
    (out / "loop").symlink_to(".")
    for kind, name, what in made:
        path = work / name
        # made with the tree's own hands only: a folder that is a link is left alone
        if any(os.path.islink(each) for each in [path, *path.parents]) or os.path.lexists(path):  # noqa: PTH114
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "file":
                    path.write_text(what)
                case "folder":
                    path.mkdir()
                case "link":
                    path.symlink_to(what.format(out=out))
                case "pipe":
                    os.mkfifo(path)
        except OSError:  # a file where a folder must be
            continue
    return work


@given(steps)
@settings(max_examples=40, deadline=None)
def test_nothing_from_outside_is_read_and_nothing_raises(made: list[tuple[str, str, str]]) -> None:
    """S7, P8."""
    root = Path(tempfile.mkdtemp())
    try:
        work = build(root, made)
        instructions = read_instructions(work, root / "user", "code")
        modes = load_modes(work, root / "user")
        replacement, trouble = read_replacement(work, root / "user", "code")
        told = [each.text for each in instructions.files] + [f"{mode.role} {mode.instructions}" for mode in modes.all]
        told += [replacement.text] if replacement else []
        assert not any(SECRET in each for each in (*told, *modes.trouble, *instructions.trouble, *trouble))
        assert all(len(each.text) <= LONGEST for each in instructions.files)
        assert sum(len(each.text) for each in instructions.files) <= MOST
        assert len(modes.all) >= 5
    finally:
        shutil.rmtree(root)
