# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module power: tiers, bulk actions, guests that do not stop, and runs that are killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.power import (
    power_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.power import execute
from ansible_collections.pve.fleet.plugins.module_utils._operation.maintenance.power.run import run
from tests.cases import strides
from tests.labs.maintenance import Places, kill_at, places, put_vm
from tests.modules.estate_lab import Lab

pytestmark = pytest.mark.usefixtures("fast")

BULK = "/cluster/bulk-action/guest"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def populate(lab: Lab) -> Places:
    """Two databases, two web servers and a container of acme on three nodes; a VM that does not
    run; and running guests that are not of acme.
    """
    for vmid, order, node in ((401, 1, 1), (402, 1, 2), (403, 2, 2), (404, 2, 3)):
        config = {"memory": "512", "startup": f"order={order}", "onboot": "1"}
        put_vm(lab, vmid, config, node=f"pve{node}")
    config = {"hostname": "ct405", "memory": "512", "rootfs": "ceph:vm-405-disk-0,size=2G"}
    entry = {"node": "pve3", "running": True, "config": {**config, "tags": "tenant_acme"}}
    lab.simulator.ask("POST", "/containers/405", entry)
    put_vm(lab, 406, {"memory": "512"}, running=False)
    put_vm(lab, 407, {"memory": "512"}, tags=["tenant_globex"])
    put_vm(lab, 408, {"memory": "512"}, tags=[])
    return places(lab)


