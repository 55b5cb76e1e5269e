"""How many cases a test tries: few in `make test`, more in `make test-slow`, all in
`make test-long`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def cases(full: T, short: T) -> T:
    """Return all if PVE_FLEET_CASES is set, as `make test-long` does: a number, or a table."""
    return full if os.environ.get("PVE_FLEET_CASES") else short


def repeated(values: Iterable[Any], *, first: int = 1, more: int | None = None) -> list[Any]:
    """Return parameters of a test: the first ones run in `make test`, the others are slow.

    It is for values that show the same behaviour again. If they are equal in kind, such as random
    seeds, `more` is the number of slow ones; only `make test-long` runs the rest.
    """
    found = [one if isinstance(one, ParameterSet) else pytest.param(one) for one in values]
    last = len(found) if more is None else first + more
    return [
        *found[:first],
        *(_marked(one, pytest.mark.slow) for one in found[first:last]),
        *(_marked(one, pytest.mark.long) for one in found[last:]),
    ]


def _marked(one: ParameterSet, mark: pytest.MarkDecorator) -> ParameterSet:
    return pytest.param(*one.values, id=one.id, marks=[*one.marks, mark])


def strides(number: int) -> list[Any]:
    """Return parameters of a test that tries the points of a run, from the first one on: one of
    that number of points in `make test`, all of them in `make test-long`. An odd number has points
    before and after a write, if these alternate.
    """
    some = pytest.param(number, id=f"one of {number} points")
    return repeated([some, pytest.param(1, id="all points")], more=0)
