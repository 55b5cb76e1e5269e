# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module clone with a container as its source: the plan and the refusals of module container."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules import access_lab
from tests.modules.access_lab import do
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

NICS: list[dict[str, Any]] = [{"network": "lan", "vlan": 7, "ip": "10.0.0.9/24"}]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def template(lab: Lab, vmid: int, name: str, **config: Any) -> None:
    root = f"ceph:base-{vmid}-disk-0,size=1G"
    add_container(lab, vmid, hostname=name, template=1, rootfs=root, **config)


def cloned(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the result of a clone that check mode has foreseen and that a second run keeps."""
    task = {"name": "copy", **options}
    lab.simulator.reset_log()
    foreseen = do(lab, "clone", check=True, **task)
    assert lab.simulator.writes() == []
    result = do(lab, "clone", **task)
    assert result["diff"] == foreseen["diff"]
    assert result["plan"] == foreseen["plan"] == result["done"]
    lab.simulator.reset_log()
    again = do(lab, "clone", **task)
    assert (again["changed"], again["vm"]["vmid"]) == (False, result["vm"]["vmid"])
    assert lab.simulator.writes() == []
    return dict(result)


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    return access_lab.refused(lab, "clone", **{"name": "copy", **options})


def test_linked_clone_with_options_that_both_kinds_have(lab: Lab) -> None:
    template(lab, 700, "golden", tags="image")
    classes = {"small": {"cores": 2, "bios": "ovmf", "swap": "0"}}
    result = cloned(
        lab,
        source="golden",
        tenant="acme",
        pool="acme",
        memory="1G",
        nics=NICS,
        tags=["web"],
        description="a copy",
        state="started",
        classes=classes,
        **{"class": "small"},
    )
    vm = result["vm"]
    assert (result["kind"], vm["cloned_from"], vm["status"]) == ("container", 700, "running")
    config = lab.client.get("nodes", vm["node"], "lxc", vm["vmid"], "config")
    expected = {"hostname": "copy", "memory": 1024, "cores": 2, "swap": 0}
    assert {key: config[key] for key in expected} == expected
    assert config["tags"].split(";") == ["tenant_acme", "web"]
    assert "ip=10.0.0.9/24" in config["net0"]
    assert "(linked)" in result["plan"][0]


def test_full_clone_on_another_storage_and_node(lab: Lab) -> None:
    template(lab, 700, "golden")
    result = cloned(lab, source="700", storage="local-lvm", node="pve2", full=True)
    vm = result["vm"]
    config = lab.client.get("nodes", "pve2", "lxc", vm["vmid"], "config")
    assert (vm["node"], config["rootfs"].partition(":")[0]) == ("pve2", "local-lvm")
    failure = refused(lab, source="700", name="other", storage="ceph", full=False)
    assert "storage is for full clones" in failure["msg"]


def test_running_container_is_cloned_from_a_snapshot_only(lab: Lab) -> None:
    """PVE clones a running container from a snapshot only (pve-container: API2/LXC.pm)."""
    add_container(lab, 700, hostname="web", running=True)
    assert refused(lab, source="web")["error"]["reason"] == "source runs"
    do(lab, "snapshot", name="web", snapshot="s1")
    assert "its snapshots are s1" in refused(lab, source="web", snapshot="s2")["msg"]
    assert cloned(lab, source="web", snapshot="s1", full=False)["kind"] == "container"


def test_finished_clone_changes_its_power_alone(lab: Lab) -> None:
    template(lab, 700, "golden")
    cloned(lab, source="golden", memory="1G")
    started = do(lab, "clone", name="copy", source="golden", memory="2G", state="started")
    assert started["diff"]["after"] == {"status": "running"}
    failure = refused(lab, name="copy", source="alma-10")
    assert failure["error"]["category"] == "Conflict"  # a VM template: the container has the name


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"disks": [{"size": "9G"}], "bios": "ovmf"}, "only a VM has the options bios, disks"),
        ({"format": "raw"}, "only a VM has the options format"),
        ({"nics": [{"bridge": "vmbr0", "model": "e1000"}]}, "nics[0].model"),
        ({"wait_for": "agent"}, "wait_for"),
    ],
)
def test_options_of_vms_are_refused_by_name(lab: Lab, options: dict[str, Any], named: str) -> None:
    template(lab, 700, "golden")
    failure = refused(lab, source="golden", **options)
    assert failure["error"]["category"] == "ValidationFailed"
    assert named in failure["msg"]


def test_mistake_for_both_kinds_needs_no_server(lab: Lab) -> None:
    """An option of VMs beside a value that VMs do not have."""
    lab.simulator.reset_log()
    failure = lab.run("clone", name="copy", source="golden", bios="ovmf", nics=[{"ip": "manual"}])
    assert failure["error"]["category"] == "ValidationFailed"
    assert lab.simulator.log() == []


def test_tenant_clones_by_its_own_token(lab: Lab) -> None:
    template(lab, 700, "golden")
    template(lab, 701, "theirs", tags="tenant_globex")
    login = made(lab, "initech", templates=["debian-13", "golden"], storages=["ceph"])
    task = {**login, "tenant": "initech", "pool": "initech", "full": True}
    result = cloned(lab, source="golden", **task)
    assert result["vm"]["tenant"] == "initech"
    # With an administrator's token the tag alone separates the tenants.
    failure = refused(lab, name="another", source="theirs", tenant="initech")
    assert failure["error"]["reason"] == "foreign tenant"
    assert "Source 701 was not cloned: it belongs to another tenant" in failure["msg"]
    failure = refused(lab, name="another", source="theirs", **task)
    assert failure["error"]["reason"] == "template missing"


def test_quota_counts_the_clone(lab: Lab) -> None:
    template(lab, 700, "golden", cores=1)
    failure = refused(lab, source="golden", tenant="acme", quota={"memory": "256M"})
    assert failure["error"]["category"] == "QuotaExceeded"


def test_privileged_source_can_be_forbidden(lab: Lab) -> None:
    template(lab, 700, "golden", unprivileged=0)
    task = {"source": "golden", "tenant": "acme"}
    failure = refused(lab, **task, allow_privileged=False)
    assert "tenant acme must not have one" in failure["msg"]
    assert cloned(lab, **task)["kind"] == "container"


def test_name_of_a_guest_of_each_kind_is_ambiguous(lab: Lab) -> None:
    template(lab, 700, "debian-13")
    failure = refused(lab, source="debian-13")
    assert "VM 9000 and container 700 have that name" in failure["msg"]
    assert cloned(lab, source="700")["kind"] == "container"


def test_template_of_another_tenant_does_not_make_a_name_ambiguous(lab: Lab) -> None:
    template(lab, 700, "debian-13", tags="tenant_globex")
    assert cloned(lab, source="debian-13", tenant="acme")["kind"] == "vm"


@pytest.mark.parametrize("kind", ["qemu", "lxc"])
@pytest.mark.parametrize("change", ["tenant", "reused"])
def test_a_source_is_read_right_before_its_clone(lab: Lab, kind: str, change: str) -> None:
    """PVE clones the guest that has the VMID when the request arrives."""
    control = f"/{'vms' if kind == 'qemu' else 'containers'}/750"
    name = "hostname" if kind == "lxc" else "name"
    if kind == "lxc":
        add_container(lab, 750, hostname="golden", tags="tenant_acme")
    else:
        disk = {"name": "golden", "tags": "tenant_acme", "scsi0": "ceph:1"}
        lab.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": 750, **disk})
    path = f"/nodes/pve1/{kind}/750/pending"
    task: dict[str, Any] = {"tenant": "acme", "source": "750", "full": True}
    lab.simulator.reset_log()
    do(lab, "clone", name="first", **task)
    log = [row for row in lab.simulator.log() if "/tasks/" not in row["path"]]
    (at,) = [place for place, row in enumerate(log) if row["path"].endswith("/clone")]
    assert (log[at - 1]["method"], log[at - 1]["path"]) == ("GET", path)
    reads = [row for row in log[:at] if row["path"] == path]
    config = {"tags": "tenant_globex"} if change == "tenant" else {name: "other"}
    steer = [["PUT", control, {"config": config}]]
    lab.simulator.fault(method="GET", path=f"^{path}$", nth=len(reads), steer=steer)
    lab.simulator.reset_log()
    result = lab.run("clone", name="second", **task)
    assert result["error"]["reason"] == ("foreign tenant" if change == "tenant" else "replaced")
    assert lab.simulator.writes() == []
