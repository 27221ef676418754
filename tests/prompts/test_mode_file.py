"""Modes as files of ours and of Roo-Code's: whatever a mode is, it is read back as it was (S3, S9)."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarmac.prompts.mode import CHOSEN, FILE_GROUPS, GroupRule, Mode, mode_text, parse_mode, roo_text
from tarmac.prompts.modes import read_roo_modes

words = st.text(st.characters(categories=("L", "M", "N", "P", "S"), include_characters=" "), max_size=40)
lines = words.map(str.strip)
texts = st.lists(words | st.sampled_from(["---", "+++", "# x", "- a: b"]), max_size=4).map(
    lambda each: "\n".join(each).strip()
)
rules = st.builds(
    lambda group, pattern, said: GroupRule(
        group=group,
        file_pattern=pattern if group in FILE_GROUPS else None,
        description=said if pattern and group in FILE_GROUPS else "",
    ),
    st.sampled_from(CHOSEN),
    st.none() | st.sampled_from([r"\.md$", "^a b/.*'\"$", "x|#y"]),
    lines,
)
modes = st.builds(
    Mode,
    slug=st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True),
    name=lines.map(lambda each: each or "n"),
    role=texts.map(lambda each: each or "r"),
    groups=st.lists(rules, max_size=4, unique_by=lambda each: each.group).map(tuple),
    when=texts,
    description=lines,
    instructions=texts,
    source=st.just("user"),
)


@settings(max_examples=100, deadline=None)
@given(modes)
def test_a_mode_is_read_back_from_its_file_as_it_was(mode: Mode) -> None:
    assert parse_mode(mode_text(mode), slug="other", source="user", origin="") == mode


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.lists(modes, max_size=3, unique_by=lambda each: each.slug))
def test_all_modes_are_read_back_from_roo_codes_file(tmp_path: Path, found: list[Mode]) -> None:
    file = tmp_path / "custom_modes.yaml"
    file.write_text(roo_text(found), "utf-8")
    read = read_roo_modes(file)
    assert read.trouble == ()
    strip = ("slug", "name", "role", "groups", "when", "description", "instructions")
    assert [[getattr(each, name) for name in strip] for each in read.all] == [
        [getattr(each, name) for name in strip] for each in found
    ]
