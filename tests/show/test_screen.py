"""One screen for a task that tells and a person who types."""

import io

from hypothesis import given
from hypothesis import strategies as st

from tarmac.show.look import Look
from tarmac.show.screen import Screen
from tarmac.vt.text import LiveText

LOOK = Look(live=True, columns=30)


def seen(stream: io.StringIO) -> str:
    """What stands on the screen."""
    text = LiveText()
    return text.feed(stream.getvalue().encode()) + text.finish()


def test_what_is_typed_stands_below_what_is_told_until_it_is_sent() -> None:
    """S5: words are told in whole lines while somebody types; then the rest follows."""
    stream = io.StringIO()
    screen = Screen(stream, LOOK)
    screen.say("Let me ")
    screen.typing("h")
    assert seen(stream) == "Let me \n❯ h"
    screen.say("think\nof ")
    screen.typing("hu")
    assert seen(stream) == "Let me \nthink\n❯ hu"
    screen.typing("")
    screen.say("it.\n")
    assert seen(stream) == "Let me \nthink\nof it.\n"


def test_of_a_long_line_the_end_is_seen() -> None:
    stream = io.StringIO()
    screen = Screen(stream, LOOK)
    screen.typing("a very long line that does not fit on 漢字漢字")
    assert seen(stream).startswith("❯ ") and seen(stream).endswith("漢字漢字") and "very" not in seen(stream)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(["word ", "line\n", "two\nlines\n", "\n", "end"])),
        st.tuples(st.just("typing"), st.sampled_from(["", "h", "hurry", "hurry up, please, it is late by now"])),
    )
)


@given(steps)
def test_nothing_that_is_said_is_lost_by_typing(steps: list[tuple[str, str]]) -> None:
    """S5: the same letters in the same order, whatever is typed meanwhile; nothing typed stays behind.

    (A line may be broken where they begin; words come whole, see `Wrapping`.)
    """
    stream = io.StringIO()
    screen = Screen(stream, LOOK)
    for what, text in steps:
        (screen.say if what == "say" else screen.typing)(text)
    screen.typing("")
    said = "".join(text for what, text in steps if what == "say")
    assert "".join(seen(stream).split()) == "".join(said.split())
