"""A demo cluster for the module tests, and modules bound to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.modules.estate_lab import Lab, open_lab


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The demo cluster, running for the whole session; tests use names of their own."""
    with open_lab() as opened:
        yield opened


@pytest.fixture
def quiet() -> Iterator[Lab]:
    """A demo cluster of its own, in which nothing else happens and the listing is fresh."""
    with open_lab("--lag-s", "0") as opened:
        yield opened


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A VM name that no other test has."""
    words = "".join(char if char.isalnum() else "-" for char in request.node.name.lower())
    return f"t{abs(hash(request.node.nodeid)) % 100000}-{words[:40].strip('-')}"
