# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate with HA resources: they leave HA at the source, and join it at the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.labs.relocate import (
    make_guest,
    make_managed,
    managed_in,
    moved,
    options,
    prepare,
    state,
    unlock,
)
from tests.modules.estate_lab import Lab

pytestmark = pytest.mark.usefixtures("fast")
VMID, SID = 20300, "vm:20300"
SETTINGS = {"state": "started", "max_restart": 2, "comment": "Wüb :-> shop"}


@pytest.fixture
def away(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


def resources(lab: Lab) -> dict[str, Any]:
    return {row["sid"]: row for row in lab.client.get("cluster", "ha", "resources")}


def rules(lab: Lab) -> dict[str, Any]:
    return {row["rule"]: row for row in lab.client.get("cluster", "ha", "rules")}


def manage(lab: Lab, vmid: int, **settings: Any) -> None:
    """Make a guest an HA resource."""
    data = {"sid": f"vm:{vmid}", **(settings or {"state": "started"})}
    lab.client.write("POST", "cluster", "ha", "resources", data=data)


def add_rule(lab: Lab, name: str, kind: str, *vmids: int, **more: Any) -> None:
    data = {"rule": name, "type": kind, "resources": ",".join(f"vm:{vmid}" for vmid in vmids)}
    lab.client.write("POST", "cluster", "ha", "rules", data={**data, **more})


@pytest.fixture
def shop(unused: Lab, away: Lab) -> dict[str, Any]:
    """A VM alone in the rule `front`, and with others in the rule `apart`; the options of its move
    to a site that has the rule `spread` instead.
    """
    make_guest(unused, "online", VMID, "shop")
    for lab, other in ((unused, 20400), (unused, 20401), (away, 20400), (away, 20401)):
        make_guest(lab, "offline", other, f"other{other}")
        manage(lab, other, state="stopped")
    manage(unused, VMID, **SETTINGS)
    add_rule(unused, "front", "node-affinity", VMID, nodes="pve1,pve2", strict=1)
    add_rule(unused, "apart", "resource-affinity", VMID, 20400, 20401, affinity="negative")
    add_rule(away, "spread", "resource-affinity", 20400, 20401, affinity="negative")
    more = {"storage_map": {"ceph": "local-lvm"}, "networks": {"vmbr0": "vmbr1"}}
    return options(unused, away, vms=["shop"], ha_rules={"apart": "spread"}, **more)


def test_an_ha_resource_moves_with_its_rules(unused: Lab, away: Lab, shop: dict[str, Any]) -> None:
    """Check mode shows the writes of the run. The source leaves HA before its move, and the target
    joins it after its proof.
    """
    foreseen = unused.run("relocate", check=True, **shop)
    made = moved(unused, shop)
    assert made["plan"] == made["done"] == foreseen["plan"]
    label = f"VM 'shop' ({VMID}) at site"
    assert made["done"] == [
        f"Record the move of {label} vienna in its notes",
        f"Delete HA resource '{SID}' at site vienna",
        f"Move {label} vienna online to site munich as {VMID} on node pve1",
        f"Put {label} munich into pool acme",
        f"Create HA resource '{SID}' at site munich",
        "Set resources of HA rule 'spread' at site munich",
        "Create HA rule 'front' at site munich",
        f"Record that {label} munich is proven",
    ]
    assert SID not in resources(unused)
    assert rules(unused).keys() == {"apart"}
    there = resources(away)[SID]
    assert {
        "state": "started",
        **{key: there[key] for key in ("max_restart", "comment")},
    } == SETTINGS
    front = rules(away)["front"]
    assert (front["nodes"], front["strict"], front["resources"]) == ("pve1,pve2", 1, SID)
    assert rules(away)["spread"]["resources"] == f"{SID},vm:20400,vm:20401"
    assert not moved(unused, shop)["changed"]


def test_the_way_back_restores_the_resource_and_its_rules(
    unused: Lab, away: Lab, shop: dict[str, Any]
) -> None:
    before = resources(unused), rules(unused)
    moved(unused, shop)
    back = {**shop, "state": "returned", "confirm": ["shop"]}
    first = moved(unused, back)
    assert first["done"][0] == f"Delete HA resource '{SID}' at site munich"
    assert SID not in resources(away)
    unlock({"vienna": unused}, first["commands"])
    foreseen = unused.run("relocate", check=True, **back)
    last = moved(unused, back)
    assert last["done"] == foreseen["plan"]
    assert (state(unused, VMID), state(away, VMID)) == ("running", "gone")
    for row in (*before[0].values(), *before[1].values()):
        row.pop("digest")
        row.pop("order", None)
    found = resources(unused), rules(unused)
    for kept, now in zip(before, found, strict=True):
        assert {name: {key: now[name][key] for key in row} for name, row in kept.items()} == kept
    assert not moved(unused, back)["changed"]


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_rule_that_the_target_lacks_is_refused_or_left_out(
    unused: Lab, away: Lab, shop: dict[str, Any], name: str
) -> None:
    given = {**shop, "ha_rules": {"apart": name}}
    if name:
        found = unused.run("relocate", **given)
        text = "it is in HA rule apart, and site munich has no HA rule missing (ha_rules)"
        assert text in found["msg"], found
        assert SID in resources(unused)
        return
    moved(unused, given)
    assert rules(away)["spread"]["resources"] == "vm:20400,vm:20401"
    assert SID in resources(away)


def test_a_resource_that_the_manager_still_works_on_is_refused(
    unused: Lab, away: Lab, shop: dict[str, Any]
) -> None:
    unused.simulator.fault(task="qmstart", id=str(VMID), fail="no memory", times=None)
    unused.simulator.steer(f"/vms/{VMID}", {"running": False})
    found = unused.run("relocate", **shop)
    assert "its HA resource must be started: wait for the HA manager" in found["msg"], found
    assert SID in resources(unused)


def test_a_source_that_a_person_puts_into_ha_leaves_it_first(
    unused: Lab, away: Lab, shop: dict[str, Any]
) -> None:
    """HA/Manager.pm, fence_recovery_cleanup: HA removes the lock of a guest on a fenced node."""
    moved(unused, shop)
    manage(unused, VMID)
    due = moved(unused, {**shop, "hold": "0s"})
    assert due["done"] == [f"Delete HA resource '{SID}' at site vienna"]
    assert due["guests"][0]["outcome"] == "root"
    assert SID not in resources(unused)


@pytest.mark.parametrize("kind", ["qemu", "lxc"])
def test_a_target_that_does_not_prove_itself_joins_nothing(
    unused: Lab, away: Lab, kind: str
) -> None:
    """The proof of a drill: the agent answers, or the guest keeps running. Without it, the hold
    time does not begin, and the source stays locked.
    """
    make_guest(unused, "offline" if kind == "qemu" else "restart", VMID)
    if kind == "qemu":
        path = ("nodes", "pve1", kind, VMID)
        unused.client.write("PUT", *path, "config", data={"agent": "1"})
        unused.client.task("POST", *path, "status", "start")
    make_managed(unused, VMID, "vm" if kind == "qemu" else "ct")
    maps = {"storage_map": {"ceph": "local-lvm"}, "networks": {"vmbr0": "vmbr1"}}
    given = options(unused, away, vms=["mover"], settle=5, wait_timeout=5, **maps)
    if kind == "qemu":
        text = "QEMU guest agent is not running"
        away.simulator.fault(method="GET", path="/agent/", status=500, message=text, times=None)
    else:
        rule = {"path": f"/lxc/{VMID}/status/current$", "status": 500, "message": "no answer"}
        away.simulator.fault(method="GET", nth=3, **rule)
    found = unused.run("relocate", retries=1, **given)
    assert found["guests"][0]["outcome"] == "failed", found
    assert managed_in(unused) == managed_in(away) == {}
    assert (state(unused, VMID), state(away, VMID)) == ("stopped migrate", "running")
    away.simulator.clear_faults()
    (row,) = moved(unused, given)["guests"]
    assert (row["proof"], row["outcome"]) == ("agent" if kind == "qemu" else "started", "held")
    assert managed_in(away).keys() == {f"{'vm' if kind == 'qemu' else 'ct'}:{VMID}"}


@pytest.mark.parametrize("is_approved", [False, True])
def test_guests_that_join_a_rule_at_once_are_all_in_it(
    unused: Lab, away: Lab, tmp_path: Path, is_approved: bool
) -> None:
    """A request writes the whole list of a rule, also if each guest has its approved plan."""
    vmids = [make_guest(unused, "offline", VMID + one, f"w{one}") for one in range(4)]
    for vmid in vmids:
        manage(unused, vmid, state="stopped")
    add_rule(unused, "front", "node-affinity", *vmids, nodes="pve1")
    given = options(unused, away, tenant="acme", parallel=4)
    if is_approved:
        file = str(tmp_path / "plan.json")
        assert not unused.run("relocate", check=True, plan_file=file, **given).get("failed")
        given["apply_plan"] = file
    moved(unused, given)
    found = rules(away)["front"]["resources"].split(",")
    assert found == [f"vm:{vmid}" for vmid in vmids]
    assert rules(unused) == {}
