"""PURE: when to ask a model again that did not answer (S6)."""

from typing import Final

FIRST: Final = 1.0  # seconds
JITTER: Final = 0.25  # of the delay: many tasks that were refused together do not come back together
LONGEST: Final = 600.0  # a provider that wants more than this is not waited for


def delay(failures: int, *, most: int | None = 3, wanted: float | None = None, chance: float = 0.0) -> float | None:
    """Seconds to wait after so many failures in a row; None, after more than `most` (if any): ask a person, or give up.

    `wanted` is the provider's Retry-After, which counts when it is more. `chance` is from 0 to 1.
    """
    if (most is not None and failures > most) or (wanted is not None and wanted > LONGEST):
        return None
    own = min(FIRST * 2.0 ** min(failures - 1, 10), LONGEST)
    return max(own, wanted or 0.0) + own * JITTER * chance
