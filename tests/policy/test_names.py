"""Names in paths, against the plainest way to find them: one regular expression over the whole path."""

import re
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from tarmac.policy import files as names
from tarmac.policy.files import Names, _folded

LISTS = {"protected": names.PROTECTED, "credential": names.CREDENTIAL, "example": names.EXAMPLE, "public": names.PUBLIC}
NAMES = {kind: Names(names) for kind, names in LISTS.items()}
_PARTS = sorted({
    part for each in LISTS.values() for names in each.values() for name in names.split() for part in name.split("/")
})  # fmt: skip
parts = st.one_of(
    st.sampled_from(_PARTS),
    st.sampled_from(_PARTS).map(lambda part: part.replace("*", "x.y")),
    st.sampled_from(_PARTS).map(lambda part: part.replace("*", "").upper()),
    st.sampled_from(["", ".", "..", "src", "a.env.b", "id_rsaX", ".ENV", "x\ny", ".g\u200cit", "ｅtc", "a／.git"]),
    st.text(max_size=4),
)
paths = st.builds(lambda root, each: root + "/".join(each), st.sampled_from(["", "/", "//", "./"]), st.lists(parts))


@cache
def _expression(kind: str) -> re.Pattern[str]:
    def expression(name: str) -> str:
        text = re.escape(_folded(name)).replace(r"\*", "[^/]*")
        return f"^{text}" if name.startswith("/") else f"/{text}"

    groups = enumerate(LISTS[kind].values())
    return re.compile("|".join(f"(?P<_{n}>{'|'.join(map(expression, names.split()))})/" for n, names in groups))


def _by_expression(kind: str, path: str) -> str:
    found = _expression(kind).search(f"{'' if path.startswith('/') else './'}{_folded(path)}/")
    return list(LISTS[kind])[int((found.lastgroup or "_0")[1:])] if found else ""


@given(st.sampled_from(sorted(LISTS)), paths)
def test_a_name_is_found_in_a_path_as_one_expression_over_all_of_it_would_find_it(kind: str, path: str) -> None:
    assert NAMES[kind].why(path) == _by_expression(kind, path)


@given(st.text("ab*", min_size=1, max_size=6), st.text("ab", max_size=6))
def test_a_pattern_with_several_stars_is_read_as_a_shell_would(pattern: str, name: str) -> None:
    """P8: `*` is any part of a name, none of it included."""
    expected = any(re.fullmatch(pattern.replace("*", ".*"), part) for part in ("src", name))
    assert bool(Names({"listed": pattern}).why(f"src/{name}")) == expected
