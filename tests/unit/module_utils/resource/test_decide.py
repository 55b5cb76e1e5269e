# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pure half of the engine: options to desired, to what differs, to a plan."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.decide import (
    after,
    build_plan,
    compare,
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    Call,
    DesiredResource,
    Field,
    Table,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.pool import (
    pool_info_spec,
    pool_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.pool import POOL
from tests.unit.module_utils.resource.resource_cases import SHELF


def actual(
    comment: str = "", size: int = 1, kind: str = "wood", books: set[int] | None = None
) -> dict[str, Any]:
    return {"comment": comment, "size": size, "kind": kind, "books": frozenset(books or ())}


def plan(known: dict[str, Any] | None, **options: Any) -> Plan:
    desired = read_desired(SHELF, {"room": "hall", "name": "s1", **options})
    return build_plan(SHELF, desired, known, compare(SHELF, desired, known))


def requests(found: Plan) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (step.method, "/".join(str(part) for part in step.path), dict(step.data))
        for step in found.steps
    ]


CHANGES: list[
    tuple[str, dict[str, Any] | None, dict[str, Any], list[tuple[str, str, dict[str, Any]]]]
] = [
    ("nothing to do", actual(), {}, []),
    ("nothing to remove", None, {"state": "absent"}, []),
    (
        "equal in canonical form",
        actual("a", 2, books={1}),
        {"comment": "a", "size": "2", "books": [1, 1]},
        [],
    ),
    ("left out means left alone", actual("a", 2), {"size": 2}, []),
    (
        "created with its fields",
        None,
        {"comment": "c", "size": 3},
        [("POST", "rooms/hall/shelves", {"id": "s1", "comment": "c", "size": "3"})],
    ),
    (
        "members come after the creation",
        None,
        {"books": [2, 1], "loud": True},
        [
            ("POST", "rooms/hall/shelves", {"id": "s1"}),
            ("PUT", "rooms/hall/shelves/s1", {"book": "1,2", "loud-move": True}),
        ],
    ),
    (
        "one request for a field and new members",
        actual(books={1}),
        {"comment": "c", "books": [2]},
        [("PUT", "rooms/hall/shelves/s1", {"comment": "c", "book": "2"})],
    ),
    (
        "an empty text removes",
        actual("c"),
        {"comment": ""},
        [("PUT", "rooms/hall/shelves/s1", {"comment": ""})],
    ),
    ("members stay", actual(books={1, 2}), {"books": [1]}, []),
    ("no option, no members taken out", actual(books={1, 2}), {"exact": True}, []),
    (
        "exact takes out",
        actual(books={1, 2}),
        {"books": [2, 3], "exact": True},
        [
            ("PUT", "rooms/hall/shelves/s1", {"book": "3"}),
            ("PUT", "rooms/hall/shelves/s1", {"book": "1", "delete": 1}),
        ],
    ),
    (
        "force empties first",
        actual(books={1, 2}),
        {"state": "absent", "force": True},
        [
            ("PUT", "rooms/hall/shelves/s1", {"book": "1,2", "delete": 1}),
            ("DELETE", "rooms/hall/shelves/s1", {}),
        ],
    ),
    (
        "a fixed field is recreated where that is allowed",
        actual("c", kind="wood"),
        {"comment": "c", "kind": "iron", "recreate": True},
        [
            ("DELETE", "rooms/hall/shelves/s1", {}),
            ("POST", "rooms/hall/shelves", {"id": "s1", "comment": "c", "kind": "iron"}),
        ],
    ),
]


@pytest.mark.parametrize(
    ("known", "options", "wanted"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_the_requests_of_a_plan(
    known: dict[str, Any] | None,
    options: dict[str, Any],
    wanted: list[tuple[str, str, dict[str, Any]]],
) -> None:
    found = plan(known, **options)
    assert requests(found) == wanted
    assert found.changed is bool(wanted)


@pytest.mark.parametrize(
    ("known", "options"), [row[1:3] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_nothing_is_left_to_do_afterwards(
    known: dict[str, Any] | None, options: dict[str, Any]
) -> None:
    desired = read_desired(SHELF, {"room": "hall", "name": "s1", **options})
    then = after(SHELF, desired, known) if desired.present else None
    assert not compare(SHELF, desired, then)


def test_the_diff_has_what_changes_and_no_more() -> None:
    found = plan(actual("a", 2, books={1}), comment="b", books=[2])
    assert found.before == {"comment": "a", "books": [1]}
    assert found.after == {"comment": "b", "books": [1, 2]}
    assert found.summaries == ["Set comment of shelf 'hall/s1' and add book 2 to shelf 'hall/s1'"]


def test_members_keep_a_resource_from_being_deleted() -> None:
    with pytest.raises(
        Conflict, match="Shelf 'hall/s1' was not deleted: it is not empty: it has book 1, book 2"
    ):
        plan(actual(books={2, 1}), state="absent")


def test_a_fixed_field_is_not_changed_silently() -> None:
    with pytest.raises(Conflict, match="cannot change kind of an existing shelf") as failure:
        plan(actual(kind="wood"), kind="iron", comment="new")
    assert failure.value.details == {"options": ["kind"]}


def test_a_resource_with_members_is_not_recreated_without_force() -> None:
    with pytest.raises(Conflict, match="not empty"):
        plan(actual(kind="wood", books={1}), kind="iron", recreate=True)


def test_the_declared_options_are_those_of_the_table() -> None:
    assert SHELF.options == {"room", "name", "comment", "size", "kind", "books", "loud"}
    assert pool_spec().keys() == POOL.options | {"state", "exact", "force", "allow_self"}
    assert pool_info_spec().keys() == {key.option for key in POOL.keys}


def _joined(known: str, wanted: str, desired: DesiredResource) -> str:
    if not desired.present:
        return known.replace(wanted, "")
    return known if wanted in known else known + wanted


_SIGN = Call(("sign",))
SIGN = Table(
    kind="sign",
    label_as="the sign",
    keys=(),
    fields=(
        Field("letters", "txt", send=lambda text: text or None, merge=_joined),
        Field("colour", "col", send=lambda text: text or None),
    ),
    permanent=True,
    list_call=_SIGN,
    read_call=_SIGN,
    create_call=_SIGN,
    update_call=_SIGN,
    delete_call=_SIGN,
)
SIGNS: list[tuple[str, dict[str, Any], dict[str, str], dict[str, str]]] = [
    ("added to what is there", {"letters": "b"}, {"txt": "ab"}, {"letters": "ab"}),
    ("there already", {"letters": "a"}, {}, {}),
    ("taken out", {"letters": "a", "state": "absent"}, {"delete": "txt"}, {"letters": ""}),
    (
        "set and removed at once",
        {"letters": "b", "colour": ""},
        {"txt": "ab", "delete": "col"},
        {"letters": "ab", "colour": ""},
    ),
]


@pytest.mark.parametrize(
    ("options", "sent", "then"), [row[1:] for row in SIGNS], ids=[row[0] for row in SIGNS]
)
def test_parts_of_a_field(
    options: dict[str, Any], sent: dict[str, str], then: dict[str, str]
) -> None:
    known = {"letters": "a", "colour": "red"}
    desired = read_desired(SIGN, options)
    found = build_plan(SIGN, desired, known, compare(SIGN, desired, known))
    assert [dict(step.data) for step in found.steps] == ([sent] if sent else [])
    assert found.after == then
    assert after(SIGN, desired, known) == {**known, **then}
