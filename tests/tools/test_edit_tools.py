"""write_to_file, apply_diff, insert_content, search_and_replace and apply_patch, as a model calls them."""

import hashlib
import os
import stat

import pytest
from tests.tools.workshop import Workshop, text_of

from tarmac.errors import BadArguments, ToolFailed
from tarmac.policy import WriteFile
from tarmac.tools.tool import Go

DIFF = "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


async def test_preparing_touches_nothing_and_says_what_would_become_of_the_file(shop: Workshop) -> None:
    """S10, S13: a rejection leaves the file as it was; the intent has the hash before and after."""
    path = shop.file("a.txt", "old\n")
    ready = await shop.prepare("write_to_file", path="a.txt", content="new\n")
    assert path.read_text() == "old\n"
    (want,) = ready.wants
    assert (want.action, want.before, want.content) == (WriteFile(path, new=False), b"old\n", b"new\n")
    (intent,) = ready.intents
    assert (intent.path, intent.before, intent.after) == (path, sha("old\n"), sha("new\n"))
    done = await shop.act(ready)
    assert path.read_text() == "new\n"
    assert [(each.path, each.digest, each.how) for each in done.seen] == [(path, sha("new\n"), "edited")]
    (file,) = done.details["files"]
    assert file["diff"] == "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n"
    assert "<path>a.txt</path>\n<operation>modified</operation>" in text_of(done)


async def test_a_new_file_is_made_with_its_folders(shop: Workshop) -> None:
    text = await shop.text("write_to_file", path="deep/er/a.py", content="```python\nx = 1\n```\n", line_count="1")
    assert (shop.folder / "deep/er/a.py").read_text() == "x = 1\n"
    assert "<operation>created</operation>" in text


async def test_content_with_a_part_left_out_is_refused(shop: Workshop) -> None:
    """S10: omission detected and pointed to apply_diff."""
    path = shop.file("a.py", "a = 1\n" * 30)
    said = await shop.failure("write_to_file", path="a.py", content="a = 2\n# rest of the code unchanged\n")
    assert "`# rest of the code unchanged` stands for lines that are left out" in said
    assert "apply_diff" in said
    assert "truncated" in await shop.failure("write_to_file", path="b.py", content="a = 2\n", line_count=100)
    assert path.read_text() == "a = 1\n" * 30


async def test_what_is_written_already_needs_no_leave(shop: Workshop) -> None:
    shop.file("a.txt", "same\n")
    ready = await shop.prepare("write_to_file", path="a.txt", content="same\n")
    assert ready.wants == ()
    assert "No changes needed" in text_of(await shop.act(ready))


