# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alarms: storages, quotas, quorum, backups and drift, each once at its beginning and end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import (
    advance,
    is_slow_due,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import (
    EventOptions,
    ReadFailure,
    SitePosition,
    SlowChecks,
)
from tests.labs.events import NOW, OPTIONS, World

HOUR = 3600
Seen = list[tuple[str, Any]]


def storage(used: int, node: str = "pve1", **values: Any) -> dict[str, Any]:
    return {
        "type": "storage",
        "storage": "local",
        "node": node,
        "status": "available",
        "content": "images",
        "disk": used,
        "maxdisk": 100,
        **values,
    }


class Watch:
    """Reads a world again and again."""

    def __init__(self, wanted: EventOptions = OPTIONS) -> None:
        self.world = World()
        self.wanted = wanted
        self.position = SitePosition()

    def read(self, checks: SlowChecks | None = None, **more: Any) -> list[dict[str, Any]]:
        """Return the events of a reading half a minute later."""
        self.world.now += 30
        reading = replace(self.world.read(self.position, checks=checks), **more)
        self.position, events = advance(self.position, reading, self.wanted)
        return events

    def types(self, checks: SlowChecks | None = None, **more: Any) -> list[str]:
        return [event["type"] for event in self.read(checks, **more)]


def test_a_storage_above_its_limit() -> None:
    watch = Watch()
    watch.world.storages = [storage(89)]
    assert watch.types() == []
    watch.world.storages = [storage(91)]
    (event,) = watch.read()
    assert (event["type"], event["storage"], event["node"]) == (
        "storage_above_limit",
        "local",
        "pve1",
    )
    assert (event["used"], event["total"], event["percent"], event["limit"]) == (91, 100, 91.0, 90)
    assert watch.types() == []
    watch.world.storages = [storage(88)]
    assert watch.types() == [], "an alarm ends two points below the limit"
    watch.world.storages = [storage(87)]
    (event,) = watch.read()
    assert (event["type"], event["percent"]) == ("storage_below_limit", 87.0)
    assert watch.types() == []


def test_a_storage_that_is_full_at_the_start_is_reported() -> None:
    watch = Watch()
    watch.world.storages = [storage(95)]
    assert watch.types() == ["storage_above_limit"]


def test_a_shared_storage_is_reported_once_and_while_it_is_not_available_it_stays() -> None:
    watch = Watch()
    full = [storage(95, node, shared=1, storage="ceph") for node in ("pve1", "pve2")]
    watch.world.storages = full
    (event,) = watch.read()
    assert (event["storage"], event["node"]) == ("ceph", "")
    watch.world.storages = [{**row, "status": "unknown", "maxdisk": 0} for row in full]
    assert watch.types() == []
    watch.world.storages = []
    assert watch.types() == ["storage_below_limit"], "a storage that is gone ends its alarm"


def test_a_quota_at_its_limit() -> None:
    watch = Watch(replace(OPTIONS, quotas={"acme": {"vms": 10, "cores": 0}}))
    for vmid in range(100, 109):
        watch.world.create(vmid, tags="tenant_acme")
    (event,) = watch.read()
    assert (event["type"], event["tenant"], event["resource"]) == (
        "quota_above_limit",
        "acme",
        "vms",
    )
    assert (event["used"], event["quota"], event["percent"]) == (9, 10, 90.0)
    watch.world.destroy(100)
    assert "quota_below_limit" in watch.types()


def test_a_quota_of_disks_is_judged_by_their_sizes_alone() -> None:
    watch = Watch(replace(OPTIONS, quotas={"acme": {"disk": 100}}))
    watch.world.create(100, tags="tenant_acme")
    assert watch.types() == []
    (event,) = watch.read(SlowChecks(disks={100: 95}))
    assert (event["resource"], event["used"]) == ("disk", 95)
    assert watch.types() == [], "the sizes are not known in this reading"
    assert watch.types(SlowChecks(failed={"disks": ReadFailure("NetworkError", "down")})) == [
        "reading_failed"
    ]
    assert watch.types() == []
    assert watch.types(SlowChecks(disks={100: 5})) == ["quota_below_limit", "reading_restored"]


def test_the_quorum() -> None:
    watch = Watch()
    watch.read()
    assert watch.types(quorate=False) == ["quorum_lost"]
    assert watch.types(quorate=False) == []
    assert watch.types() == ["quorum_restored"]


def test_a_missing_backup() -> None:
    watch = Watch(replace(OPTIONS, max_age=26.0 * HOUR))
    watch.world.create(100, tags="tenant_acme")
    watch.world.create(101)
    watch.world.create(102)
    watch.world.create(103, template=1)
    newest = {100: NOW - 27 * HOUR, 101: NOW - HOUR}
    (event,) = watch.read(SlowChecks(newest=newest))
    assert (event["type"], event["vmid"], event["tenant"]) == ("backup_missing", 100, "acme")
    assert event["newest"] is not None
    assert event["max_age_hours"] == 26
    assert watch.types(SlowChecks(newest={101: NOW})) == [], "a guest whose backups are not known"
    assert watch.types() == []
    (event,) = watch.read(SlowChecks(newest={100: NOW, 101: NOW, 102: 0}))[:1]
    assert (event["type"], event["vmid"]) == ("backup_found", 100)


def test_a_guest_without_any_backup() -> None:
    watch = Watch(replace(OPTIONS, max_age=26.0 * HOUR))
    watch.world.create(100)
    (event,) = watch.read(SlowChecks(newest={100: 0}))
    assert (event["type"], event["newest"]) == ("backup_missing", None)


def drifted(status: str) -> SlowChecks:
    row = {
        "name": "web1",
        "kind": "vm",
        "tenant": "acme",
        "vmid": 100,
        "node": "pve1",
        "status": status,
        "options": [{"option": "cores", "wanted": 2, "actual": 4}],
    }
    return SlowChecks(drift={"vms": [row]})


def test_drift() -> None:
    watch = Watch(replace(OPTIONS, drift={"vms": []}))
    assert watch.types(drifted("in_sync")) == []
    (event,) = watch.read(drifted("drifted"))
    assert (event["type"], event["name"], event["options"]) == ("drift_found", "web1", ["cores"])
    assert watch.types() == []
    assert watch.types(drifted("unknown")) == []
    assert watch.types(drifted("drifted")) == []
    assert watch.types(drifted("in_sync")) == ["drift_ended"]


def test_the_slow_part_is_due_at_its_interval() -> None:
    wanted = replace(OPTIONS, max_age=1.0)
    assert not is_slow_due(SitePosition(), NOW, OPTIONS)
    assert is_slow_due(SitePosition(), NOW, wanted)
    assert not is_slow_due(SitePosition(checked=NOW), NOW + 3599, wanted)
    assert is_slow_due(SitePosition(checked=NOW), NOW + 3600, wanted)


@pytest.mark.parametrize("checks", [None, SlowChecks(newest={})])
def test_a_site_that_is_down_ends_no_alarm(checks: SlowChecks | None) -> None:
    watch = Watch()
    watch.world.storages = [storage(95)]
    watch.read()
    failed = replace(watch.world.failed(), checks=checks)
    _position, events = advance(watch.position, failed, OPTIONS)
    assert [event["type"] for event in events] == ["site_unreachable"]
