"""PURE: the name that was probably meant by one that is wrong."""

from collections.abc import Iterable


def nearest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The one of `known` that looks most like it; empty when none does. Two letters swapped are the likeliest slip."""
    from difflib import get_close_matches  # only here: nobody needs it who types well

    names = list(known)
    swapped = [each for each in names if sorted(each) == sorted(wrong)]
    return next(iter(swapped or get_close_matches(wrong, names, n=1, cutoff=cutoff)), "")
