# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate with guests that move by an archive, because `remote_migrate` cannot take them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.labs.relocate import (
    NFS,
    PBS,
    add_vaults,
    make_guest,
    make_managed,
    managed_in,
    moved,
    options,
    prepare,
    share_vaults,
    state,
    unlock,
)
from tests.modules.estate_lab import Lab
from tests.modules.test_plans import written

VMID = 20300
_send = ProxmoxerTransport.send


@pytest.fixture
def away(unused: Lab, munich: Lab, request: pytest.FixtureRequest) -> Lab:
    """The other site, with the storage of archives."""
    prepare(munich)
    add_vaults(unused, munich, getattr(request, "param", NFS))
    return munich


@pytest.fixture(autouse=True)
def shared(unused: Lab, away: Lab) -> Iterator[None]:
    """The other site sees each archive at once."""

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        if request.path[-1] == "content":
            share_vaults(unused, away)
        return _send(transport, request)

    with mock.patch.object(ProxmoxerTransport, "send", send):
        yield


def given_for(here: Lab, away: Lab, **more: Any) -> dict[str, Any]:
    maps: dict[str, Any] = {"storage": "local-lvm", "networks": {"vmbr0": "vmbr1"}}
    archive = {"archive_storage": "nas", "archive_without": ["snapshots"]}
    return options(here, away, vms=["mover"], hold="0s", **maps, **archive, **more)


def make(lab: Lab, mode: str) -> int:
    """Make a guest that `remote_migrate` refuses because of its snapshot."""
    vmid = make_guest(lab, mode)
    kind = "lxc" if mode == "restart" else "qemu"
    lab.client.task("POST", "nodes", "pve1", kind, vmid, "snapshot", data={"snapname": "before"})
    time.sleep(1.1)  # a start in the second of a backup may be one after it
    return vmid


