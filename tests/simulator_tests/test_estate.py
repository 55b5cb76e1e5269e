"""Pools, listings, users and rights, HA, nodes and their networks."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.simulator.cluster.resources import STATISTICS_KEPT, guest_stats, refresh
from tests.simulator.core.state import Cluster, NodeInfo, Vm
from tests.simulator.process import DEMO, Simulator
from tests.simulator.schema.definition import Schema
from tests.simulator_tests.client import Client

# -- pools -----------------------------------------------------------------------------------------


def members(pve: Client, pool: str) -> list[int]:
    """The machines in a pool."""
    return [item["vmid"] for item in pve.get("/pools", poolid=pool)[0]["members"]]


def test_pools(pve: Client) -> None:
    assert [item["poolid"] for item in pve.get("/pools")] == ["acme", "globex"]
    assert (
        pve.call("POST", "/pools", {"poolid": "acme"}).reason
        == "create pool failed: pool 'acme' already exists"
    )
    pve.create(100, pool="acme")
    assert members(pve, "acme") == [100]
    answer = pve.call("PUT", "/pools", {"poolid": "globex", "vms": "100"})
    assert answer.status == 500
    assert "belongs already to pool 'acme'" in answer.reason
    pve.put("/pools", poolid="globex", vms="100", **{"allow-move": 1})
    assert (members(pve, "acme"), members(pve, "globex")) == ([], [100])
    assert pve.call("DELETE", "/pools", {"poolid": "globex"}).status == 500
    pve.put("/pools", poolid="globex", vms="100", delete=1)
    pve.delete("/pools", poolid="globex")
    assert [item["poolid"] for item in pve.get("/pools")] == ["acme"]


# -- listings --------------------------------------------------------------------------------------


def test_the_resources_of_a_cluster(pve: Client) -> None:
    path = pve.create(100, name="web", tags="b;a", pool="acme", cores=2, memory=1024, node="pve2")
    pve.ok("POST", f"{path}/status/start")
    (item,) = (item for item in pve.get("/cluster/resources", type="vm") if item["vmid"] == 100)
    assert item["id"] == "qemu/100"
    assert (item["node"], item["name"], item["tags"], item["pool"]) == (
        "pve2",
        "web",
        "a;b",
        "acme",
    )
    assert (item["status"], item["template"], item["maxcpu"], item["maxmem"]) == (
        "running",
        0,
        2,
        1 << 30,
    )
    assert {item["type"] for item in pve.get("/cluster/resources")} >= {"node", "qemu", "storage"}


def test_the_listing_lags() -> None:
    with Simulator("--cluster", DEMO, "--lag-s", "1.5") as sim:
        pve = Client(sim)
        pve.create(100, name="web")
        (item,) = (item for item in pve.get("/cluster/resources", type="vm") if item["vmid"] == 100)
        assert item["status"] == "unknown"
        assert "name" not in item
        end = time.monotonic() + 10
        while time.monotonic() < end and item["status"] == "unknown":
            time.sleep(0.1)
            (item,) = (
                item for item in pve.get("/cluster/resources", type="vm") if item["vmid"] == 100
            )
        assert (item["status"], item["name"]) == ("stopped", "web")


def _listed(pve: Client, vmid: int) -> dict[str, Any]:
    (item,) = (item for item in pve.get("/cluster/resources", type="vm") if item["vmid"] == vmid)
    found: dict[str, Any] = item
    return found


def test_a_number_that_was_freed_is_listed_under_the_former_guests_name() -> None:
    """Source: pve-manager, API2Tools.pm, extract_guest_stats: statistics go by VMID only.

    The rest is read again.
    """
    with Simulator("--cluster", DEMO, "--lag-s", "1.5") as sim:
        pve = Client(sim)
        old = pve.create(100, name="old", cores=2, memory=4096, tags="before")
        pve.until(lambda: _listed(pve, 100).get("name") == "old")
        pve.ok("DELETE", old)
        assert [
            item for item in pve.get("/cluster/resources", type="vm") if item["vmid"] == 100
        ] == []
        pve.create(100, node="pve2", name="new", cores=1, memory=1024, tags="after", pool="acme")

        item = _listed(pve, 100)
        assert (item["name"], item["status"], item["template"]) == ("old", "stopped", 0)
        assert (item["maxcpu"], item["maxmem"]) == (2, 4 << 30)
        assert (item["node"], item["tags"], item["pool"]) == ("pve2", "after", "acme")
        (member,) = (
            m for m in pve.get("/pools", poolid="acme")[0]["members"] if m.get("vmid") == 100
        )
        assert (member["name"], member["maxmem"]) == ("old", 4 << 30)
        (own,) = (vm for vm in pve.get("/nodes/pve2/qemu") if vm["vmid"] == 100)
        assert (own["name"], own["maxmem"]) == ("new", 1 << 30)

        pve.until(lambda: _listed(pve, 100)["name"] == "new")
        item = _listed(pve, 100)
        assert (item["maxcpu"], item["maxmem"]) == (1, 1 << 30)


def test_a_former_guest_that_ran_or_was_a_template_is_listed_so() -> None:
    with Simulator("--cluster", DEMO, "--lag-s", "1.5") as sim:
        pve = Client(sim)
        running = pve.create(100, name="runs")
        pve.ok("POST", f"{running}/status/start")
        template = pve.create(101, name="image")
        pve.ok("POST", f"{template}/template")
        pve.until(lambda: _listed(pve, 100).get("uptime", 0) > 0)
        pve.until(lambda: _listed(pve, 101).get("template") == 1)
        pve.ok("POST", f"{running}/status/stop")
        pve.ok("DELETE", running)
        pve.ok("DELETE", template)
        pve.create(100, name="new")
        pve.create(101, name="new")
        assert _listed(pve, 100)["status"] == "running"
        assert _listed(pve, 100)["uptime"] > 0
        assert _listed(pve, 101)["template"] == 1
        pve.until(lambda: _listed(pve, 101)["name"] == "new")
        assert (_listed(pve, 100)["status"], _listed(pve, 100)["uptime"]) == ("stopped", 0)
        assert _listed(pve, 101)["template"] == 0


def test_statistics_are_kept_for_five_minutes() -> None:
    """Source: pve-cluster, src/pmxcfs/status.c, cfs_rrd_dump: entries older than 5 minutes are
    dropped.
    """
    cluster = Cluster(Schema("9.2"))
    cluster.nodes["pve1"] = NodeInfo("pve1", 1, "10.0.0.1")
    cluster.lag = 10
    cluster.vms[100] = Vm(100, "pve1", {"name": "old"})
    cluster.due[100] = 0.0
    refresh(cluster)
    cluster.remove_guest(100)
    fresh = Vm(100, "pve1", {"name": "new"})
    assert guest_stats(cluster, fresh)["name"] == "old"
    cluster.reports[100].guest_gone -= STATISTICS_KEPT + 1
    assert guest_stats(cluster, fresh) == {
        "id": "qemu/100",
        "node": "pve1",
        "type": "qemu",
        "vmid": 100,
        "status": "unknown",
    }


def test_a_guest_that_vanishes_while_a_node_lists_fails_the_listing(
    pve: Client, sim: Simulator
) -> None:
    """Source: qemu-server, QemuServer.pm, vmstatus: the numbers first, then one configuration after
    the other.
    """
    path = pve.create(100)
    pve.create(101)
    sim.steer("settings", {"list_ms": 1000})
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(Client(sim).call, "GET", "/nodes/pve1/qemu")
        time.sleep(0.3)
        pve.ok("DELETE", path)
        refused = answer.result()
    assert refused.status == 500
    assert (
        refused.message == "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist\n"
    )
    assert 101 in {vm["vmid"] for vm in pve.get("/nodes/pve1/qemu")}


def test_a_listing_can_be_made_to_fail_once(pve: Client, sim: Simulator) -> None:
    text = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist"
    sim.fault(method="GET", path="/nodes/pve1/qemu$", status=500, message=text)
    assert pve.call("GET", "/nodes/pve1/qemu").message == f"{text}\n"
    assert pve.call("GET", "/nodes/pve1/qemu").status == 200


def test_the_status_of_the_cluster(pve: Client) -> None:
    items = pve.get("/cluster/status")
    assert next(item for item in items if item["type"] == "cluster")["quorate"] == 1
    assert {item["name"]: item["online"] for item in items if item["type"] == "node"} == {
        "pve1": 1,
        "pve2": 1,
        "pve3": 1,
    }


# -- a node that is down ---------------------------------------------------------------------------


def test_a_node_that_is_down_answers_with_595(pve: Client, sim: Simulator) -> None:
    pve.create(100, node="pve2")
    sim.steer("/nodes/pve2", {"online": False})
    answer = pve.call("GET", "/nodes/pve2/qemu/100/config")
    assert (answer.status, answer.text) == (595, "")
    assert {item["node"]: item["status"] for item in pve.get("/nodes")}["pve2"] == "offline"
    assert pve.get("/nodes/pve1/version")["release"] == "9.2"
    sim.steer("/nodes/pve2", {"online": True})
    assert pve.config("/nodes/pve2/qemu/100")["digest"]


def test_without_quorum_nothing_is_written(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    for node in ("pve2", "pve3"):
        sim.steer(f"/nodes/{node}", {"online": False})
    answer = pve.call("PUT", f"{path}/config", {"cores": 2})
    file = "/etc/pve/nodes/pve1/qemu-server/100.conf"
    assert answer.status == 500
    assert re.fullmatch(
        rf"unable to open file '{file}\.tmp\.\d+' - Permission denied", answer.reason
    )
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 101})
    assert "quorum" in answer.reason or "Permission denied" in answer.reason
    assert pve.config(path)["digest"]


# -- HA --------------------------------------------------------------------------------------------


def test_ha_resources(pve: Client) -> None:
    pve.create(100)
    assert pve.post("/cluster/ha/resources", sid="vm:100", state="stopped", comment="c") is None
    assert pve.get("/cluster/ha/resources/100")["state"] == "stopped"
    answer = pve.call("POST", "/cluster/ha/resources", {"sid": "100"})
    assert answer.reason == "create resource failed: resource ID 'vm:100' already defined"
    assert pve.get("/nodes/pve1/qemu/100/status/current")["ha"]["managed"] == 1
    pve.post(
        "/cluster/ha/rules",
        rule="r1",
        type="node-affinity",
        nodes="pve1:2,pve2",
        resources="vm:100",
    )
    assert pve.get("/cluster/ha/rules/r1")["resources"] == "vm:100"
    pve.delete("/cluster/ha/resources/vm:100")
    assert pve.call("GET", "/cluster/ha/resources/vm:100").reason == "no such resource 'vm:100'"


def test_ha_starts_what_it_is_to_start(pve: Client) -> None:
    path = pve.create(100)
    pve.post("/cluster/ha/resources", sid="vm:100", state="started")
    end = time.monotonic() + 10
    while time.monotonic() < end and pve.state(path) != "running":
        time.sleep(0.05)
    assert pve.state(path) == "running"


def test_a_machine_that_ha_moved(pve: Client, sim: Simulator) -> None:
    pve.create(100, scsi0="ceph:1")
    sim.steer("/vms/100", {"node": "pve3"})
    assert pve.call("GET", "/nodes/pve1/qemu/100/config").status == 500
    assert pve.config("/nodes/pve3/qemu/100")["scsi0"]


# -- users and rights ------------------------------------------------------------------------------


def test_a_user_of_a_tenant_from_nothing(pve: Client, sim: Simulator) -> None:
    pve.post("/access/users", userid="carl@pve", password="carlpw1234")
    secret = pve.post("/access/users/carl@pve/token/ci", privsep=1)["value"]
    carl = Client(sim, f"carl@pve!ci={secret}")
    assert carl.get("/access/permissions") == {}
    pve.put("/access/acl", path="/pool/acme", roles="PVEVMAdmin,PVEPoolUser", users="carl@pve")
    assert carl.get("/access/permissions") == {}
    pve.put("/access/acl", path="/pool/acme", roles="PVEVMAdmin,PVEPoolUser", tokens="carl@pve!ci")
    assert carl.get("/access/permissions")["/pool/acme"]["VM.Allocate"] == 1
    answer = carl.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "pool": "globex"})
    assert (answer.status, answer.reason) == (403, "Permission check failed")
    pve.create(100, pool="acme")
    pve.create(101, pool="globex")
    assert [item["vmid"] for item in carl.get("/cluster/resources", type="vm")] == [100]
    carl.ok("POST", "/nodes/pve1/qemu/100/status/start")
    assert carl.call("POST", "/nodes/pve1/qemu/101/status/start", {}).status == 403


def test_roles(pve: Client) -> None:
    pve.post("/access/roles", roleid="Reader", privs="VM.Audit,Sys.Audit")
    assert pve.get("/access/roles/Reader") == {"VM.Audit": 1, "Sys.Audit": 1}
    answer = pve.call("POST", "/access/roles", {"roleid": "Bad", "privs": "VM.Monitor"})
    assert answer.status in (400, 500)
    pve.delete("/access/roles/Reader")
    assert "Reader" not in {item["roleid"] for item in pve.get("/access/roles")}


def test_a_token_that_has_expired(pve: Client, sim: Simulator) -> None:
    secret = pve.post("/access/users/ops@pve/token/old", privsep=0, expire=1000)["value"]
    assert Client(sim, f"ops@pve!old={secret}").call("GET", "/version").status == 401


# -- nodes and networks ----------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["pve1", "pve2", "pve3"])
def test_bridges_of_every_node(pve: Client, node: str) -> None:
    bridges = {item["iface"]: item for item in pve.get(f"/nodes/{node}/network", type="bridge")}
    assert set(bridges) == {"vmbr0", "vmbr1", "vmbr2"}
    assert bridges["vmbr0"]["bridge_vlan_aware"] == 1


def test_a_new_bridge_waits_to_be_applied(pve: Client) -> None:
    pve.post("/nodes/pve1/network", iface="vmbr7", type="bridge", autostart=1)
    answer = pve.call("GET", "/nodes/pve1/network")
    assert "vmbr7" in answer.body["changes"]
    path = pve.create(100, net0="virtio,bridge=vmbr7")
    assert pve.do("POST", f"{path}/status/start") != "OK"
    pve.ok("PUT", "/nodes/pve1/network")
    assert not pve.call("GET", "/nodes/pve1/network").body.get("changes")
    pve.ok("POST", f"{path}/status/start")


def test_changes_to_the_network_can_be_dropped(pve: Client) -> None:
    pve.post("/nodes/pve1/network", iface="vmbr7", type="bridge")
    pve.delete("/nodes/pve1/network")
    assert "vmbr7" not in {item["iface"] for item in pve.get("/nodes/pve1/network")}


def test_what_a_node_says_of_itself(pve: Client) -> None:
    status = pve.get("/nodes/pve1/status")
    assert (status["cpuinfo"]["cpus"], status["memory"]["total"]) == (16, 64 << 30)
    assert pve.get("/nodes/pve1/version")["release"] == "9.2"
    assert pve.get("/nodes/pve1/dns") is not None


def test_the_order_of_the_resources_means_nothing(pve: Client) -> None:
    listings = [[item["id"] for item in pve.get("/cluster/resources")] for _dummy in range(4)]
    assert len({tuple(listing) for listing in listings}) > 1
    assert len({tuple(sorted(listing)) for listing in listings}) == 1


def test_nodes_are_listed_for_everybody_and_figures_are_not(pve: Client, sim: Simulator) -> None:
    stranger = Client(sim, "ops@pve!auto=00000000-0000-4000-8000-0000000000f2")
    rows = {row["node"]: row for row in stranger.get("/cluster/resources", type="node")}
    assert {node: row["status"] for node, row in rows.items()} == dict.fromkeys(
        ("pve1", "pve2", "pve3"), "online"
    )
    assert not rows["pve1"].keys() & {"cpu", "mem", "maxmem", "uptime"}
    assert pve.get("/cluster/resources", type="node")[0]["maxmem"]


def test_the_report_of_a_node_is_a_text(pve: Client) -> None:
    """Source: pve-manager, PVE/API2/Nodes.pm (report) and PVE/Report.pm."""
    assert "pve-manager/9." in pve.get("/nodes/pve1/report")
