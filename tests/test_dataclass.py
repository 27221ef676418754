"""Our dataclass is the standard one in all that can be seen of it, and written late."""

import copy
import dataclasses
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.dataclass import dataclass

NAMES = ("alpha", "beta", "gamma")
options = st.fixed_dictionaries(
    {"frozen": st.booleans(), "slots": st.booleans(), "kw_only": st.booleans(), "eq": st.booleans()}
)
specifiers = st.sampled_from(
    [
        {},
        {"default": 7},
        {"default_factory": list},
        {"default": 1, "compare": False},
        {"default": 2, "repr": False},
        {"default": 3, "init": False},
        {"default_factory": dict, "init": False},
        {"default": 4, "kw_only": True},
        {"default": 5, "hash": False},
    ]
)
values = st.dictionaries(st.sampled_from((*NAMES, "unknown")), st.integers(0, 2), max_size=4)


def twins(wanted: dict[str, bool], specified: list[dict[str, Any]]) -> list[Any]:
    """The same class, decorated by the standard library and by us."""
    made: list[Any] = []
    decorators: list[Any] = [dataclasses.dataclass, dataclass]
    for decorator in decorators:
        body = {name: field(**each) for name, each in zip(NAMES, specified, strict=False) if each}
        annotations = {name: int for name, _ in zip(NAMES, specified, strict=False)}
        cls = type("Twin", (), {"__doc__": "x", "__annotations__": annotations, "__qualname__": "Twin", **body})
        try:
            made.append(decorator(**wanted)(cls))
        except TypeError:
            made.append(None)
    return made


def outcome(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error), str(error)


@given(options, st.lists(specifiers, max_size=3), st.lists(st.integers(0, 2), max_size=3), values, values)
def test_it_does_what_the_standard_one_does(
    wanted: dict[str, bool],
    specified: list[dict[str, Any]],
    positional: list[int],
    named: dict[str, int],
    changes: dict[str, int],
) -> None:
    standard, ours = twins(wanted, specified)
    if standard is None:
        return  # a field without a default after one that has one: mypy refuses it before us

    def seen(cls: Any) -> Any:
        def again() -> Any:
            return cls(*positional, **named)

        made = outcome(again)
        if not isinstance(made, cls):
            return made
        return (
            repr(made),
            [(each.name, each.type, each.kw_only, each.init) for each in fields(made)],
            cls.__match_args__,
            [getattr(cls.__dataclass_params__, name) for name in ("init", "repr", "eq", "frozen")],
            outcome(lambda: dataclasses.asdict(made)),
            made == again(),
            made == "something else",
            outcome(lambda: hash(made) == hash(again())) if wanted["eq"] else None,
            outcome(lambda: repr(replace(made, **changes))),
            outcome(lambda: setattr(made, "alpha", 9)) if specified else None,
            repr(copy.copy(made)),
            outcome(lambda: delattr(made, "alpha")) if specified else None,
        )

    assert seen(ours) == seen(standard)


@dataclass(frozen=True, slots=True)
class Point:
    """Somewhere."""

    x: int
    y: int = 0
    names: list[str] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("left of everything")


@dataclass(frozen=True, slots=True)
class Place(Point):
    """Somewhere with a name."""

    name: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}>"


def test_a_class_inherits_fields_checks_and_what_it_writes_itself() -> None:
    place = Place(1, name="here")
    assert (place, hash(place), repr(place)) == (Place(1, 0, ["other"], "here"), hash(Place(1, name="here")), "<here>")
    assert Point(1) != place
    with pytest.raises(ValueError, match="left"):
        Place(-1)


def test_it_mixes_with_the_standard_one_both_ways() -> None:
    @dataclasses.dataclass(frozen=True)
    class Above:
        first: int

    @dataclass(frozen=True, slots=True)
    class Middle(Above):
        """Ours."""

        second: int

    @dataclasses.dataclass(frozen=True, slots=True)
    class Below(Middle):
        third: int

    below = Below(1, 2, third=3)
    assert (below.first, below.second, below.third) == (1, 2, 3)
    for each in (Middle(1, 2), below):
        with pytest.raises(dataclasses.FrozenInstanceError):
            each.second = 4  # type: ignore[misc]
    with pytest.raises(TypeError, match="non-frozen dataclass from a frozen"):
        dataclasses.dataclass(type("Melted", (Middle,), {"__annotations__": {"fourth": int}}))


def test_objects_are_pickled_and_copied() -> None:
    place = Place(1, 2, ["a"], "here")
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == place


def test_they_are_matched_and_decoded() -> None:
    decoded = msgspec.json.decode(b'{"x": 3, "name": "there"}', type=Place)
    match decoded:
        case Place(x, y, name=name):
            found = (x, y, name)
    assert found == (3, 0, "there")
    assert msgspec.json.encode(decoded) == b'{"x":3,"y":0,"names":[],"name":"there"}'


def test_its_methods_are_written_for_the_first_object() -> None:
    @dataclass(slots=True)
    class Fresh:
        """Nobody made one yet."""

        value: int

    before = Fresh.__init__
    Fresh(1), Fresh(2)
    assert before is not Fresh.__init__
    with pytest.raises(TypeError, match=r"Fresh\.__init__\(\) missing 1 required positional argument: 'value'"):
        Fresh()  # type: ignore[call-arg]


def test_modules_that_are_imported_at_once_define_their_classes_beside_each_other() -> None:
    """A door imports what it needs in a thread, while another thread needs some of it already."""
    failed: list[BaseException] = []

    @dataclass(frozen=True, slots=True)
    class Base:
        one: int

    def define() -> None:
        try:
            for _ in range(100):

                @dataclass(frozen=True, slots=True)
                class Derived(Base):
                    two: int

                assert Derived(1, 2).two == 2
        except BaseException as error:
            failed.append(error)

    held = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=define) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
    finally:
        sys.setswitchinterval(held)
    assert failed == []
