# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a table can say besides: sets of its own, secrets, resources that are always there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.decide import (
    build_plan,
    compare,
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    Call,
    Members,
    ResourceChange,
    Secret,
    Table,
)
from tests.unit.module_utils.resource.resource_cases import SHELF

_PIN = Secret(
    "pin",
    "code",
    Call(("pins", "{name}")),
    requested_by=("update_pin", "always"),
    check=lambda v, _w: v,
)
LOCKED = replace(SHELF, secrets=(_PIN,))
OWN = replace(SHELF, members=tuple(replace(group, own=True) for group in SHELF.members))
# A book by its number and its place; the number is what there is once only.
_PLACED = Members(
    "books",
    "book",
    "book",
    want=lambda item: (int(item["number"]), str(item["place"])),
    read=lambda answer: frozenset(answer.get("books", ())),
    identity=lambda item: item[0],
    batches=lambda items: [(frozenset({one}), {"book": one[0]}) for one in sorted(items)],
)
PERMANENT = replace(SHELF, members=(_PLACED,), permanent=True)
ONE: dict[str, Any] = {"room": "hall", "name": "s1"}


def known(books: set[Any]) -> dict[str, Any]:
    return {"comment": "", "size": 1, "kind": "wood", "books": frozenset(books)}


def sent(table: Table, actual: dict[str, Any] | None, **options: Any) -> list[tuple[str, Any]]:
    desired = read_desired(table, {**ONE, **options})
    plan = build_plan(table, desired, actual, compare(table, desired, actual))
    return [(step.method, dict(step.data)) for step in plan.steps]


OWN_CASES: list[tuple[str, dict[str, Any] | None, dict[str, Any], list[tuple[str, Any]]]] = [
    ("goes with the creation", None, {"books": [2, 1]}, [("POST", {"id": "s1", "book": "1,2"})]),
    ("is added to", known({1}), {"books": [1, 2]}, [("PUT", {"book": "2", "append": 1})]),
    (
        "is stated whole where some go",
        known({1, 3}),
        {"books": [1, 2], "append": False, "comment": "c"},
        [("PUT", {"comment": "c", "book": "1,2"})],
    ),
    ("keeps others with append", known({1}), {"books": [], "append": True}, []),
    ("does not keep it from being deleted", known({1}), {"state": "absent"}, [("DELETE", {})]),
]


@pytest.mark.parametrize(
    ("actual", "options", "wanted"), [row[1:] for row in OWN_CASES], ids=[r[0] for r in OWN_CASES]
)
def test_a_set_of_its_own(
    actual: dict[str, Any] | None, options: dict[str, Any], wanted: list[tuple[str, Any]]
) -> None:
    assert sent(OWN, actual, **options) == wanted


def test_a_secret_goes_with_the_creation_and_later_only_where_asked() -> None:
    assert sent(LOCKED, None, pin="1234") == [("POST", {"id": "s1", "code": "1234"})]
    assert sent(LOCKED, known(set()), pin="1234") == []
    always = {"pin": "1234", "update_pin": "always"}
    assert sent(LOCKED, known(set()), **always) == [("PUT", {"code": "1234"})]
    assert "1234" not in repr(read_desired(LOCKED, {**ONE, **always}))


def test_a_secret_is_never_a_difference_that_remains() -> None:
    assert ResourceChange(writes=("pin",))
    assert not ResourceChange(writes=("pin",)).visible


def test_members_with_an_identity() -> None:
    actual = known({(1, "left"), (2, "left")})
    moved = [{"number": 1, "place": "right"}]
    assert sent(PERMANENT, actual, books=moved) == [("PUT", {"book": 1})]
    assert sent(PERMANENT, actual, books=moved, exact=True) == [
        ("PUT", {"book": 1}),
        ("PUT", {"book": 2, "delete": 1}),
    ]
    assert sent(PERMANENT, actual, books=moved, state="absent") == [
        ("PUT", {"book": 1, "delete": 1})
    ]
    with pytest.raises(ValidationFailed, match="lists the same twice"):
        sent(PERMANENT, actual, books=[*moved, {"number": 1, "place": "left"}])
