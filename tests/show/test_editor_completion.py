"""Completion of commands and files in the session's editor."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from tarmac.show.editor_completion import Offer, SessionCompleter, files, matching
from tarmac.tasks.talk import expanded

PATHS = ["README.md", "src/app.py", "src/apple/pie.py", "tests/test_app.py"]


def offered(text: str, workspace: Path) -> list[str]:
    completer = SessionCompleter(
        workspace, lambda: {"mode": Offer("switch", lambda: ("code", "ask")), "model": Offer("")}
    )
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


def test_files_match_by_prefix_then_by_name_then_by_letters() -> None:
    """U2: fuzzy."""
    assert matching("src", PATHS) == ["src/app.py", "src/apple/pie.py"]
    assert matching("app", PATHS) == ["src/app.py", "src/apple/pie.py", "tests/test_app.py"]
    assert matching("tsap", PATHS) == ["tests/test_app.py"]
    assert matching("zzz", PATHS) == []


@given(st.text(max_size=8), st.lists(st.text(min_size=1, max_size=12), max_size=20))
def test_only_paths_of_the_workspace_are_offered(typed: str, paths: list[str]) -> None:
    """U2."""
    assert set(matching(typed, paths)) <= set(paths)


def test_ignored_files_are_not_offered(tmp_path: Path) -> None:
    """U2: with or without git."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").touch()
    (tmp_path / "my file.py").touch()
    assert files(tmp_path) == ["my file.py"]
    assert offered("see @my", tmp_path) == ['@"my file.py"']


def test_commands_and_their_arguments_complete_at_the_start_of_a_line(tmp_path: Path) -> None:
    """U3."""
    assert offered("/mo", tmp_path) == ["/mode", "/model"]
    assert offered("/mode a", tmp_path) == ["ask"]
    assert offered("say /mo", tmp_path) == []


def test_a_command_of_ones_own_takes_arguments() -> None:
    """U3."""
    assert expanded("---\ndescription: x\n---\nFix $1 in $2.\n", "bug app.py") == "Fix bug in app.py."
    assert expanded("Review $ARGUMENTS now", "all of it") == "Review all of it now"
    assert expanded("Review this.", "please") == "Review this.\n\nplease"
    assert expanded("Review this.", "") == "Review this."