async def test_line_endings_a_bom_and_the_mode_stay(shop: Workshop) -> None:
    """S10: an edit changes what it names and nothing else."""
    path = shop.file("run.sh", b"\xef\xbb\xbfone\r\ntwo")
    path.chmod(0o751)
    await shop.call("insert_content", path="run.sh", line=2, content="middle\n")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\nmiddle\r\ntwo"
    await shop.call("write_to_file", path="run.sh", content="one\nthree\n")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_file_that_somebody_else_changed_must_be_read_again(shop: Workshop) -> None:
    """S21: changed, removed or made since the task last saw it: the edit is refused, by every tool."""
    path = shop.file("a.txt", "one\n")
    await shop.call("read_file", path="a.txt")
    path.write_text("two\n")
    edits: list[tuple[str, dict[str, object]]] = [
        ("write_to_file", {"path": "a.txt", "content": "mine\n"}),
        ("apply_diff", {"path": "a.txt", "diff": DIFF.format(old="two", new="mine")}),
        ("insert_content", {"path": "a.txt", "line": 0, "content": "mine"}),
        ("search_and_replace", {"path": "a.txt", "search": "two", "replace": "mine"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n-two\n+mine\n*** End Patch"}),
    ]
    for name, arguments in edits:
        assert "'a.txt' was changed by somebody else since you last saw it" in await shop.failure(name, **arguments)
    await shop.call("read_file", path="a.txt")
    await shop.call("apply_diff", **edits[1][1])
    assert path.read_text() == "mine\n"
    await shop.call("insert_content", path="a.txt", line=0, content="and more")  # its own edit is no surprise
    path.unlink()
    assert "was removed by somebody else" in await shop.failure("write_to_file", path="a.txt", content="x")


async def test_a_file_that_changes_between_the_question_and_the_writing_is_left_alone(shop: Workshop) -> None:
    """S21: what is written over is what the person saw."""
    path = shop.file("a.txt", "one\n")
    ready = await shop.prepare("write_to_file", path="a.txt", content="mine\n")
    path.write_text("theirs\n")
    with pytest.raises(ToolFailed, match="was changed by somebody else"):
        await shop.act(ready)
    assert path.read_text() == "theirs\n"
    ready = await shop.prepare("write_to_file", path="new.txt", content="mine\n")
    shop.file("new.txt", "theirs\n")
    with pytest.raises(ToolFailed, match="was made by somebody else"):
        await shop.act(ready)


async def test_a_link_that_moves_between_the_question_and_the_writing_is_not_followed(shop: Workshop) -> None:
    """P8: what is written is the file that was judged."""
    shop.file("a.txt", "a")
    other = shop.file("b.txt", "b")
    link = shop.folder / "link"
    link.symlink_to("a.txt")
    ready = await shop.prepare("write_to_file", path="link", content="mine")
    link.unlink()
    link.symlink_to("b.txt")
    with pytest.raises(ToolFailed, match="leads to another file"):
        await shop.act(ready)
    assert other.read_text() == "b"


async def test_a_hidden_file_is_not_written(shop: Workshop) -> None:
    """P8: .tarmacignore; nothing of it is looked at."""
    shop.file(".tarmacignore", "secret.txt\n")
    shop.file("secret.txt", "password\n")
    said = await shop.failure("apply_diff", path="secret.txt", diff=DIFF.format(old="passwort", new="x"))
    assert "may not be written" in said
    assert "password" not in said


async def test_a_failed_edit_quotes_nothing_that_would_be_asked_about(shop: Workshop) -> None:
    """P8: a credential's lines don't come out through the words of a failed edit."""
    shop.file("id_rsa", "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----\n")
    wrong = DIFF.format(old="-----BEGIN KEY-----\nabcdefghijklmnox\n-----END KEX-----", new="x")
    said = await shop.failure("apply_diff", path="id_rsa", diff=wrong)
    assert "block 1: not found (its lines are not shown: read the file first)" in said
    assert "abcdefghijklmnop" not in said
    patch = "*** Begin Patch\n*** Update File: id_rsa\n-abcdefghijklmnox\n+x\n*** End Patch"
    said = await shop.failure("apply_patch", patch=patch)
    assert "abcdefghijklmnop" not in said
    await shop.call("read_file", path="id_rsa")
    assert "abcdefghijklmnop" in await shop.failure("apply_diff", path="id_rsa", diff=wrong)


async def test_protected_files_and_those_outside_are_said_to_be(shop: Workshop) -> None:
    """P6, P8: what a request for approval shows."""
    (protected,) = (await shop.prepare("write_to_file", path=".git/config", content="x")).wants
    assert protected.protected
    (outside,) = (await shop.prepare("write_to_file", path="../other.txt", content="x")).wants
    assert outside.outside
    assert not protected.outside


async def test_a_diff_is_applied_and_what_did_not_fit_is_told(shop: Workshop) -> None:
    """S10: blocks that fit are applied, the others are explained; a loose match shows what became of it."""
    path = shop.file("a.py", "def f():\n\treturn 1\n\nx = 1\n")
    diff = DIFF.format(old="def f():\n    return 1", new="def f():\n    return 2")
    done = await shop.call("apply_diff", path="a.py", diff=diff + "\n" + DIFF.format(old="y = 1", new="y = 2"))
    text = text_of(done)
    assert path.read_text() == "def f():\n\treturn 2\n\nx = 1\n"
    assert "Block 1 was found at lines 1-2 (with other white space or punctuation)." in text
    assert "+\treturn 2" in text
    assert "not all parts could be applied" in text
    assert "block 2: not found" in text
    said = await shop.failure("apply_diff", path="a.py", diff=DIFF.format(old="nothing like it", new="x"))
    assert said.startswith("Nothing was changed in a.py.")


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py", "diff": DIFF.format(old="x = 1", new="x = 2"), "start_line": "3"},
        {
            "args": "<file><path>a.py</path><diff><content>\n"
            + DIFF.format(old="x = 1", new="x = 2")
            + "\n</content><start_line>3</start_line></diff></file>"
        },
        {
            "args": {
                "file": {"path": "a.py", "diff": {"content": DIFF.format(old="x = 1", new="x = 2"), "start_line": 3}}
            }
        },
    ],
)
async def test_a_diff_comes_in_every_shape_models_know(shop: Workshop, arguments: dict[str, object]) -> None:
    path = shop.file("a.py", "x = 1\n#\nx = 1\n")
    await shop.call("apply_diff", **arguments)
    assert path.read_text() == "x = 1\n#\nx = 2\n"


async def test_several_files_in_one_diff_are_refused(shop: Workshop) -> None:
    with pytest.raises(BadArguments, match="one <file>, not 2"):
        await shop.prepare("apply_diff", args="<file></file><file></file>")


async def test_editing_what_is_not_there_is_told(shop: Workshop) -> None:
    said = await shop.failure("apply_diff", path="gone.py", diff=DIFF.format(old="a", new="b"))
    assert said.startswith("File does not exist at path: gone.py.")
    shop.file("data.bin", b"\0\1")
    assert "binary" in await shop.failure("insert_content", path="data.bin", line=1, content="x")


