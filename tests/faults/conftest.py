"""Every test here injects a real fault. `make faults` runs them; `make test` leaves them out."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.path.name != "test_matrix.py":
            item.add_marker(pytest.mark.faults)
