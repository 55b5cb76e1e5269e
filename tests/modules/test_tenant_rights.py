# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With its own token a tenant works in its pool, and nowhere else: Proxmox VE refuses the rest.

The attempts are raw requests, so that no check of the collection stands before them. The simulator
judges them by the rules of PVE, see tests/simulator/core/acl.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.tenant_lab import made, state_of

# Where the VMs of the tenants are. B's have snapshots, one is a template.
A, B, B_TEMPLATE, B_CONTAINER = 1000, 2000, 2001, 2002
ACCEPTED, FORBIDDEN = 200, 403
Login = dict[str, Any]
NODE = "pve1"


World = tuple[Lab, Login, Login]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A cluster with two tenants, each with a running VM that its own token created, and the logins
    of both.
    """
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        logins = []
        for name, vmid in (("initech", A), ("hooli", B)):
            login = made(lab, name)
            own = {**login, "tenant": name, "pool": name, "node": NODE, "source": "debian-13"}
            do(lab, "vm", **own, name=f"{name}1", vmid=vmid, state="started")
            do(lab, "snapshot", **login, vms=[vmid], snapshot="s1", tenant=name)
            logins.append(login)
        own = {**logins[1], "tenant": "hooli", "pool": "hooli", "node": NODE}
        do(
            lab,
            "vm",
            **own,
            source="debian-13",
            full=True,
            name="gold",
            vmid=B_TEMPLATE,
            state="template",
        )
        container = {"node": NODE, "pool": "hooli", "config": {"tags": "tenant_hooli"}}
        lab.simulator.ask("POST", f"/containers/{B_CONTAINER}", container)
        yield lab, logins[0], logins[1]


def own_vm(vmid: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Return attempts on one VM."""
    path = f"/nodes/{NODE}/qemu/{vmid}"
    volume = f"ceph:vm-{vmid}-disk-0"
    return [
        ("GET", f"{path}/config", {}),
        ("GET", f"{path}/pending", {}),
        ("GET", f"{path}/status/current", {}),
        ("GET", f"{path}/snapshot", {}),
        ("GET", f"{path}/rrddata", {"timeframe": "hour"}),
        ("GET", f"{path}/firewall/rules", {}),
        ("PUT", f"{path}/config", {"cores": 4}),
        ("PUT", f"{path}/config", {"tags": "tenant_initech"}),
        ("PUT", f"{path}/config", {"description": "mine"}),
        ("POST", f"{path}/config", {"memory": 4096}),
        ("PUT", f"{path}/resize", {"disk": "scsi0", "size": "+1G"}),
        ("PUT", f"{path}/unlink", {"idlist": "scsi0"}),
        ("POST", f"{path}/move_disk", {"disk": "scsi0", "storage": "local"}),
        ("POST", f"{path}/status/start", {}),
        ("POST", f"{path}/status/stop", {}),
        ("POST", f"{path}/status/shutdown", {}),
        ("POST", f"{path}/status/reboot", {}),
        ("POST", f"{path}/status/reset", {}),
        ("POST", f"{path}/status/suspend", {}),
        ("POST", f"{path}/status/resume", {}),
        ("POST", f"{path}/snapshot", {"snapname": "s2"}),
        ("POST", f"{path}/snapshot/s1/rollback", {}),
        ("DELETE", f"{path}/snapshot/s1", {}),
        ("POST", f"{path}/clone", {"newid": 3000, "pool": "initech"}),
        ("POST", f"{path}/template", {}),
        ("POST", f"{path}/migrate", {"target": "pve2"}),
        ("GET", f"{path}/agent/network-get-interfaces", {}),
        ("POST", f"{path}/agent/exec", {"command": "id"}),
        ("GET", f"{path}/agent/file-read", {"file": "/etc/shadow"}),
        ("POST", f"{path}/vncproxy", {}),
        ("POST", f"{path}/termproxy", {}),
        ("PUT", f"{path}/sendkey", {"key": "ctrl-alt-delete"}),
        ("POST", f"{path}/firewall/rules", {"type": "in", "action": "ACCEPT"}),
        ("PUT", f"{path}/firewall/options", {"enable": 0}),
        ("PUT", f"{path}/cloudinit", {}),
        ("DELETE", path, {}),
        ("POST", f"/nodes/{NODE}/vzdump", {"vmid": vmid, "storage": "local"}),
        # a volume of A, given to it
        (
            "POST",
            f"/nodes/{NODE}/qemu/{A}/move_disk",
            {"disk": "scsi0", "target-vmid": vmid, "target-disk": "scsi7"},
        ),
        # its volume, taken into a VM of A
        ("PUT", f"/nodes/{NODE}/qemu/{A}/config", {"scsi5": volume}),
        ("PUT", f"/nodes/{NODE}/qemu/{A}/config", {"scsi5": f"ceph:0,import-from={volume}"}),
        ("GET", f"/nodes/{NODE}/storage/ceph/content/{volume}", {}),
        ("DELETE", f"/nodes/{NODE}/storage/ceph/content/{volume}", {}),
        (
            "PUT",
            "/access/acl",
            {"path": f"/vms/{vmid}", "users": "tenant_initech@pve", "roles": "PVEVMAdmin"},
        ),
    ]


