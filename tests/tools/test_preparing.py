"""Whatever a model asks for, looking touches nothing, and what is wrong is told in words."""

import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.workshop import Workshop

from tarmac.errors import BadArguments, ToolFailed

NAMES = [
    "a.py",
    "sub",
    "sub/b.txt",
    "link",
    "loop",
    "gone",
    ".git/config",
    "../x",
    "/etc/passwd",
    "~",
    "~nobody/x",
    "pipe",
]
paths = st.sampled_from(NAMES) | st.text(max_size=20) | st.text("./~a\0\n", max_size=8)
words = st.sampled_from(["x = 1", "x = 2", "", "(", "[a", "\n", "no", "$1"]) | st.text(max_size=20)
lines = st.none() | st.integers(-2, 50)
blocks = st.builds(lambda old, new: f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE", words, words)
patches = st.builds(
    lambda verb, path, body: f"*** Begin Patch\n*** {verb} File: {path}\n{body}\n*** End Patch",
    st.sampled_from(["Add", "Update", "Delete"]),
    paths,
    st.lists(st.builds(lambda mark, text: f"{mark}{text}", st.sampled_from("+- @"), words), max_size=4).map("\n".join),
)
calls = st.one_of(
    st.tuples(st.just("read_file"), st.fixed_dictionaries({"files": st.lists(paths, min_size=1, max_size=6)})),
    st.tuples(st.just("write_to_file"), st.fixed_dictionaries({"path": paths, "content": words})),
    st.tuples(st.just("apply_diff"), st.fixed_dictionaries({"path": paths, "diff": blocks | words})),
    st.tuples(st.just("insert_content"), st.fixed_dictionaries({"path": paths, "line": lines, "content": words})),
    st.tuples(
        st.just("search_and_replace"),
        st.fixed_dictionaries({"path": paths, "search": words, "replace": words, "use_regex": st.booleans()}),
    ),
    st.tuples(st.just("apply_patch"), st.fixed_dictionaries({"patch": patches | words})),
    st.tuples(st.just("list_files"), st.fixed_dictionaries({"path": paths, "recursive": st.booleans()})),
    st.tuples(st.just("list_code_definition_names"), st.fixed_dictionaries({"path": paths})),
    st.tuples(st.just("execute_command"), st.fixed_dictionaries({"command": words, "cwd": paths})),
)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in sorted(folder.rglob("*"))}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(calls)
async def test_looking_touches_nothing_and_raises_nothing_but_words(
    shop: Workshop, call: tuple[str, dict[str, object]]
) -> None:
    """S10: whatever is asked for."""
    if not (shop.folder / "a.py").exists():
        shop.file("a.py", "x = 1\n\ny = 2\n")
        shop.file("sub/b.txt", "text\n")
        (shop.folder / "link").symlink_to("a.py")
        (shop.folder / "loop").symlink_to("loop")
        os.mkfifo(shop.folder / "pipe")
    before = snapshot(shop.folder)
    try:
        ready = await shop.prepare(call[0], **call[1])
        assert ready.title
        assert "\n" not in ready.title
    except (BadArguments, ToolFailed) as error:
        assert error.what
    assert snapshot(shop.folder) == before
    assert shop.registry.listing() == []
