# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate with replication jobs and backup jobs of the guests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.labs.relocate import make_guest, moved, options, prepare, remove_marked, state, unlock
from tests.labs.replicas import TANK
from tests.modules.estate_lab import Lab

pytestmark = pytest.mark.usefixtures("fast")
VMID = 20300
JOB = {"schedule": "*/5", "rate": 10, "comment": "to the other room"}
real_send = ProxmoxerTransport.send
BACKUP = {"schedule": "02:00", "storage": "local"}


def replicas(lab: Lab) -> dict[str, Any]:
    return {row["id"]: row for row in lab.client.get("cluster", "replication")}


def backed_up(lab: Lab) -> dict[str, str]:
    """Return the VMIDs of the backup jobs with a list of guests."""
    return {row["id"]: str(row.get("vmid")) for row in lab.client.get("cluster", "backup")}


@pytest.fixture
def away(unused: Lab, munich: Lab) -> Lab:
    """The other site; both have a pool of ZFS, and a backup job `nightly`."""
    prepare(munich)
    for lab, vmids in ((unused, f"{VMID},9000"), (munich, "9000")):
        lab.client.write("POST", "storage", data=TANK)
        data = {"id": "nightly", "vmid": vmids, **BACKUP}
        lab.client.write("POST", "cluster", "backup", data=data)
    return munich


@pytest.fixture
def copied(unused: Lab, away: Lab) -> Iterator[dict[str, Any]]:
    """A VM with two replication jobs; its node removes the jobs that are marked for it, a moment
    later. The options of its move.
    """
    config = {"vmid": VMID, "name": "mover", "tags": "tenant_acme", "scsi0": "tank:1"}
    unused.client.task("POST", "nodes", "pve1", "qemu", data=config)
    for number, node in enumerate(("pve2", "pve3")):
        data = {"id": f"{VMID}-{number}", "type": "local", "target": node, **JOB}
        unused.client.write("POST", "cluster", "replication", data=data)

    def send(transport: ProxmoxerTransport, request: Request) -> Any:
        answer = real_send(transport, request)
        if request.method == "DELETE" and "replication" in request.path:
            with mock.patch.object(ProxmoxerTransport, "send", real_send):
                remove_marked(unused)
        return answer

    with mock.patch.object(ProxmoxerTransport, "send", send):
        yield options(unused, away, vms=["mover"], replication_targets={"pve3": ""})


def test_replication_and_backup_jobs_come_along(
    unused: Lab, away: Lab, copied: dict[str, Any]
) -> None:
    """Check mode shows the writes of the run, and the job that ends."""
    foreseen = unused.run("relocate", check=True, **copied)
    (row,) = foreseen["guests"]
    assert row["left_behind"] == ["replication to pve3"]
    assert row["backup"] == "in job nightly, a new chain"
    assert "without replication to pve3, backup in job nightly, a new chain" in str(foreseen)
    made = moved(unused, copied)
    assert made["plan"] == made["done"] == foreseen["plan"]
    label = f"VM 'mover' ({VMID}) at site"
    assert made["done"] == [
        f"Record the move of {label} vienna in its notes",
        f"Delete replication job '{VMID}-0' at site vienna",
        f"Delete replication job '{VMID}-1' at site vienna",
        f"Move {label} vienna offline to site munich as {VMID} on node pve1",
        f"Put {label} munich into pool acme",
        f"Create replication job '{VMID}-0' at site munich",
        "Set vms of backup job 'nightly' at site munich",
        f"Record that {label} munich is proven",
    ]
    assert replicas(unused) == {}
    there = replicas(away)
    assert there.keys() == {f"{VMID}-0"}
    job = there[f"{VMID}-0"]
    assert (job["target"], job["comment"], job["schedule"]) == ("pve2", JOB["comment"], "*/5")
    assert backed_up(away)["nightly"] == f"9000,{VMID}"
    assert not moved(unused, copied)["changed"]
    due = moved(unused, {**copied, "hold": "0s"})
    unlock({"vienna": unused}, due["commands"])
    moved(unused, copied)
    assert backed_up(unused)["nightly"] == "9000"


def test_the_way_back_restores_the_replication(
    unused: Lab, away: Lab, copied: dict[str, Any]
) -> None:
    before = {name: (row["target"], row["comment"]) for name, row in replicas(unused).items()}
    moved(unused, copied)
    back = {**copied, "state": "returned", "confirm": ["mover"]}
    unlock({"vienna": unused}, moved(unused, back)["commands"])
    moved(unused, back)
    assert (state(unused, VMID), state(away, VMID)) == ("stopped", "gone")
    after = {name: (row["target"], row["comment"]) for name, row in replicas(unused).items()}
    assert after == before
    assert replicas(away) == {}
    assert backed_up(away)["nightly"] == "9000"
    assert backed_up(unused)["nightly"] == f"{VMID},9000"


def test_a_job_that_its_node_does_not_remove_refuses_the_move(
    unused: Lab, away: Lab, copied: dict[str, Any]
) -> None:
    """qemu-server: API2/Qemu.pm, remote_migrate_vm: a job that is being removed counts."""
    with mock.patch.object(ProxmoxerTransport, "send", real_send):
        found = unused.run("relocate", **copied)
    names = f"{VMID}-0, {VMID}-1"
    assert f"its node has not removed replication job {names} in 300 s" in found["msg"], found
    assert state(unused, VMID) == "stopped"
    for name in names.split(", "):
        unused.simulator.ask("PUT", f"/replication/{name}", {"synced": 0})
    moved(unused, copied)
    assert replicas(away).keys() == {f"{VMID}-0"}


def test_a_backup_job_that_the_target_lacks(unused: Lab, away: Lab) -> None:
    make_guest(unused, "offline", VMID)
    away.client.write("DELETE", "cluster", "backup", "nightly")
    given = options(unused, away, vms=["mover"])
    (row,) = unused.run("relocate", check=True, **given)["guests"]
    assert (row["left_behind"], row["backup"]) == (["backup job nightly"], "in no job")
    assert moved(unused, given)["guests"][0]["outcome"] == "held"


def test_guests_that_join_a_backup_job_at_once_are_all_in_it(unused: Lab, away: Lab) -> None:
    vmids = [make_guest(unused, "offline", VMID + one, f"w{one}") for one in range(4)]
    path = ("cluster", "backup", "nightly")
    unused.client.write("PUT", *path, data={"vmid": ",".join(map(str, vmids)), **BACKUP})
    moved(unused, options(unused, away, tenant="acme", parallel=4))
    assert backed_up(away)["nightly"] == ",".join(map(str, sorted([9000, *vmids])))
