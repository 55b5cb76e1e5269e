# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module failover: the guests of a lost node come up from the replicas on another one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.labs.replicas import (
    AGE,
    LEFT,
    LOST,
    TANK,
    given,
    move,
    put_container,
    put_guest,
    replicate,
)
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

DB, WEB, BOX = 701, 702, 703


@pytest.fixture
def site(unused: Lab) -> Lab:
    """Two guests of a node with replicas on another one."""
    unused.client.write("POST", "storage", data=TANK)
    put_guest(unused.simulator, DB, "db", startup="order=1")
    put_guest(unused.simulator, WEB, "web", startup="order=2")
    for vmid in (DB, WEB):
        data = {"id": f"{vmid}-0", "type": "local", "target": LEFT, "comment": "every night"}
        unused.client.write("POST", "cluster", "replication", data=data)
        replicate(unused.simulator, vmid)
    return unused


def lose(lab: Lab) -> None:
    lab.simulator.ask("PUT", f"/nodes/{LOST}", {"online": False})


def jobs(lab: Lab) -> dict[str, tuple[str, str, str]]:
    rows = lab.client.get("cluster", "replication")
    return {row["id"]: (row["source"], row["target"], row["comment"]) for row in rows}


def states(lab: Lab) -> dict[int, tuple[str, bool]]:
    rows = lab.simulator.ask("GET", "/vms")
    return {row["vmid"]: (row["node"], row["running"]) for row in rows if row["vmid"] in (DB, WEB)}


def test_guests_of_a_lost_node_come_up_from_their_replicas(site: Lab) -> None:
    lose(site)
    site.simulator.reset_log()
    options = given(site.simulator)
    foreseen = site.run("failover", check=True, **options)
    assert not foreseen.get("failed"), foreseen
    assert site.simulator.writes() == []
    marked = do(site, "failover", **options)
    assert marked["plan"] == marked["done"] == foreseen["plan"]
    assert [one["vmid"] for one in marked["moves"]] == [DB, WEB]
    assert marked["moves"][0]["source"] == f"/etc/pve/nodes/{LOST}/qemu-server/{DB}.conf"
    assert marked["moves"][0]["destination"] == f"/etc/pve/nodes/{LEFT}/qemu-server/{DB}.conf"
    assert all(row["path"].startswith("/cluster/replication") for row in site.simulator.writes())
    assert not site.run("failover", **options)["changed"], "marked twice"
    move(site.simulator, marked["moves"])
    foreseen = site.run("failover", check=True, **options)
    made = do(site, "failover", **options)
    assert made["plan"] == made["done"] == foreseen["plan"]
    assert made["moves"] == []
    assert [(row["name"], row["outcome"]) for row in made["guests"]] == [
        ("db", "up"),
        ("web", "up"),
    ]
    assert AGE <= made["recovery_point"] < AGE + 300
    age = made["recovery_point"]
    assert any(line.endswith(f", the oldest data is {age} s old") for line in made["report"])
    assert states(site) == {DB: (LEFT, True), WEB: (LEFT, True)}
    # the jobs copy the other way, and have the comment of their user
    back = (LEFT, LOST, "every night")
    assert jobs(site) == {f"{DB}-0": back, f"{WEB}-0": back}
    site.simulator.reset_log()
    again = do(site, "failover", **options)
    assert (again["changed"], again["guests"], site.simulator.writes()) == (False, [], [])


def test_a_run_that_ends_between_two_moves_is_completed(site: Lab) -> None:
    lose(site)
    options = given(site.simulator)
    marked = do(site, "failover", **options)
    move(site.simulator, marked["moves"][:1])
    again = do(site, "failover", **given(site.simulator))
    assert [one["vmid"] for one in again["moves"]] == [WEB]
    assert not states(site)[DB][1], "no guest starts before all are moved"
    move(site.simulator, again["moves"])
    do(site, "failover", **options)
    assert states(site) == {DB: (LEFT, True), WEB: (LEFT, True)}


def test_a_start_that_fails_is_repeated_by_the_next_run(site: Lab, alone: None) -> None:
    lose(site)
    options = given(site.simulator)
    move(site.simulator, do(site, "failover", **options)["moves"])
    site.simulator.fault(task="qmstart", fail="no space left on device")
    made = site.run("failover", **options)
    assert made["failed"]
    assert "no space left on device" in made["msg"]
    site.simulator.clear_faults()
    made = do(site, "failover", **options)
    assert {row["outcome"] for row in made["guests"]} <= {"up", "unchanged"}
    assert states(site) == {DB: (LEFT, True), WEB: (LEFT, True)}
    assert {comment for _source, _target, comment in jobs(site).values()} == {"every night"}


