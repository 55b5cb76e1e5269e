# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of answers: what a broken, a newer or a hostile server could send in their place."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Spot = tuple[str | int, ...]
"""The keys and indices that lead to a place in an answer."""

GONE = object()
"""Stands for a key or a row that is missing."""

NASTY = (
    "{{ 40000 + 2 }}{% raw %}",
    "!!python/object/apply:os.system ['x']\n- {a: [",
    '$(touch /tmp/x); `x` && "x" \'x',
    "<script>alert(1)</script>&amp;",
    "\x00\x07\x1b[31m\x7f\u202e\u2028?",
    "²٣𝟜",
    "",
    " ",
    "-1",
    "1e400",
    "9" * 5000,
    "=,=;:/,",
    "../../etc/passwd",
    "x" * 1_000_000,
)
"""Texts in the place of a value, as they are below the session: `test_client.py` shows that it
replaces half of a surrogate pair.
"""

WRONG: tuple[Any, ...] = (
    GONE,
    None,
    True,
    0,
    -1,
    2**70,
    1.5,
    float("inf"),
    float("nan"),
    [],
    [None],
    [[]],
    ["x"],
    {},
    {"": None},
    {"a": {"b": [1]}},
    *NASTY,
)
"""What stands in the place of a value."""


@dataclass(frozen=True)
class Within:
    """A change within a text, such as one sub-key of a property string."""

    pattern: str
    by: str

    def of(self, text: str) -> str:
        """Return the changed text."""
        return re.sub(self.pattern, self.by, text)


PARTS: tuple[Within, ...] = (
    Within(r"$", ",future-key=1"),
    Within(r"$", ",=,x=,=y,"),
    Within(r"[0-9]+", "²"),
    Within(r"[0-9]+", "9" * 5000),
    Within(r"[0-9]+", "-0.5e3"),
    Within(r"=", "=="),
    Within(r",", ",,"),
    Within(r":", ""),
    Within(r"[A-Za-z]+", "{{ 1 }}"),
)


def spots(answer: Any, base: Spot = ()) -> Iterator[Spot]:
    """Return each place in an answer; of the rows of a list the first and the last."""
    yield base
    if isinstance(answer, dict):
        for key in answer:
            yield from spots(answer[key], (*base, key))
    elif isinstance(answer, list):
        for index in sorted({0, len(answer) - 1} if answer else ()):
            yield from spots(answer[index], (*base, index))


def replaced(answer: Any, spot: Spot, value: Any) -> Any:
    """Return the answer with another value at a place; unchanged where it has no such place."""
    if not spot:
        return None if value is GONE or isinstance(value, Within) else value
    whole = copy.deepcopy(answer)
    holder = whole
    try:
        for key in spot[:-1]:
            holder = holder[key]
        holder[spot[-1]]
    except (LookupError, TypeError):
        return answer
    if isinstance(value, Within):
        old = holder[spot[-1]]
        if not isinstance(old, str):
            return answer
        value = value.of(old)
    if value is GONE:
        del holder[spot[-1]]
    else:
        holder[spot[-1]] = value
    return whole


def everywhere(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Return the answer with each value that holds no others changed."""
    if isinstance(answer, dict):
        return {key: everywhere(value, change) for key, value in answer.items()}
    if isinstance(answer, list):
        return [everywhere(value, change) for value in answer]
    return change(answer)


def as_text(value: Any) -> Any:
    """Return a number as PVE's Perl may print it as well: as a text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(value)


def as_number(value: Any) -> Any:
    """Return a text of digits as the number that PVE's Perl may print as well."""
    if isinstance(value, str) and re.fullmatch(r"0|[1-9]\d{0,14}", value):
        return int(value)
    return value


# Objects whose keys are names of nodes, tokens and mapped devices (qemu-server: QemuServer.pm,
# check_local_resources).
BY_NAME = ("not_allowed_nodes", "node_status", "lrm_status", "tokens", "mapped-resource-info")


def with_more(answer: Any) -> Any:
    """Return the answer with keys that no version has so far."""
    if isinstance(answer, dict):
        more = {key: value if key in BY_NAME else with_more(value) for key, value in answer.items()}
        return {**more, "future-flag": 1, "future-list": [{"x": None}], "future": {"deep": ["y"]}}
    if isinstance(answer, list):
        return [with_more(value) for value in answer]
    return answer


def route_of(path: Sequence[str]) -> str:
    """Return a path without the names in it, so that the same call has one name."""
    found = "/".join(path)
    for pattern, name in _NAMES:
        found = re.sub(pattern, name, found)
    return found


_NAMES = (
    (r"UPID:[^/]*(?:/download[^/]*)?[^/]*", "UPID"),
    (r"^nodes/[^/]+", "nodes/NODE"),
    (r"/qemu/\d+", "/qemu/VMID"),
    (r"/snapshot/[^/]+", "/snapshot/NAME"),
    (r"/storage/[^/]+", "/storage/STORAGE"),
    (r"/content/.+", "/content/VOLUME"),
    (r"/token/[^/]+", "/token/NAME"),
    (r"^access/(groups|roles|users)/[^/]+", r"access/\1/NAME"),
    (r"^storage/[^/]+", "storage/STORAGE"),
)
