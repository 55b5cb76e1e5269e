"""Containers, as far as others meet them: in listings, in pools, by their numbers and rights."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.core.api import HANDLERS
from tests.simulator.process import SimulatorError
from tests.simulator.schema.definition import Schema
from tests.simulator.web import handlers
from tests.simulator_tests.client import Client

CONTAINER: dict[str, Any] = {
    "node": "pve1",
    "pool": "acme",
    "config": {
        "hostname": "ct",
        "memory": 64,
        "rootfs": "ceph:vm-110-disk-0,size=1G",
        "tags": "b;tenant_acme",
        "description": "a note",
    },
}


@pytest.fixture
def with_container(pve: Client) -> Client:
    """A cluster in which another client made container 110."""
    pve.sim.ask("POST", "/containers/110", CONTAINER)
    return pve


def test_each_call_of_both_versions_is_answered() -> None:
    """PVE 9.2 has 43 paths of containers. 8.4 has them without migration preconditions (commit
    5ed4af5 of pve-container), and with the firewall that it has for VMs.
    """
    handlers.load()
    for version in ("9.2", "8.4"):
        calls = [call for call in Schema(version).methods if "/lxc" in call[1]]
        assert len({path for _verb, path in calls}) == 43
        assert [call for call in calls if call not in HANDLERS] == []
    old, new = Schema("8.4"), Schema("9.2")
    assert set(new.container_options) - set(old.container_options) == {"entrypoint", "env"}
    assert {"idmap", "keepattrs"}.isdisjoint(old.container_options["mp0"]["format"])
    assert ("GET", "/nodes/{node}/lxc/{vmid}/migrate") not in old.methods


def of_type(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["type"] == kind]


def test_row_in_the_listing_of_the_cluster(with_container: Client) -> None:
    """Recorded around the VM, cluster-misc exchanges 22 and 97; tags and pool: API2/Cluster.pm."""
    (stopped,) = of_type(with_container.get("/cluster/resources", type="vm"), "lxc")
    figures = ("cpu", "disk", "diskread", "diskwrite", "mem", "memhost", "netin", "netout")
    assert stopped == {
        **dict.fromkeys((*figures, "uptime", "template"), 0),
        "id": "lxc/110",
        "maxcpu": 16,
        "maxdisk": 1 << 30,
        "maxmem": 64 << 20,
        "name": "ct",
        "node": "pve1",
        "status": "stopped",
        "type": "lxc",
        "vmid": 110,
        "tags": "b;tenant_acme",
        "pool": "acme",
    }
    with_container.sim.ask("POST", "/containers/111", {"node": "pve2", "running": True})
    (running,) = (
        row
        for row in of_type(with_container.get("/cluster/resources"), "lxc")
        if row["vmid"] == 111
    )
    assert (running["status"], running["name"], running["memhost"]) == ("running", "CT111", 0)
    assert running["uptime"] > 0
    assert running.keys() == stopped.keys() - {"tags", "pool"}


def test_list_of_a_node_and_status(with_container: Client) -> None:
    """Fields of pve-container, LXC.pm, vmstatus; status/current adds `ha`, API2/LXC/Status.pm."""
    assert with_container.get("/nodes/pve2/lxc") == []
    assert with_container.get("/nodes/pve1/qemu/9000/config")["name"] == "debian-13"
    assert 110 not in {row["vmid"] for row in with_container.get("/nodes/pve1/qemu")}
    (listed,) = with_container.get("/nodes/pve1/lxc")
    assert {key: listed[key] for key in ("type", "vmid", "name", "status", "tags")} == {
        "type": "lxc",
        "vmid": 110,
        "name": "ct",
        "status": "stopped",
        "tags": "b;tenant_acme",
    }
    assert (listed["maxmem"], listed["maxswap"], listed["maxdisk"]) == (
        64 << 20,
        512 << 20,
        1 << 30,
    )
    status = with_container.get("/nodes/pve1/lxc/110/status/current")
    assert status == {**listed, "ha": {"managed": 0}}


def test_configuration_has_numbers_where_the_schema_has_them(with_container: Client) -> None:
    """BEHAVIOUR, Containers: memory, swap and cores are integers, the description ends with a line
    feed.
    """
    config = with_container.get("/nodes/pve1/lxc/110/config")
    assert config.pop("digest")
    assert config == {
        "hostname": "ct",
        "memory": 64,
        "swap": 512,
        "unprivileged": 1,
        "rootfs": "ceph:vm-110-disk-0,size=1G",
        "tags": "b;tenant_acme",
        "description": "a note\n",
    }
    (volume,) = with_container.get("/nodes/pve1/storage/ceph/content", vmid=110)
    assert (volume["content"], volume["vmid"]) == ("rootdir", 110)
    for path in ("/nodes/pve2/lxc/110", "/nodes/pve1/lxc/9000"):
        answer = with_container.call("GET", f"{path}/config")
        assert answer.status == 500
        node, vmid = path.split("/")[2], path.rpartition("/")[2]
        file = f"nodes/{node}/lxc/{vmid}.conf"
        assert answer.reason == f"Configuration file '{file}' does not exist"
    answer = with_container.call("GET", "/nodes/pve1/qemu/110/config")
    assert "nodes/pve1/qemu-server/110.conf' does not exist" in answer.reason


def test_number_of_a_container_is_taken(with_container: Client) -> None:
    """API2/Cluster.pm, nextid; the text of a new VM is in BEHAVIOUR, Containers."""
    pve = with_container
    answer = pve.call("GET", "/cluster/nextid", {"vmid": 110})
    assert answer.errors == {"vmid": "VM 110 already exists"}
    for vmid in range(100, 110):
        pve.create(vmid)
    assert int(pve.get("/cluster/nextid")) == 111
    answer = pve.call("POST", "/nodes/pve2/qemu", {"vmid": 110})
    assert answer.status == 500
    assert answer.reason == "unable to create VM 110 - CT 110 already exists on node 'pve1'"


def test_member_of_a_pool(with_container: Client) -> None:
    """API2/Pool.pm: members of both kinds, `type` filters, and a container keeps its pool."""
    pve = with_container
    (member,) = pve.get("/pools", poolid="acme")[0]["members"]
    assert (member["id"], member["type"]) == ("lxc/110", "lxc")
    assert "pool" not in member
    assert pve.get("/pools", poolid="acme", type="qemu")[0]["members"] == []
    assert len(pve.get("/pools", poolid="acme", type="lxc")[0]["members"]) == 1
    reason = "delete pool failed: pool 'acme' is not empty (contains VM 110)"
    assert pve.call("DELETE", "/pools", {"poolid": "acme"}).reason == reason
    pve.put("/pools", poolid="globex", vms="110", **{"allow-move": 1})
    (row,) = of_type(pve.get("/cluster/resources"), "lxc")
    assert row["pool"] == "globex"
    pve.sim.ask("DELETE", "/containers/110", None)
    assert of_type(pve.get("/cluster/resources"), "lxc") == []
    pve.delete("/pools", poolid="globex")


def test_rights_on_the_pool_hold_for_its_containers(with_container: Client) -> None:
    """RPCEnvironment.pm, roles of a pool hold on /vms/VMID of its members; API2/LXC.pm, vmlist."""
    ops = Client(with_container.sim, "ops@pve!auto=00000000-0000-4000-8000-0000000000f2")
    assert [row["vmid"] for row in ops.get("/nodes/pve1/lxc")] == [110]
    with_container.put("/pools", poolid="acme", vms="110", delete=1)
    assert ops.get("/nodes/pve1/lxc") == []
    assert of_type(ops.get("/cluster/resources"), "lxc") == []
    assert ops.call("GET", "/nodes/pve1/lxc/110/config").status == 403


def test_mistakes_on_the_control_plane(with_container: Client) -> None:
    ask = with_container.sim.ask
    for method, path, body, words in (
        ("POST", "/containers/110", {"node": "pve1"}, "VM 110 is there twice"),
        ("POST", "/containers/112", {"node": "pve9"}, "there is no node 'pve9'"),
        ("POST", "/containers/112", {"node": "pve1", "config": {"bios": "x"}}, "unknown option"),
        ("POST", "/containers/112", {"node": "pve1", "pool": "x"}, "there is no pool 'x'"),
        ("PUT", "/containers/110", {"lock": "x"}, "known are config, node, running"),
        ("DELETE", "/containers/112", None, "there is no container 112"),
    ):
        with pytest.raises(SimulatorError, match=words):
            ask(method, path, body)