CLUSTER: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "the pool of B": [
        ("GET", "/pools/hooli", {}),
        ("PUT", "/pools", {"poolid": "hooli", "comment": "mine"}),
        ("PUT", "/pools", {"poolid": "hooli", "vms": str(A), "allow-move": 1}),
        ("PUT", "/pools", {"poolid": "initech", "vms": str(B), "allow-move": 1}),
        ("DELETE", "/pools", {"poolid": "hooli"}),
        ("POST", f"/nodes/{NODE}/qemu", {"vmid": 3001, "pool": "hooli", "memory": 128}),
        ("POST", f"/nodes/{NODE}/qemu/{A}/clone", {"newid": 3002, "pool": "hooli"}),
        ("POST", "/nodes/pve1/qemu/9000/clone", {"newid": 3003, "pool": "hooli"}),
        (
            "PUT",
            "/access/acl",
            {"path": "/pool/hooli", "users": "tenant_initech@pve", "roles": "PVEVMAdmin"},
        ),
    ],
    "the templates that it may clone": [
        ("PUT", "/nodes/pve1/qemu/9000/config", {"cores": 8}),
        ("DELETE", "/nodes/pve1/qemu/9000", {}),
        ("POST", "/nodes/pve1/qemu/9000/migrate", {"target": "pve2"}),
        ("PUT", "/nodes/pve1/qemu/9000/config", {"tags": "tenant_initech"}),
        ("POST", "/nodes/pve1/qemu/9000/clone", {"newid": 3004}),
        ("PUT", "/pools", {"poolid": "initech", "vms": "9000"}),
    ],
    "a container of B": [
        ("GET", f"/nodes/{NODE}/lxc/{B_CONTAINER}/config", {}),
        ("GET", f"/nodes/{NODE}/lxc/{B_CONTAINER}/status/current", {}),
        ("PUT", "/pools", {"poolid": "initech", "vms": str(B_CONTAINER), "allow-move": 1}),
    ],
    "another template": [
        ("GET", "/nodes/pve2/qemu/9001/config", {}),
        ("POST", "/nodes/pve2/qemu/9001/clone", {"newid": 3005, "pool": "initech"}),
    ],
    "its own rights": [
        ("PUT", "/pools", {"poolid": "initech", "comment": "mine"}),
        ("DELETE", "/pools", {"poolid": "initech"}),
        (
            "PUT",
            "/access/acl",
            {"path": "/", "users": "tenant_initech@pve", "roles": "Administrator"},
        ),
        (
            "PUT",
            "/access/acl",
            {"path": "/pool/initech", "users": "tenant_initech@pve", "roles": "PVEAdmin"},
        ),
        ("PUT", "/access/roles/tenant_initech", {"privs": "Sys.Modify", "append": 1}),
        ("DELETE", "/access/roles/tenant_initech", {}),
        ("POST", "/access/roles", {"roleid": "mine", "privs": "Sys.Modify"}),
        ("PUT", "/access/users/tenant_initech@pve", {"comment": "mine"}),
        ("PUT", "/access/users/tenant_initech@pve/token/fleet", {"expire": 0}),
        ("POST", "/access/users/tenant_initech@pve/token/more", {}),
        ("DELETE", "/access/users/tenant_initech@pve/token/fleet", {}),
        ("PUT", "/access/password", {"userid": "tenant_initech@pve", "password": "longenough1"}),
    ],
    "users, groups and tokens": [
        ("GET", "/access/users/tenant_hooli@pve", {}),
        ("GET", "/access/users/tenant_hooli@pve/token", {}),
        ("POST", "/access/users/tenant_hooli@pve/token/mine", {}),
        ("PUT", "/access/users/tenant_hooli@pve/token/fleet", {"regenerate": 1}),
        ("DELETE", "/access/users/tenant_hooli@pve/token/fleet", {}),
        ("POST", "/access/users", {"userid": "x@pve"}),
        ("DELETE", "/access/users/tenant_hooli@pve", {}),
        ("PUT", "/access/password", {"userid": "root@pam", "password": "longenough1"}),
        ("POST", "/access/groups", {"groupid": "mine"}),
        ("POST", "/access/domains", {"realm": "mine", "type": "pve"}),
    ],
    "the cluster's own things": [
        ("PUT", "/cluster/options", {"description": "mine"}),
        ("PUT", "/cluster/options", {"registered-tags": "tenant_hooli"}),
        ("POST", "/storage", {"storage": "mine", "type": "dir", "path": "/mine"}),
        ("PUT", "/storage/ceph", {"content": "images"}),
        ("DELETE", "/storage/ceph", {}),
        ("POST", "/pools", {"poolid": "mine"}),
        ("POST", "/cluster/ha/resources", {"sid": f"vm:{A}"}),
        (
            "POST",
            "/cluster/mapping/pci",
            {"id": "gpu", "map": "node=pve1,path=0000:01:00.0,id=1:2"},
        ),
        ("POST", "/cluster/backup", {"all": 1, "starttime": "01:00"}),
        ("POST", f"/nodes/{NODE}/network", {"iface": "vmbr9", "type": "bridge"}),
        ("PUT", f"/nodes/{NODE}/network", {}),
        ("POST", f"/nodes/{NODE}/status", {"command": "reboot"}),
        ("POST", f"/nodes/{NODE}/qemu", {"vmid": 3006, "memory": 128}),
        (
            "POST",
            f"/nodes/{NODE}/storage/local/download-url",
            {"content": "iso", "filename": "x.iso", "url": "http://example.org/x.iso"},
        ),
    ],
    "storages and bridges that it may not use": [
        ("POST", f"/nodes/{NODE}/qemu", {"vmid": 3007, "pool": "initech", "scsi0": "local-lvm:1"}),
        ("PUT", f"/nodes/{NODE}/qemu/{A}/config", {"scsi6": "local:1"}),
        ("PUT", f"/nodes/{NODE}/qemu/{A}/config", {"net3": "virtio,bridge=vmbr2"}),
        (
            "POST",
            f"/nodes/{NODE}/qemu",
            {"vmid": 3008, "pool": "initech", "net0": "virtio,bridge=vmbr2"},
        ),
        ("GET", f"/nodes/{NODE}/storage/local/content", {}),
        ("GET", f"/nodes/{NODE}/storage/local-lvm/status", {}),
    ],
}
TABLE: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "a VM of B": own_vm(B),
    "a template of B": own_vm(B_TEMPLATE),
    **CLUSTER,
}