def test_networks_and_addresses_change_before_the_start(site: Lab, alone: None) -> None:
    """The run ends after the NICs have changed: the next one starts the guests and does not change
    the NICs a second time, although the table does.
    """
    sim = site.simulator
    cloud_init = {"ide2": f"tank:vm-{DB}-cloudinit,media=cdrom", "nameserver": "10.1.0.53"}
    net = "virtio=BC:24:11:00:07:01,bridge=vmbr0,tag=5"
    own = {"net0": net, "ipconfig0": "ip=10.1.0.7/24,gw=10.1.0.1", **cloud_init}
    sim.ask("PUT", f"/vms/{DB}", {"config": own})
    put_container(sim, BOX, "box", net0="name=eth0,bridge=vmbr0,ip=10.1.0.8/24", startup="order=1")
    data = {"id": f"{BOX}-0", "type": "local", "target": LEFT}
    site.client.write("POST", "cluster", "replication", data=data)
    replicate(sim, BOX)
    tables = {"networks": {"vmbr0": "vmbr1"}, "addresses": {"10.9.0.0/24": "10.8.0.0/24"}}
    lose(site)
    text = refused(site, "failover", **given(sim, **tables))["msg"]
    assert f"VM 'db' ({DB}): its NICs cannot be mapped: '10.1.0.7/24' of net0 is in no" in text
    swap = {"10.1.0.0/24": "10.2.0.0/24", "10.2.0.0/24": "10.1.0.0/24"}
    options = given(sim, networks={"vmbr0": "vmbr1", "vmbr1": "vmbr0"}, addresses=swap)
    foreseen = site.run("failover", check=True, **options)
    assert f"  db ({DB}): net0 ip 10.1.0.7/24 becomes 10.2.0.7/24" in foreseen["report"]
    marked = do(site, "failover", **options)
    assert marked["moves"] == foreseen["moves"]
    assert marked["moves"][1]["changes"] == [
        "net0 bridge vmbr0 becomes vmbr1",
        "net0 ip 10.1.0.8/24 becomes 10.2.0.8/24",
    ]
    move(sim, marked["moves"])
    forgotten = given(sim, networks={"vmbr0": "vmbr1"})
    assert "have changed since its job was marked" in refused(site, "failover", **forgotten)["msg"]
    sim.fault(task="qmstart", fail="no space left on device")
    assert site.run("failover", **options)["failed"]
    assert site.config({"node": LEFT, "vmid": DB})["net0"] == net.replace("vmbr0", "vmbr1")
    sim.clear_faults()
    made = do(site, "failover", **options)
    assert {row["outcome"] for row in made["guests"]} <= {"up", "unchanged"}
    config = site.config({"node": LEFT, "vmid": DB})
    assert config["net0"] == net.replace("vmbr0", "vmbr1")
    assert config["ipconfig0"] == "gw=10.2.0.1,ip=10.2.0.7/24"
    assert config["nameserver"] == "10.2.0.53"
    box = site.client.get("nodes", LEFT, "lxc", BOX, "config")
    assert "bridge=vmbr1" in box["net0"]
    assert "ip=10.2.0.8/24" in box["net0"]
    assert states(site) == {DB: (LEFT, True), WEB: (LEFT, True)}


def test_the_way_back(site: Lab) -> None:
    """The jobs copy to the node that was lost, and a migration brings a guest home."""
    lose(site)
    options = given(site.simulator)
    move(site.simulator, do(site, "failover", **options)["moves"])
    do(site, "failover", **options)
    site.simulator.ask("PUT", f"/nodes/{LOST}", {"online": True})
    replicate(site.simulator, DB, age=60)
    assert any("701-0" in one for one in site.simulator.ask("GET", "/replicas")[LOST])
    do(site, "vm", name="db", node=LOST, tenant="acme")
    assert states(site)[DB] == (LOST, True)
    assert jobs(site)[f"{DB}-0"] == (LOST, LEFT, "every night")


def test_refused_before_the_first_write(site: Lab) -> None:
    sim = site.simulator
    online = refused(site, "failover", **given(sim))
    assert f"node {LOST} is online, so that its guests may run there" in online["msg"]
    replicate(sim, WEB, age=60, slots=["scsi0"])
    put_guest(sim, 703, "new")
    put_guest(sim, 704, "card", hostpci0="0000:01:00.0", ide2="local:iso/a.iso,media=cdrom")
    data = {"id": "704-0", "type": "local", "target": LEFT}
    site.client.write("POST", "cluster", "replication", data=data)
    replicate(sim, 704)
    sim.ask("PUT", f"/vms/{DB}", {"config": {"memory": "99999999", "net0": "virtio,bridge=none9"}})
    lose(site)
    options = given(sim)
    options["configurations"] = [one for one in options["configurations"] if "/703.conf" not in one]
    problems = refused(site, "failover", **options)["error"]["problems"]
    text = " | ".join(problems)
    assert f"VM 'web' ({WEB}): its replicas on {LEFT} are of different times: scsi0 of " in text
    assert f"VM 'db' ({DB}): " in text
    assert "the configuration of guest 703 on node pve2 is not given" in text
    assert "its option hostpci0 uses a device" in text
    text = " | ".join(refused(site, "failover", **given(sim))["error"]["problems"])
    assert f"VM 'new' (703): no replication job copies it to {LEFT}" in text
    sim.ask("PUT", "/cluster", {"quorate": False})
    assert "the cluster has no quorum" in refused(site, "failover", **given(sim))["msg"]


def test_a_rehearsal_checks_and_writes_nothing(site: Lab) -> None:
    site.simulator.reset_log()
    options = given(site.simulator, rehearsal=True)
    made = do(site, "failover", **options)
    assert [row["outcome"] for row in made["guests"]] == ["planned", "planned"]
    assert AGE <= made["recovery_point"] < AGE + 300
    assert (made["changed"], site.simulator.writes()) == (False, [])
    site.client.write("POST", "cluster", "ha", "resources", data={"sid": f"vm:{DB}"})
    made = do(site, "failover", **options)
    reasons = {one["vmid"]: one["reason"] for one in made["left_out"]}
    assert reasons[DB] == "the HA manager recovers it"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"storages": ["nas"]}, "it does not apply to replicas"),
        ({"storage_map": {"tank": "ceph"}}, "it does not apply to replicas"),
        ({"keep_macs": False}, "guests of replicas keep their MAC addresses"),
        ({"replicas": {}}, "need the replicas on other nodes"),
        ({"replicas": {LOST: []}}, "the node is lost"),
        ({"lost_nodes": []}, "it needs lost_nodes"),
    ],
)
def test_options_of_the_other_way_are_refused(
    site: Lab, options: dict[str, Any], word: str
) -> None:
    assert word in refused(site, "failover", **given(site.simulator, **options))["msg"]
