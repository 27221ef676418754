"""How large a regular expression gets once it is compiled. The `regex` module writes out what is counted, before any of
its time limits begins: `a{1000000000}` takes gigabytes.

check_size(pattern) → ValueError when somebody else's pattern should not even be compiled

It is an upper bound from the text alone, so that no bracket can hide a count: nested or not, counts are multiplied.
"""

import math
import re

MOST = 400_000  # nodes; a UUID, digit group by digit group, has 300,000 by this count
_COUNTED = re.compile(r"\{([^}]*)\}")


def check_size(pattern: str) -> None:
    """Nothing, when it may be compiled."""
    size = math.prod((_least(found) for found in _COUNTED.findall(pattern)), start=max(1, len(pattern)))
    if size > MOST:
        raise ValueError("it has too many counted repetitions, or too high ones")


def _least(count: str) -> int:
    """How often at least: so often it is written out. Blanks and comments may stand between the digits."""
    digits = "".join(each for each in count.partition(",")[0] if each.isdigit())
    return max(1, int(digits[:9])) if digits.isascii() and digits else 1