def go(here: Lab, away: Lab, given: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a run, after root has done the commands of it."""
    found = moved(here, given)
    unlock({"vienna": here, "munich": away}, found["commands"])
    return found


def both(here: Lab, away: Lab) -> tuple[str, str]:
    return state(here, VMID), state(away, VMID)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("away", "mode"),
    [(NFS, "online"), (PBS, "offline"), (PBS, "restart"), (NFS, "restart")],
    ids=["nfs online", "pbs offline", "pbs restart", "nfs restart"],
    indirect=["away"],
)
def test_a_guest_with_snapshots_moves_by_an_archive(unused: Lab, away: Lab, mode: str) -> None:
    """Backup, lock by root, restore, proof, removal: three runs, as the role makes them. An HA
    resource is one at the target with its rule.
    """
    make(unused, mode)
    sid = f"ct:{VMID}" if mode == "restart" else f"vm:{VMID}"
    make_managed(unused, VMID, sid[:2])
    given = given_for(unused, away)
    ran = "stopped" if mode == "offline" else "running"
    foreseen = unused.run("relocate", check=True, **given)
    assert not foreseen.get("failed"), foreseen
    assert foreseen["guests"][0]["mode"] == "archive"
    assert both(unused, away) == (ran, "gone")
    first = go(unused, away, given)
    assert first["plan"] == foreseen["plan"]
    tool = "pct" if mode == "restart" else "qm"
    command = first["commands"][0]["command"]
    assert command.startswith(f"{tool} set {VMID} --lock migrate --digest ")
    assert both(unused, away) == ("stopped migrate", "gone")
    assert not managed_in(unused)
    second = go(unused, away, given)
    assert both(unused, away) == ("stopped", ran)
    assert managed_in(away)[sid]["max_restart"] == 2
    assert away.client.get("cluster", "ha", "rules")[0]["resources"] == sid
    assert second["guests"][0]["proof"] == (None if mode == "offline" else "started")
    third = go(unused, away, given)
    assert third["guests"][0]["outcome"] == "complete"
    assert both(unused, away) == ("gone", ran)
    kind = "lxc" if mode == "restart" else "qemu"
    config = away.client.get("nodes", "pve1", kind, VMID, "config")
    assert "bridge=vmbr1" in config["net0"]
    assert config["tags"] == "tenant_acme"
    assert not moved(unused, given)["changed"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("mode", ["online", "restart"])
def test_a_guest_that_is_started_by_hand_before_the_lock_is_backed_up_again(
    unused: Lab, away: Lab, mode: str
) -> None:
    """The lock comes too late: nothing is restored from the archive, which lacks its last state."""
    make(unused, mode)
    given = given_for(unused, away)
    locking = moved(unused, given)["commands"]
    path = ("nodes", "pve1", "lxc" if mode == "restart" else "qemu", VMID, "status")
    time.sleep(1.1)
    unused.client.task("POST", *path, "start")
    unused.client.task("POST", *path, "stop")
    unlock({"vienna": unused}, locking)
    assert both(unused, away) == ("stopped migrate", "gone")
    again = go(unused, away, given)
    assert again["commands"][0]["command"].split()[1] == "unlock"
    time.sleep(1.1)
    second = go(unused, away, given)
    assert second["commands"] == locking
    assert any("Back up" in step for step in second["done"])
    go(unused, away, given)
    go(unused, away, given)
    assert both(unused, away) == ("gone", "running")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("mode", ["offline", "restart"])
def test_a_configuration_that_changes_between_backup_and_lock_is_backed_up_again(
    unused: Lab, away: Lab, mode: str
) -> None:
    """A change before the next run is noticed by the digest in the notes of the archive. After this
    run, root's command has the digest, and refuses.
    """
    make(unused, mode)
    given = given_for(unused, away)
    path = ("nodes", "pve1", "lxc" if mode == "restart" else "qemu", VMID, "config")
    first = moved(unused, given)
    assert "--digest" in first["commands"][0]["command"]
    time.sleep(1.1)
    unused.client.write("PUT", *path, data={"memory": 640})
    with pytest.raises(FleetError, match="change"):
        unlock({"vienna": unused}, first["commands"])
    again = go(unused, away, given)
    assert any("Back up" in step for step in again["done"])
    assert both(unused, away) == ("stopped migrate", "gone")
    go(unused, away, given)
    assert int(away.client.get(*path)["memory"]) == 640
    assert both(unused, away)[0] == "stopped"


@pytest.mark.usefixtures("fast")
def test_a_guest_whose_backup_fails_runs_again(unused: Lab, away: Lab) -> None:
    make(unused, "online")
    given = given_for(unused, away)
    unused.simulator.fault(task="vzdump", fail="no space left on device")
    failed = unused.run("relocate", **given)
    assert "no space left" in failed["msg"]
    assert both(unused, away) == ("running", "gone")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("mode", ["online", "restart"])
def test_a_restore_that_fails_is_repeated(unused: Lab, away: Lab, mode: str) -> None:
    """The source stays locked, and the archive is used again."""
    make(unused, mode)
    given = given_for(unused, away)
    go(unused, away, given)
    task = "vzrestore" if mode == "restart" else "qmrestore"
    away.simulator.fault(task=task, fail="lvcreate error: insufficient free space")
    failed = unused.run("relocate", **given)
    assert "insufficient free space" in failed["msg"], failed
    assert failed["guests"][0]["outcome"] == "failed"
    assert both(unused, away)[0] == "stopped migrate"
    assert both(unused, away)[1] != "running"
    away.simulator.clear_faults()
    for _number in range(4):
        found = go(unused, away, given)
        assert not any("Back up" in step for step in found["done"])
    assert both(unused, away) == ("gone", "running")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("is_early", [True, False])
def test_a_full_storage_at_the_target_is_refused_before_any_write(
    unused: Lab, away: Lab, is_early: bool
) -> None:
    """Also after the backup: the source is stopped and locked then, and the way back starts it."""
    make(unused, "online")
    given = given_for(unused, away)
    if not is_early:
        go(unused, away, given)
    before = both(unused, away)
    row = {"volid": "local-lvm:vm-9999-disk-0", "new": True, "size": 1 << 50}
    away.simulator.steer("/volumes/pve1", row)
    for lab in (unused, away):
        lab.simulator.reset_log()
    refused = unused.run("relocate", **given)
    assert "local-lvm" in refused["msg"], refused
    assert refused["error"]["reason"] == "refused move"
    assert unused.simulator.writes() == away.simulator.writes() == []
    assert both(unused, away) == before
    back = {**given, "state": "returned", "confirm": ["mover"]}
    for _number in range(2):
        go(unused, away, back)
    assert both(unused, away) == ("running", "gone")


def approved(place: Path, site: str) -> set[tuple[str, str]]:
    """Return method and path of each request of a plan at a site."""
    (part,) = [one for one in json.loads(place.read_text())["parts"] if one["site"] == site]
    return {
        (request["method"], request["path"].replace("/*/", "/pve1/"))
        for change in part["changes"]
        for request in change["requests"]
    }


@pytest.mark.usefixtures("fast")
def test_a_plan_of_a_move_by_an_archive_is_applied_until_its_end(
    unused: Lab, away: Lab, tmp_path: Path
) -> None:
    """It has the backup, the restore and the removal. Each run applies it, and the last one changes
    nothing.
    """
    make(unused, "online")
    given, place = given_for(unused, away), tmp_path / "plan.json"
    planned = unused.run("relocate", check=True, plan_file=str(place), **given)
    assert not planned.get("failed"), planned
    for lab in (unused, away):
        lab.simulator.reset_log()
    for _number in range(3):
        found = moved(unused, {**given, "apply_plan": str(place)})
        for site, lab in (("vienna", unused), ("munich", away)):
            assert set(written(lab)) <= approved(place, site)
        unlock({"vienna": unused, "munich": away}, found["commands"])
        for lab in (unused, away):
            lab.simulator.reset_log()
    assert both(unused, away) == ("gone", "running")
    again = moved(unused, {**given, "apply_plan": str(place)})
    assert not again["changed"]
    assert unused.simulator.writes() == away.simulator.writes() == []


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("is_early", [True, False])
def test_a_change_behind_the_plan_of_a_move_by_an_archive_is_refused(
    unused: Lab, away: Lab, tmp_path: Path, is_early: bool
) -> None:
    """Before the first run, and between the backup and the lock of root."""
    make(unused, "online")
    given, place = given_for(unused, away), str(tmp_path / "plan.json")
    assert not unused.run("relocate", check=True, plan_file=place, **given).get("failed")
    if not is_early:
        moved(unused, {**given, "apply_plan": place})
    path = ("nodes", "pve1", "qemu", VMID, "config")
    change = {"memory": 640} if is_early else {"cores": 2}
    unused.client.write("PUT", *path, data=change)
    if is_early:
        unused.client.task("POST", *path[:-1], "status", "stop")
    before = both(unused, away)
    for lab in (unused, away):
        lab.simulator.reset_log()
    refused = unused.run("relocate", **given, apply_plan=place)
    assert f"config {min(change)}" in refused["msg"], refused
    assert unused.simulator.writes() == away.simulator.writes() == []
    assert both(unused, away) == before


@pytest.mark.usefixtures("fast")
def test_without_the_option_and_on_the_way_back_the_guest_is_taken_back(
    unused: Lab, away: Lab
) -> None:
    for more in ({"archive_storage": None}, {"state": "returned", "confirm": ["mover"]}):
        unused.simulator.reset()
        prepare(away)
        add_vaults(unused, away)
        make(unused, "online")
        make_managed(unused, VMID)
        given = given_for(unused, away)
        go(unused, away, given)
        assert both(unused, away) == ("stopped migrate", "gone")
        back = {**given, "state": "returned", "confirm": ["mover"], **more}
        for _number in range(2):
            go(unused, away, back)
        assert both(unused, away) == ("running", "gone")
        assert f"vm:{VMID}" in managed_in(unused)
