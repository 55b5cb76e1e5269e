# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of snapshots, ages, and what a retention lets go."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.times import iso
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.model import (
    Retention,
    Snapshot,
    SnapshotTree,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.names import (
    automatic_name,
    automatic_pattern,
    expired,
    seconds,
    snapshot_name,
    snapshots_in_progress,
)

NOW = 1_700_000_000


@pytest.mark.parametrize(
    "name", ["ab", "A1", "before-upgrade", "a_b-C9", "a" * 40, "currently", "pending2"]
)
def test_names_that_pve_takes(name: str) -> None:
    assert snapshot_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a", "1a", "-a", "a b", "a.b", "ä1", "a" * 41, "ab\n", "current", "PENDING"]
)
def test_names_that_pve_refuses(name: str) -> None:
    with pytest.raises(ValidationFailed):
        snapshot_name(name)


def test_automatic_names() -> None:
    name = automatic_name("nightly-", NOW)
    assert name == "nightly-20231114-221320"
    assert fnmatchcase(name, automatic_pattern("nightly-"))
    for other in (
        "nightly-note",
        "nightly-2023",
        "anightly-20231114-221320",
        "nightly-20231114-221320x",
    ):
        assert not fnmatchcase(other, automatic_pattern("nightly-"))
    with pytest.raises(ValidationFailed, match="prefix"):
        automatic_name("9", NOW)
    assert len(automatic_name("a" * 25, NOW)) == 40


@pytest.mark.parametrize(
    ("age", "wanted"), [("90s", 90), ("5m", 300), ("12h", 43200), ("7d", 604800), ("2W", 1209600)]
)
def test_ages(age: str, wanted: int) -> None:
    assert seconds(age) == wanted


@pytest.mark.parametrize("age", ["", "7", "d", "7 days", "-1d", "1.5h", "1y"])
def test_what_is_not_an_age(age: str) -> None:
    with pytest.raises(ValidationFailed):
        seconds(age)


def test_times() -> None:
    assert iso(NOW) == "2023-11-14T22:13:20Z"
    assert iso(0) is None


def tree(*rows: tuple[str, int], **states: str) -> SnapshotTree:
    return SnapshotTree({name: Snapshot(name, when, state=states.get(name)) for name, when in rows})


ROWS = (
    ("n-1", NOW - 500),
    ("n-2", NOW - 400),
    ("x-1", NOW - 9000),
    ("n-3", NOW - 100),
    ("n-4", NOW),
)

RULES: list[tuple[Retention, list[str]]] = [
    (Retention("n-*", keep=2), ["n-1", "n-2"]),
    (Retention("n-*", keep=4), []),
    (Retention("n-*", keep=9), []),
    (Retention("n-*", keep=0), ["n-1", "n-2", "n-3"]),
    (Retention("n-*"), ["n-1", "n-2", "n-3"]),
    (Retention("n-*", keep_for=450), ["n-1"]),
    (Retention("n-*", keep_for=100), ["n-1", "n-2", "n-3"]),
    (Retention("n-*", keep=3, keep_for=150), ["n-1"]),
    (Retention("n-*", keep=1, keep_for=450), ["n-1"]),
    (Retention("*", keep=1), ["x-1", "n-1", "n-2", "n-3"]),
    (Retention("N-*"), []),
    (Retention("n-[12]"), ["n-1", "n-2"]),
]


@pytest.mark.parametrize(("rule", "wanted"), RULES, ids=str)
def test_retention(rule: Retention, wanted: list[str]) -> None:
    assert [one.name for one in expired(tree(*ROWS), rule, NOW, spare="n-4")] == wanted


def test_unfinished_snapshots_are_neither_counted_nor_deleted() -> None:
    grown = tree(("n-1", 1), ("n-2", 2), ("n-3", 3), **{"n-3": "delete"})
    assert [one.name for one in expired(grown, Retention("n-*", keep=1), NOW)] == ["n-1"]
    assert [one.name for one in snapshots_in_progress(grown, Retention("n-*", keep=1))] == ["n-3"]


names = st.text("ab1-", min_size=1, max_size=3).map(lambda text: f"s{text}")


@given(
    st.dictionaries(names, st.integers(0, 100), max_size=12),
    st.one_of(st.none(), st.integers(0, 12)),
    st.one_of(st.none(), st.integers(0, 100)),
    st.sampled_from(["s*", "sa*", "*1", "nothing"]),
)
def test_a_retention_never_takes_more_than_it_may(
    rows: dict[str, int], keep: int | None, keep_for: int | None, pattern: str
) -> None:
    grown = tree(*rows.items())
    gone = {one.name for one in expired(grown, Retention(pattern, keep, keep_for), 100)}
    matching = {name for name in rows if fnmatchcase(name, pattern)}
    assert gone <= matching
    assert len(matching - gone) >= min(keep or 0, len(matching))
    if keep_for is not None:
        assert all(rows[name] <= 100 - keep_for for name in gone)
    left = sorted(rows[name] for name in matching - gone)
    assert not gone or not left or max(rows[name] for name in gone) <= left[-1]