def power(lab: Lab, state: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
    given = {"state": state, "tenants": ["acme"], **options}
    return lab.run("power", check=check, **given)


def done(lab: Lab, state: str, **options: Any) -> dict[str, Any]:
    result = power(lab, state, **options)
    assert not result.get("failed"), result["msg"]
    return result


def running(lab: Lab) -> list[int]:
    return running_in(places(lab))


def running_in(found: Places) -> list[int]:
    return sorted(vmid for vmid, (_node, runs) in found.items() if runs and vmid > 400)


def tiers(result: dict[str, Any]) -> list[tuple[int | None, list[int]]]:
    return [
        (tier["order"], [guest["vmid"] for guest in tier["guests"]])
        for tier in result["power"]["tiers"]
    ]


def bulk_actions(lab: Lab) -> list[str]:
    return [one["path"] for one in lab.simulator.writes() if BULK in one["path"]]


def test_an_estate_stops_and_starts_in_tiers(lab: Lab, tmp_path: Path) -> None:
    """Guests of others run on; what ran before runs again, and the second run changes nothing."""
    before = populate(lab)
    record = str(tmp_path / "power.json")
    lab.simulator.reset_log()
    checked = power(lab, "stopped", check=True, record=record)
    assert lab.simulator.writes() == []
    assert not Path(record).exists()
    assert tiers(checked) == [(None, [405]), (2, [403, 404]), (1, [401, 402])]
    stopped = done(lab, "stopped", record=record)
    assert stopped["plan"] == checked["plan"] == stopped["done"]
    assert (stopped["diff"], stopped["report"][:-1]) == (checked["diff"], checked["report"][:-1])
    assert (checked["report"][-1], stopped["report"][-1]) == (
        "Plan: 5 to change",
        "Done: 5 changed",
    )
    assert running(lab) == [407, 408]
    assert bulk_actions(lab) == [f"{BULK}/shutdown"] * 2
    assert sorted(json.loads(Path(record).read_text())["stopped"]) == [
        "401",
        "402",
        "403",
        "404",
        "405",
    ]
    again = done(lab, "stopped", record=record)
    assert (again["changed"], again["report"]) == (False, ["Done: nothing to do"])
    started = done(lab, "started", record=record)
    assert tiers(started) == [(1, [401, 402]), (2, [403, 404]), (None, [405])]
    assert started["done"] == started["plan"]
    assert places(lab) == before
    assert json.loads(Path(record).read_text()) == {"stopped": {}}
    assert not done(lab, "started", record=record)["changed"]


def test_a_start_without_its_record_is_refused(lab: Lab, tmp_path: Path) -> None:
    """Guests that were stopped on purpose must not start because a path is wrong."""
    populate(lab)
    done(lab, "stopped")
    lab.simulator.reset_log()
    record = str(tmp_path / "power.json")
    for check in (True, False):
        result = power(lab, "started", check=check, record=record)
        assert result["error"]["reason"] == "no record"
        assert f"The record {record} could not be used: there is no such file" in result["msg"]
    result = power(lab, "started", selection="recorded")
    assert "'recorded' needs a record" in result["msg"]
    assert lab.simulator.writes() == []
    found = power(lab, "started", check=True, record=record, selection="onboot")
    assert tiers(found) == [(1, [401, 402]), (2, [403, 404])]


def test_a_stop_that_changes_nothing_leaves_a_record(lab: Lab, tmp_path: Path) -> None:
    """So that the start after it starts nothing, instead of missing the record."""
    populate(lab)
    done(lab, "stopped")
    record = str(tmp_path / "power.json")
    assert not done(lab, "stopped", record=record)["changed"]
    assert not done(lab, "started", record=record)["changed"]


def test_a_relative_path_of_a_record_is_refused(lab: Lab) -> None:
    """The directory of a job is removed with the record; in AWX 24.6, with each job."""
    populate(lab)
    lab.simulator.reset_log()
    result = power(lab, "stopped", record="power.json")
    assert "'power.json' is a relative path" in result["msg"]
    assert lab.simulator.writes() == []


def test_without_a_record_those_start_that_start_with_their_node(lab: Lab) -> None:
    populate(lab)
    done(lab, "stopped", exclude=["vm404", 403])
    assert running(lab) == [403, 404, 407, 408]
    assert tiers(power(lab, "started", check=True)) == [(1, [401, 402])]
    found = power(lab, "started", check=True, selection="all")
    assert tiers(found) == [(1, [401, 402]), (None, [405, 406])]


def test_bulk_actions_need_fewer_requests(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty guests of one tier: all requests of a start, and of twenty single starts."""
    for vmid in range(410, 430):
        put_vm(lab, vmid, {"memory": "512"}, running=False)
    counts: list[int] = []
    for since in ((9, 1), (10, 0)):
        monkeypatch.setattr(execute, "_BULK_SINCE", since)
        lab.simulator.reset_log()
        done(lab, "started", selection="all")
        writes = len(lab.simulator.writes())
        assert writes == (1 if since == (9, 1) else 20)
        counts.append(len(lab.simulator.log()))
        done(lab, "stopped")
    print(f"requests: {counts[0]} with a bulk action, {counts[1]} without")
    assert 2 * counts[0] <= counts[1]


def test_old_versions_start_guest_by_guest(old: Lab) -> None:
    """Bulk actions of the cluster came with 9.1."""
    for vmid in (401, 402):
        put_vm(old, vmid, {"memory": "512"})
    old.simulator.reset_log()
    done(old, "stopped")
    assert running(old) == []
    done(old, "started", selection="all")
    assert running(old) == [401, 402]
    assert bulk_actions(old) == []


@pytest.mark.parametrize("policy", ["fail", "leave", "force"])
def test_a_guest_that_does_not_shut_down(lab: Lab, policy: str) -> None:
    populate(lab)
    lab.simulator.steer("/vms/403", {"acpi": False})
    result = power(lab, "stopped", unresponsive=policy, shutdown_timeout=1)
    if policy == "fail":
        assert result["failed"]
        assert "vm403 (403)" in result["msg"]
        assert "start order 2" in result["msg"]
        assert running(lab) == [401, 402, 403, 407, 408]
        assert result["changed"]
        assert result["report"][-1] == "Done: 2 changed, 2 unchanged, 1 failed"
        assert not any("vm401" in line for line in result["report"])
        return
    assert not result.get("failed"), result["msg"]
    left = [403] if policy == "leave" else []
    assert running(lab) == sorted([*left, 407, 408])
    assert any("vm403 (403)" in text for text in result["warnings"]) == (policy == "leave")


def test_guests_of_the_ha_manager_have_requests_of_their_own(lab: Lab) -> None:
    populate(lab)
    lab.client.write("POST", "cluster", "ha", "resources", data={"sid": "vm:403"})
    done(lab, "stopped")
    assert running(lab) == [407, 408]
    done(lab, "started")
    assert 403 in running(lab)


def test_the_next_tier_waits_for_the_health_of_the_tier_before(lab: Lab) -> None:
    populate(lab)
    done(lab, "stopped")
    lab.client.write("PUT", "nodes", "pve1", "qemu", 401, "config", data={"agent": "1"})
    lab.simulator.steer("/vms/401", {"agent": "silent"})
    result = power(lab, "started", wait_for="agent", wait_timeout=1)
    assert result["failed"]
    assert "vm401 (401)" in result["msg"]
    assert 403 not in running(lab)


def test_a_tenant_without_guests_is_refused(lab: Lab) -> None:
    populate(lab)
    lab.simulator.reset_log()
    assert power(lab, "stopped", tenants=["acmee"])["error"]["category"] == "NotFound"
    assert "names no tenant" in power(lab, "stopped", tenants=[""])["msg"]
    assert lab.simulator.writes() == []


def test_a_misspelt_guest_in_exclude_is_refused(lab: Lab) -> None:
    before = populate(lab)
    result = power(lab, "stopped", exclude=["vm4041"])
    assert "(did you mean 'vm404'?)" in result["msg"]
    assert power(lab, "stopped", exclude=["999"])["failed"]
    assert places(lab) == before
    done(lab, "stopped", exclude=["VM404", 403])
    assert running(lab) == [403, 404, 407, 408]


def test_tenants_of_an_estate_that_do_not_exist_yet_are_skipped_with_a_warning(lab: Lab) -> None:
    populate(lab)
    refused = power(lab, "stopped", tenants=["acme", "initech"])
    assert "there is no tenant 'initech'" in refused["msg"]
    result = done(lab, "stopped", tenants=["acme", "initech"], unknown_tenants="warn")
    assert result["warnings"] == ["tenants: there is no tenant 'initech' that this login can see"]
    assert running(lab) == [407, 408]
    nothing = power(lab, "stopped", tenants=["initech"], unknown_tenants="warn")
    assert "there is no tenant 'initech'" in nothing["msg"]


def test_a_locked_guest_is_named_before_the_first_write(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/vms/401", {"lock": "backup"})
    lab.simulator.reset_log()
    result = power(lab, "stopped", task_timeout=2)
    assert result["failed"]
    assert "vm401" in result["msg"]


def test_the_next_run_waits_for_a_bulk_action_and_completes_the_rest(lab: Lab) -> None:
    populate(lab)
    lab.simulator.steer("/settings", {"task_ms": "qmshutdown=700"})
    data = {"vms": ["403", "404"]}
    lab.client.write("POST", "cluster", "bulk-action", "guest", "shutdown", data=data)
    lab.simulator.steer("/settings", {"task_ms": "qmshutdown=20"})
    result = done(lab, "stopped")
    assert running(lab) == [407, 408]
    assert tiers(result) == [(None, [405]), (1, [401, 402])]


@pytest.mark.parametrize("stride", strides(3))
def test_a_run_that_is_killed_anywhere_is_completed_by_the_next(
    lab: Lab, tmp_path: Path, stride: int
) -> None:
    """Before and after each write of both halves: the next run completes it, and what ran runs."""
    before = populate(lab)
    given = {"tenants": ["acme"], "record": str(tmp_path / "power.json")}
    for state in ("stopped", "started"):
        point = 1 - stride
        is_killed = True
        while is_killed:
            point += stride
            if state == "started":
                done(lab, "stopped", **given)
            options = {**given, "state": state}
            is_killed = kill_at(lab, point, run, power_spec(), options) is None
            done(lab, state, **given)
            assert running(lab) == ([407, 408] if state == "stopped" else running_in(before))
            done(lab, "started", **given)
            assert places(lab) == before, f"{state}, killed at point {point}"
        assert point > 3


def test_a_lost_answer_to_a_bulk_action(lab: Lab) -> None:
    populate(lab)
    lab.simulator.fault(method="POST", path=f"{BULK}/shutdown$", drop="after", times=5)
    done(lab, "stopped")
    lab.simulator.clear_faults()
    assert running(lab) == [407, 408]


def test_a_state_that_cannot_be_read_after_a_bulk_action(lab: Lab) -> None:
    """The result names each guest whose state is not known, and the next run completes the rest."""
    populate(lab)
    lab.client.task("POST", "nodes", "pve3", "lxc", 405, "status", "stop")
    path = "^/nodes/pve2/qemu$"  # it is read twice before the first write
    lab.simulator.fault(method="GET", path=path, nth=3, times=None, status=403)
    result = power(lab, "stopped")
    lab.simulator.clear_faults()
    assert result["failed"]
    assert result["changed"]
    assert len(result["error"]["unverified"]) == 2
    done(lab, "stopped")
    assert running(lab) == [407, 408]


def test_a_record_that_is_none_is_refused(lab: Lab, tmp_path: Path) -> None:
    populate(lab)
    (tmp_path / "power.json").write_text("[]")
    for path in (tmp_path / "power.json", tmp_path / "none" / "power.json"):
        result = power(lab, "stopped", record=str(path))
        assert result["error"]["reason"] == "record unusable"
