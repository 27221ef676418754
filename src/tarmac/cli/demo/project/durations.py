"""Times as people write them: 1h30m, 45s."""

import re

SECONDS = {"h": 3600, "m": 60, "s": 1}


def parse(text):
    """The seconds in a text like `1h30m`."""
    parts = re.findall(r"(\d+)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration")
    return sum(int(number) * SECONDS[unit] for number, unit in parts)


def write(seconds):
    """A text like `1h30m` for so many seconds."""
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (seconds, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number)
