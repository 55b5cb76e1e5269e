# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module tidy: what it lists, what it removes, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._vm.live import making
from tests.modules.estate_lab import Lab

MARKER = "<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"
DONE = "<!-- pve.fleet: origin=9000 -->"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no task works on is found to be abandoned soon."""
    monkeypatch.setattr(making, "QUIET", 0.2)


def there(lab: Lab, vmid: int, *tags: str, running: bool = False, **config: Any) -> None:
    """Put a VM there as an interrupted run or task left it."""
    disk = {"scsi0": f"ceph:vm-{vmid}-disk-0,size=1G"}
    memory = {"vmstate": config.pop("vmstate", None)}
    entry = {"node": "pve2", "name": f"vm-{vmid}", "tags": list(tags), "running": running}
    lab.simulator.ask("POST", f"/vms/{vmid}", {**entry, "config": {**disk, **config}})
    lab.simulator.steer(f"/vms/{vmid}", {"config": memory})


def numbers(lab: Lab) -> set[int]:
    return {int(row["vmid"]) for row in lab.simulator.ask("GET", "/vms")}


def found(result: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """Return kind and remedy of each VM."""
    assert not result.get("failed"), result
    return {row["vmid"]: (row["kind"], row["remedy"]) for row in result["unfinished"]}


def test_abandoned_vms_of_the_tenant_are_removed(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    there(quiet, 20101, "tenant_acme", description=f"its notes\n{MARKER}")
    there(quiet, 20102, "tenant_acme", description=DONE)
    there(quiet, 20103, "tenant_acme")
    there(quiet, 20104, description=MARKER.replace("acme", "globex"))
    there(quiet, 20105, "tenant_globex", description=MARKER.replace("acme", "globex"))
    there(quiet, 20106, "tenant_acme", running=True, description=MARKER)
    before = numbers(quiet)
    quiet.simulator.reset_log()
    foreseen = quiet.run("tidy", check=True, tenant="acme")
    assert quiet.simulator.writes() == []
    assert numbers(quiet) == before
    tidied = quiet.run("tidy", tenant="acme")
    expected = dict.fromkeys((20100, 20101), ("creation", "remove"))
    assert found(foreseen) == found(tidied) == {**expected, 20106: ("creation", "by_hand")}
    assert foreseen["diff"] == tidied["diff"]
    assert foreseen["plan"] == tidied["plan"] == tidied["done"]
    assert foreseen["changed"]
    assert tidied["changed"]
    assert before - numbers(quiet) == {20100, 20101}
    again = quiet.run("tidy", tenant="acme")
    assert not again["changed"]
    assert found(again) == {20106: ("creation", "by_hand")}


@pytest.mark.parametrize(
    ("config", "kind", "command"),
    [
        ({"lock": "migrate"}, "migration", "qm unlock 20100"),
        ({"lock": "snapshot"}, "snapshot", "qm unlock 20100"),
        ({"lock": "snapshot-delete"}, "snapshot", "qm unlock 20100"),
        ({"lock": "rollback"}, "rollback", "qm unlock 20100"),
        ({"lock": "suspending"}, "hibernation", "qm unlock 20100"),
        ({"lock": "clone", "description": MARKER}, "creation", "qm unlock 20100"),
        ({"vmstate": "ceph:vm-20100-state-x"}, "vmstate", "--delete vmstate"),
        ({"template": "1"}, "conversion", "state=template"),
        ({"description": "<!-- pve.fleet: drive=stale -->"}, "cloud_init", "cloud-init options"),
    ],
)
def test_what_is_listed_only(
    quiet: Lab, config: dict[str, Any], kind: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ansible_collections.pve.fleet.plugins.module_utils._tidy.run._PATIENCE", 0.5
    )
    there(quiet, 20100, "tenant_acme", **config)
    quiet.simulator.reset_log()
    result = quiet.run("tidy", tenant="acme")
    assert found(result) == {20100: (kind, "by_hand")}
    assert command in result["unfinished"][0]["next_step"]
    assert not result["changed"]
    assert quiet.simulator.writes() == []
    assert found(quiet.run("tidy", tenant="globex")) == {}


@pytest.mark.parametrize("lock", ["backup", "suspended"])
def test_locks_that_were_chosen_are_not_listed(quiet: Lab, lock: str) -> None:
    there(quiet, 20100, "tenant_acme", lock=lock, vmstate="ceph:vm-20100-state-x")
    assert found(quiet.run("tidy", tenant="acme")) == {}


def test_a_vm_that_is_being_made_is_not_removed(quiet: Lab) -> None:
    """The clone ends while it is waited for, and the VM is taken over by a run in between."""
    there(quiet, 20100, description=MARKER)
    path = "/nodes/pve2/qemu/20100/pending$"
    completed = [["PUT", "/vms/20100", {"config": {"description": DONE, "tags": "tenant_acme"}}]]
    quiet.simulator.fault(method="GET", path=path, nth=3, steer=completed)
    assert found(quiet.run("tidy", tenant="acme")) == {}
    assert 20100 in numbers(quiet)


def test_a_vm_that_a_run_takes_over_right_before_is_left_alone(quiet: Lab) -> None:
    there(quiet, 20100, description=MARKER)
    there(quiet, 20101, description=MARKER)
    count = [0]
    quiet.simulator.reset_log()
    assert quiet.run("tidy", check=True, tenant="acme")["changed"]
    path = "/nodes/pve2/qemu/20100/pending"
    count[0] = sum(1 for row in quiet.simulator.log() if row["path"] == path)
    taken = [["PUT", "/vms/20100", {"config": {"description": MARKER.replace("gone", "mine")}}]]
    quiet.simulator.fault(method="GET", path=f"{path}$", nth=count[0] + 1, steer=taken)
    result = quiet.run("tidy", tenant="acme")
    assert result["error"]["reason"] == "no longer abandoned"
    assert 20100 in numbers(quiet)
    assert 20101 not in numbers(quiet)
