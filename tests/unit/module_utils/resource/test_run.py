# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine over a server: preview and run, races, failures half way, the twin that reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.interface import Api
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ApiError,
    Conflict,
    FleetError,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.result import Result
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import (
    run,
    run_info,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    DesiredResource,
    ResourceChange,
)
from tests.unit.module_utils.resource.resource_cases import SHELF, FakeApi

ONE: dict[str, Any] = {"room": "hall", "name": "s1"}


def shelf(api: FakeApi, *, check: bool = False, **options: Any) -> Result:
    return run(SHELF, {**ONE, **options}, api, check)


def test_a_preview_and_the_run_agree() -> None:
    api = FakeApi({"s1": {"comment": "a", "books": {1}}})
    for options in (
        {"comment": "b", "books": [2]},
        {"state": "absent", "force": True},
        {"books": [5]},
    ):
        foreseen = shelf(api, check=True, **options)
        count = len(api.written)
        made = shelf(api, **options)
        assert (made.changed, made.diff) == (foreseen.changed, foreseen.diff) == (True, made.diff)
        assert made.values["shelf"] == foreseen.values["shelf"]
        assert made.values["done"] == foreseen.values["plan"]
        assert foreseen.values["done"] == []
        assert len(api.written) > count
        assert not shelf(api, **options).changed


def test_check_mode_writes_nothing() -> None:
    api = FakeApi()
    assert shelf(api, check=True, books=[1]).changed
    assert api.written == []


def test_a_call_can_be_a_task_whose_warnings_are_reported() -> None:
    api = FakeApi()
    table = replace(SHELF, create_call=replace(SHELF.create_call, is_task=True))
    made = run(table, {**ONE, "books": [1]}, api, False)
    assert made.values["done"][0] == "Create shelf 'hall/s1'"
    assert made.warnings == ("Create shelf 'hall/s1': it creaks",)
    assert made.values["shelf"]["books"] == [1]
    assert not run(table, {**ONE, "books": [1]}, api, False).changed


def test_a_failure_half_way_has_what_was_done() -> None:
    api = FakeApi()

    def fail(method: str, _data: dict[str, Any]) -> None:
        if method == "PUT":
            raise ApiError(answer="no")

    api.before_write = fail
    with pytest.raises(ApiError) as failure:
        shelf(api, books=[1])
    assert failure.value.details["done"] == ["Create shelf 'hall/s1'"]
    assert failure.value.came_after_changes


def test_a_conflict_that_remains_is_raised_with_its_own_words() -> None:
    api = FakeApi({"s1": {"books": {1}}})

    def fail(_method: str, _data: dict[str, Any]) -> None:
        raise Conflict(answer="not today", reason="protected")

    api.before_write = fail
    with pytest.raises(Conflict, match="not today"):
        shelf(api, comment="x")


def test_a_run_that_is_overtaken_again_and_again_ends() -> None:
    api = FakeApi({"s1": {}})
    number = iter(range(1000))

    def meddle(_method: str, data: dict[str, Any]) -> None:
        """Change what is asked for each time, so that every plan is another one."""
        books = [int(one) for one in str(data.get("book", "0")).split(",")]
        api.shelves["s1"]["books"] = {books[0]} if next(number) % 2 else set(books[1:])

    api.before_write = meddle
    with pytest.raises(FleetError):
        shelf(api, books=[1, 2, 3, 4])
    assert len(api.written) < 20


def test_what_does_not_last_is_an_error() -> None:
    api = FakeApi({"s1": {"comment": "a"}})
    sent: list[str] = []
    api.before_write = lambda method, data: sent.append(f"{method} {data.pop('comment')}")
    with pytest.raises(Conflict, match="these still differ: comment") as failure:
        shelf(api, comment="b")
    assert sent == ["PUT b"]
    assert failure.value.details["done"] == ["Set comment of shelf 'hall/s1'"]


def test_the_check_before_the_first_write_can_refuse_and_warn() -> None:
    asked: list[ResourceChange] = []

    def look(_client: Api, _desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
        asked.append(change)
        if change.deletes:
            raise Conflict(answer="it is used")
        return ("mind the gap",)

    table = replace(SHELF, precheck=look)
    api = FakeApi({"s1": {"comment": "a"}})
    assert run(table, {**ONE, "comment": "a"}, api).warnings == ()
    assert asked == [], "nothing differs, so nothing is asked"
    for check in (True, False):
        assert run(table, {**ONE, "comment": f"b{check}"}, api, check).warnings == ("mind the gap",)
        with pytest.raises(Conflict, match="it is used"):
            run(table, {**ONE, "state": "absent"}, api, check)


def test_info_of_a_listing_that_is_whole() -> None:
    api = FakeApi({"s2": {"comment": "b"}, "s1": {"size": "4"}})
    found = run_info(SHELF, {"room": "hall"}, api)
    assert [row["name"] for row in found.values["shelfs"]] == ["s1", "s2"]
    assert found.values["shelfs"][0] == shelf(api).values["shelf"]
    assert run_info(SHELF, {**ONE, "name": "s9"}, api).values["shelfs"] == []
    assert not found.changed


def test_info_of_a_listing_that_lacks_members_reads_each() -> None:
    api = FakeApi({"s2": {"books": {3}}, "s1": {}})
    found = run_info(replace(SHELF, list_is_whole=False), {"room": "hall"}, api)
    assert [row["books"] for row in found.values["shelfs"]] == [[], [3]]
