"""Values that know their lines."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.prompts.located import InvalidText, read_toml, read_yaml

TOML = """\
# a comment
a = 1

b.c = [ # a list
  "x]",
  # in it
  '''
[no.table]
y = 1
''',
]
d = {e = 1, f = 2}
[t.u]
"quoted key" = 1
v = '''
w = 2
'''
[[many]]
x = 1
[[many]]
x = 2
[t.z]
v = 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("a",), 2),
        (("b", "c"), 4),
        (("b", "c", 1), 4),
        (("d", "f"), 12),
        (("t",), 13),
        (("t", "u", "quoted key"), 14),
        (("t", "u", "v"), 15),
        (("many", 0, "x"), 19),
        (("many", 1), 20),
        (("many", 1, "x"), 21),
        (("t", "z", "v"), 23),
        (("t", "nothing"), 13),
        (("nothing", "at", "all"), 1),
    ],
)
def test_a_value_of_toml_knows_its_line(path: tuple[str | int, ...], line: int) -> None:
    assert read_toml(TOML).line(path) == line


VALUES = ["1", "'#'", "[\n1,\n2\n]", "[1, '''\n[a]\n''']", "{x = 1}", "'''\n\n'''", "true # = 3"]


@given(st.lists(st.tuples(st.sampled_from(["", "# [x]", "   "]), st.sampled_from(VALUES))), st.booleans())
def test_lines_are_right_whatever_stands_between(parts: list[tuple[str, str]], table: bool) -> None:
    text = "[top]\n" if table else ""
    expected = {}
    for number, (before, value) in enumerate(parts):
        text += f"{before}\n"
        expected[f"key{number}"] = text.count("\n") + 1
        text += f"key{number} = {value}\n"
    located = read_toml(text)
    assert {key: located.line(("top", key) if table else (key,)) for key in expected} == expected


def test_a_list_of_thousands_of_lines_does_not_keep_us_long() -> None:
    text = "a = [\n" + '"]",\n' * 20_000 + "]\nb = 1\n"
    located = read_toml(text)
    began = time.monotonic()
    assert located.line(("b",)) in (1, 20_003)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb =\n", 2),
        ("a = " + "9" * 5_000, 1),
        ("a = " + "[" * 10_000, 1),
        ("\n\na = 'x", 3),
        ("a = 2020-99-99", 1),
    ],
)
def test_toml_that_is_none_is_told_with_its_line(text: str, line: int) -> None:
    with pytest.raises(InvalidText) as caught:
        read_toml(text)
    assert caught.value.line == line


def test_a_value_of_yaml_knows_its_line() -> None:
    located = read_yaml("a: 1\nb:\n  - x\n  - c: yes\n    d: |\n      e\n")
    assert located.data == {"a": 1, "b": ["x", {"c": "yes", "d": "e\n"}]}
    paths: list[tuple[str | int, ...]] = [("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "d"), ("z",)]
    assert [located.line(path) for path in paths] == [1, 2, 3, 4, 5, 1]


def test_what_is_wrong_can_be_printed() -> None:
    assert InvalidText(1, "`\x1b[2J` is unknown").what == "`\\x1b[2J` is unknown"


@pytest.mark.parametrize(
    "text",
    [
        "a." * 32_000 + "a = 1",
        '"a,". ' * 9_000 + "a = 1",
        "[[a]]\n" * 10_000,
        "a = [" + "1,\n" * 20_000 + "]",
        "a={" * 9_000,
    ],
    ids=["a key of many parts", "of many quoted parts", "many tables", "a long list", "deep"],
)
def test_no_toml_of_a_hostile_file_keeps_us_long(text: str) -> None:
    """tomllib takes more than a minute for the first."""
    began = time.process_time()
    try:
        read_toml(text).line(("zzz",))
    except InvalidText as wrong:
        assert wrong.line == 1
    assert time.process_time() - began < 15