def ask(lab: Lab, login: Login, verb: str, path: str, data: dict[str, Any]) -> requests.Response:
    """Return the answer to a raw request."""
    in_url = verb in ("GET", "DELETE")
    return requests.request(
        verb,
        f"{lab.simulator.url}/api2/json{path}",
        params=data if in_url else None,
        data=None if in_url else data,
        headers={"Authorization": f"PVEAPIToken={login['token_id']}={login['token_secret']}"},
        verify=str(lab.simulator.ca),
        timeout=30,
    )


def test_refused_attempts_are_refused_by_proxmox_ve(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, login, _other = world
    before = state_of(lab)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for about, attempts in TABLE.items():
        for verb, path, data in attempts:
            answer = ask(lab, login, verb, path, data)
            if answer.status_code == FORBIDDEN:
                counts[about] += 1
            else:
                wrong.append(f"{about}: {verb} {path} {data}: {answer.status_code} {answer.text}")
    assert wrong == []
    assert state_of(lab) == before
    with capsys.disabled():
        print("\nRefused by Proxmox VE with the token of another tenant:")
        for about, number in counts.items():
            print(f"  {number:3} of {len(TABLE[about]):3}  {about}")
        print(f"  {sum(counts.values()):3} of {sum(map(len, TABLE.values())):3}  in all")
    assert sum(counts.values()) >= 100


def test_listings_show_what_is_the_tenants_only(world: World) -> None:
    lab, login, _other = world

    def get(path: str, **params: Any) -> Any:
        return ask(lab, login, "GET", path, params).json()["data"]

    rows = get("/cluster/resources")
    assert {row["vmid"] for row in rows if row["type"] == "qemu"} == {A, 9000}
    assert {row["storage"] for row in rows if row["type"] == "storage"} == {"ceph"}
    assert {row["pool"] for row in rows if row["type"] == "pool"} == {"initech"}
    assert {row["vmid"] for row in get(f"/nodes/{NODE}/qemu")} == {A, 9000}
    # The one thing of others that PVE shows to every user, see test_pool.py.
    members = get("/pools", poolid="hooli")[0]["members"]
    assert [row["vmid"] for row in members] == [B, B_TEMPLATE, B_CONTAINER]
    assert get(f"/nodes/{NODE}/lxc") == []
    assert [row for row in rows if row["type"] == "lxc"] == []
    assert [row["poolid"] for row in get("/pools")] == ["initech"]
    assert [row["userid"] for row in get("/access/users", full=1)] == []
    assert {row["roleid"] for row in get("/access/acl")} <= {"tenant_initech"}
    volumes = get(f"/nodes/{NODE}/storage/ceph/content")
    assert {int(row["vmid"]) for row in volumes} <= {A, 9000}
    assert get("/cluster/mapping/pci") == []
    assert get("/cluster/ha/resources") in ([], None)


@pytest.mark.parametrize("tags", ["", "tenant_hooli", "tenant_hooli;tenant_initech"], ids=str)
def test_registered_tag_alone_keeps_a_vm_from_leaving_its_tenant(world: World, tags: str) -> None:
    """The token may change the options of its VM, so that nothing else refuses the request.

    Source: qemu-server, PVE/API2/Qemu.pm, and pve-guest-common, PVE/GuestHelpers.pm,
    assert_tag_permissions; the text was recorded.
    """
    lab, login, _other = world
    path, free = f"/nodes/{NODE}/qemu/{A}/config", "tenant_initech;mine"
    own = "tenant_initech"
    assert ask(lab, login, "PUT", path, {"tags": free}).status_code == ACCEPTED
    both = {"registered-tags": "tenant_initech;tenant_hooli"}
    lab.client.write("PUT", "cluster", "options", data=both)
    answer = ask(lab, login, "PUT", path, {"tags": tags})
    assert answer.status_code == FORBIDDEN
    assert "Sys.Modify for modifying tag 'tenant_" in answer.reason
    assert ask(lab, login, "PUT", path, {"tags": own}).status_code == ACCEPTED
    lab.client.write("PUT", "cluster", "options", data={"delete": "registered-tags"})
    assert ask(lab, login, "PUT", path, {"tags": tags}).status_code == ACCEPTED
    config = {"tags": own}
    lab.client.write("PUT", "nodes", NODE, "qemu", A, "config", data=config)


def test_both_tenants_are_refused_alike(world: World) -> None:
    lab, _login, other = world
    for verb, path, data in own_vm(A)[:4]:
        assert ask(lab, other, verb, path, data).status_code == FORBIDDEN


@pytest.fixture
def own(world: World) -> dict[str, Any]:
    """The options for VMs of A."""
    return {**world[1], "tenant": "initech", "pool": "initech"}


def test_modules_work_in_the_pool_with_its_token(world: World, own: dict[str, Any]) -> None:
    lab, login, _other = world

    def twice(module: str, **options: Any) -> dict[str, Any]:
        result = do(lab, module, **options)
        assert result["changed"]
        assert not do(lab, module, **options)["changed"]
        return result

    twice(
        "vm",
        **own,
        name="blank",
        memory="1G",
        disks=[{"size": 1, "storage": "ceph"}],
        nics=[{"bridge": "vmbr1"}],
        tags=["x"],
        state="started",
    )
    twice("vm", **own, name="blank", cores=2, memory="2G", reboot="if_needed")
    listed = [{"name": f"app{n}", "nics": [{"bridge": "vmbr1", "ip": "dhcp"}]} for n in range(3)]
    kept = [{"name": name} for name in ("blank", "initech1")]
    fleet = {**own, "source": "debian-13", "state": "started", "quota": {"vms": 9}}
    twice("vms", **fleet, vms=listed)
    twice("vms", **fleet, vms=[*listed[:2], *kept], prune=True)
    twice("clone", **own, source="blank", name="twin")
    target = {"tenant": "initech", "name": "blank", **login}
    twice("snapshot", **target, snapshot="s1")
    do(lab, "snapshot", **target, snapshot="s1", state="rolled_back")
    twice("snapshot", **target, snapshot="s1", state="absent")
    found = do(lab, "vm_info", **login, tenant="initech")["vms"]
    assert {row["name"] for row in found} >= {"app0", "app1", "blank", "twin", "initech1"}
    snapshots = do(lab, "snapshot_info", **login, name="initech1")
    assert "s1" in str(snapshots)
    do(lab, "node_info", **login, node="pve1")
    assert [row["name"] for row in do(lab, "pool_info", **login)["pools"]] == ["initech"]
    checked = do(
        lab,
        "preflight_info",
        **login,
        pool="initech",
        templates=["debian-13"],
        nodes=["pve1"],
        bridges=["vmbr1"],
        storages=[{"name": "ceph"}],
        tasks=["vms", "vm_clone", "clone", "snapshot", "rollback", "vm_agent", "vm_console"],
    )
    failed = [row for row in checked["checks"] if row["status"] != "pass"]
    assert checked["passed"], failed
    for name in ("blank", "app0", "app1", "twin"):
        twice("vm", **own, name=name, state="absent")


@pytest.mark.parametrize("options", [{"source": "debian-13"}, {"memory": "1G"}], ids=str)
def test_vm_without_the_pool_is_refused_with_the_next_step(
    world: World, options: dict[str, Any]
) -> None:
    lab, login, _other = world
    before = state_of(lab)
    result = lab.run("vm", **login, **options, name="stray", tenant="initech", node=NODE)
    assert result["error"]["category"] == "PermissionDenied"
    assert "Set pool to a pool on which this user or token may create VMs" in result["msg"]
    assert state_of(lab) == before


def test_our_guard_refuses_what_proxmox_ve_would_let_an_administrator_do(world: World) -> None:
    lab = world[0]
    lab.simulator.reset_log()
    result = lab.run("vm", tenant="hooli", vmid=A, cores=2)
    assert result["error"]["category"] == "Conflict", result
    assert lab.simulator.writes() == []