async def test_every_occurrence_is_replaced(shop: Workshop) -> None:
    path = shop.file("a.py", "a1 a2\nb1\na3\n")
    await shop.call(
        "search_and_replace",
        path="a.py",
        search=r"A(\d)",
        replace="<$1>",
        use_regex="true",
        ignore_case=True,
        end_line="2",
    )
    assert path.read_text() == "<1> <2>\nb1\na3\n"
    await shop.call("search_and_replace", file_path="a.py", old_string="b1", new_string="b2", replace_all=True)
    assert path.read_text() == "<1> <2>\nb2\na3\n"


PATCH = """*** Begin Patch
*** Update File: run.sh
*** Move to: bin/run
-echo one
+echo two
*** Add File: new.txt
+hello
*** Delete File: old.txt
*** End Patch"""


async def test_a_patch_changes_adds_moves_and_deletes(shop: Workshop) -> None:
    """S10: apply_patch; a moved file keeps its line endings and its mode."""
    shop.file("run.sh", b"#!/bin/sh\r\necho one\r\n").chmod(0o755)
    shop.file("old.txt", "old")
    ready = await shop.prepare("apply_patch", patch=PATCH)
    assert len(ready.wants) == len(ready.intents) == 4
    assert ready.title == "Patching run.sh (deleted), bin/run (new), new.txt (new) and 1 more"
    done = await shop.act(ready)
    assert sorted(str(each.relative_to(shop.folder)) for each in shop.folder.rglob("*") if each.is_file()) == [
        "bin/run",
        "new.txt",
    ]
    assert (shop.folder / "bin/run").read_bytes() == b"#!/bin/sh\r\necho two\r\n"
    assert os.access(shop.folder / "bin/run", os.X_OK)
    assert [each["operation"] for each in done.details["files"]].count("deleted") == 2
    assert {each.path.name: each.digest is None for each in done.seen} == {
        "run.sh": True,
        "run": False,
        "new.txt": False,
        "old.txt": True,
    }


async def test_a_patch_that_can_not_be_written_whole_is_put_back(shop: Workshop) -> None:
    """S10: all of it or nothing, also when the disk says no halfway."""
    shop.file("run.sh", "echo one\n")
    shop.file("old.txt", "old")
    ready = await shop.prepare("apply_patch", patch=PATCH)
    shop.file("old.txt", "changed meanwhile")  # the last of the four
    with pytest.raises(ToolFailed, match="Nothing was changed"):
        await shop.act(ready)
    assert (shop.folder / "run.sh").read_text() == "echo one\n"
    assert not (shop.folder / "bin/run").exists()
    assert not (shop.folder / "new.txt").exists()
    assert (shop.folder / "old.txt").read_text() == "changed meanwhile"


async def test_of_a_patch_the_files_that_a_person_allowed_are_changed(shop: Workshop) -> None:
    """S13, U8: a file that is renamed is allowed whole or not at all, else its content would be lost."""
    shop.file("run.sh", "echo one\n")
    shop.file("old.txt", "old")
    ready = await shop.prepare("apply_patch", patch=PATCH)
    paths = [each.path.name for each in ready.intents]
    result = await shop.act(ready, go=Go(approved=True, refused=frozenset([paths.index("run")])))
    assert (shop.folder / "run.sh").read_text() == "echo one\n" and not (shop.folder / "bin/run").exists()
    assert (shop.folder / "new.txt").exists() and not (shop.folder / "old.txt").exists()
    assert "The person did not approve the change to run.sh, bin/run: left as it was." in str(result.content)
    assert [each.path.name for each in result.seen] == ["new.txt", "old.txt"]


async def test_a_patch_of_which_all_is_refused_changes_nothing(shop: Workshop) -> None:
    """S13."""
    shop.file("run.sh", "echo one\n")
    shop.file("old.txt", "old")
    ready = await shop.prepare("apply_patch", patch=PATCH)
    with pytest.raises(ToolFailed, match="so nothing was changed"):
        await shop.act(ready, go=Go(approved=True, refused=frozenset(range(len(ready.wants)))))
    assert (shop.folder / "run.sh").exists() and not (shop.folder / "new.txt").exists()


async def test_a_patch_that_does_not_fit_changes_nothing(shop: Workshop) -> None:
    said = await shop.failure("apply_patch", patch=PATCH)
    assert "the patch was not applied, no file was changed" in said
    assert "run.sh does not exist" in said
    assert "old.txt does not exist" in said


async def test_content_that_has_no_bytes_is_told(shop: Workshop) -> None:
    with pytest.raises(BadArguments, match="half of a surrogate pair"):
        await shop.call("write_to_file", path="a.txt", content="\ud800")
