"""Limit the size of a compiled regular expression.

The `regex` module expands counted repetitions before any time limit applies: `a{1000000000}` takes gigabytes.
check_size(pattern) raises ValueError for such a pattern. It multiplies all counts, nested or not, so the result is an
upper bound.
"""

import math
import re

MOST = 400_000  # nodes; a pattern for UUIDs has 300,000 by this bound
_COUNTED = re.compile(r"\{([^}]*)\}")


def check_size(pattern: str) -> None:
    """Raise ValueError if the pattern is too large to compile."""
    size = math.prod((_least(found) for found in _COUNTED.findall(pattern)), start=max(1, len(pattern)))
    if size > MOST:
        raise ValueError("too many counted repetitions")


def _least(count: str) -> int:
    """The minimum count, which is expanded. There may be blanks and comments between the digits."""
    digits = "".join(each for each in count.partition(",")[0] if each.isdigit())
    return max(1, int(digits[:9])) if digits.isascii() and digits else 1
