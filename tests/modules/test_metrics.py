# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules metrics and metrics_info against the simulator: what is known, and what is not."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.metrics_text import FEATURES, Text, read_text
from tests.modules.container_lab import add_container, add_mount
from tests.modules.estate_lab import TOKEN_SECRET, Lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import machine, refused, settle, take
from tests.modules.test_drift_info import ESTATE

SMALL = {"snapshots": False, "backups": False, "volumes": False, "versions": False}
BACKUP = "local:backup/vzdump-qemu-{vmid}-2026_11_20-01_00_00.vma.zst"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def containers(lab: Lab) -> Iterator[Lab]:
    """A running container of tenant acme with a mount point, one without a tenant, a template."""
    add_container(
        lab, 710, running=True, hostname="proxy1", tags="tenant_acme", cores=3, memory=256
    )
    add_mount(lab, 710, "ceph:2,mp=/data")
    add_container(lab, 711, hostname="proxy2")
    add_container(lab, 712, hostname="base", template=1)
    yield lab
    for vmid in (710, 711, 712):
        lab.simulator.ask("DELETE", f"/containers/{vmid}", None)


def read(lab: Lab, **options: Any) -> tuple[Text, dict[str, Any]]:
    """Return the metrics, and all that module metrics_info returns; nothing is written."""
    settle(lab)
    result = run_module("metrics_info", {**lab.connection, **options})
    assert not result.get("failed"), result
    assert result["changed"] is False
    assert lab.simulator.writes() == []
    found = read_text(result["text"])
    rows = [row for family in result["metrics"] for row in family["samples"]]
    as_data = {(row["name"], tuple(sorted(row["labels"].items()))): row["value"] for row in rows}
    assert as_data == found.values
    return found, result


def put_backup(lab: Lab, vmid: int, *, age: int, node: str = "pve1", day: int = 20) -> int:
    """Make a backup that is some seconds old, and return when it was made."""
    when = int(lab.client.clock.time()) - age
    volid = BACKUP.format(vmid=vmid).replace("_20-", f"_{day}-")
    body = {"volid": volid, "new": True, "size": 5, "ctime": when}
    lab.simulator.steer(f"/volumes/{node}", body)
    return when


def vm_labels(vm: Mapping[str, Any], tenant: str = "") -> dict[str, str]:
    labels = {"vmid": str(vm["vmid"]), "name": vm["name"], "kind": "vm"}
    if tenant:
        labels["tenant"] = tenant
    return labels


def test_names_labels_and_types(lab: Lab) -> None:
    found, result = read(lab)
    assert result["complete"] is True
    assert found.types | FEATURES == found.types
    labels = {name: set(found.labels_of(name)) for name in FEATURES}
    assert labels == {
        "proxmox_machines_total": {"phase", "node", "kind"},
        "proxmox_reconciliation_duration_seconds": {"action"},
        "proxmox_api_requests_total": {"method", "endpoint", "status"},
        "proxmox_errors_total": {"error_type"},
        "proxmox_cluster_nodes_available": set(),
        "proxmox_cluster_connection_status": set(),
    }
    assert found["proxmox_cluster_nodes_available"] == 3
    assert found["proxmox_cluster_connection_status"] == 1
    assert found.sum("proxmox_errors_total") == 0


def test_machines_by_node_and_phase(lab: Lab) -> None:
    machine(lab, node="pve2", running=True)
    machine(lab, node="pve2")
    found, _result = read(lab, **SMALL)
    name = "proxmox_machines_total"
    assert found.get(name, node="pve2", phase="running", kind="vm") == 1
    assert found.get(name, node="pve2", phase="stopped", kind="vm") == 1
    assert found.get(name, node="pve3", phase="running", kind="vm") == 0
    assert found.get(name, node="pve3", phase="running", kind="container") == 0
    assert found.get(name, node="pve1", phase="template", kind="vm") == 1
    assert found.get("proxmox_machines_without_tenant", kind="vm") == 2


def test_containers_count_beside_vms(containers: Lab) -> None:
    """The quota of a tenant is one over both kinds."""
    lab = containers
    machine(lab, tags="tenant_acme", cores=2, memory=512, disk="ceph:3")
    now = int(lab.client.clock.time())
    volid = "local:backup/vzdump-lxc-710-2026_11_20-01_00_00.tar.zst"
    body = {"volid": volid, "new": True, "size": 5, "ctime": now - 50}
    lab.simulator.steer("/volumes/pve1", body)
    found, result = read(lab, quotas={"acme": {"vms": 20}})
    assert result["complete"] is True
    name = "proxmox_machines_total"
    assert found.get(name, node="pve1", phase="running", kind="container") == 1
    assert found.get(name, node="pve1", phase="stopped", kind="container") == 1
    assert found.get(name, node="pve1", phase="template", kind="container") == 1
    assert found.get("proxmox_machines_without_tenant", kind="container") == 1
    use = {"vms": 2, "cores": 5, "memory_bytes": 768 * 2**20, "disk_bytes": 6 * 2**30}
    for kind, value in use.items():
        assert found.get(f"proxmox_tenant_{kind}", tenant="acme") == value, kind
    labels = {"vmid": "710", "name": "proxy1", "kind": "container", "tenant": "acme"}
    assert found.get("proxmox_vm_snapshots", **labels) == 0
    assert found.get("proxmox_vm_backups", **labels) == 1
    assert found.get("proxmox_vm_newest_backup_timestamp_seconds", **labels) == now - 50
    assert not found.has("proxmox_vm_backups", vmid="712")


def test_requests_do_not_grow_with_vms_but_for_snapshots(lab: Lab) -> None:
    def requests(**options: Any) -> dict[str, int]:
        found, _result = read(lab, **options)
        counted = dict(lab.simulator.counts())
        assert found.sum("proxmox_api_requests_total") == sum(counted.values())
        return counted

    machine(lab)
    small, few = requests(**SMALL), requests()
    for _number in range(6):
        machine(lab, node="pve2")
    assert requests(**SMALL) == small
    assert sum(small.values()) == 4
    version = "GET /nodes/{node}/version"
    assert requests(**{**SMALL, "versions": True}) == {**small, version: 3}
    many = requests()
    snapshot = "GET /nodes/{node}/qemu/{vmid}/snapshot"
    assert {key for key in many if many[key] != few.get(key)} == {snapshot}
    assert many[snapshot] == few[snapshot] + 6


def test_what_tenants_use_and_may_use(lab: Lab) -> None:
    machine(lab, tags="tenant_acme", cores=2, memory=512, disk="ceph:3", scsi1="local-lvm:2")
    machine(lab, tags="tenant_acme", cores=1, memory=256, disk="ceph:1")
    quotas = {"acme": {"vms": 20, "memory": "4G"}, "Initech": {"disk": "1T"}}
    found, _result = read(lab, quotas=quotas)
    use = {"vms": 2, "cores": 3, "memory_bytes": 768 * 2**20, "disk_bytes": 6 * 2**30}
    for kind, value in use.items():
        assert found.get(f"proxmox_tenant_{kind}", tenant="acme") == value
    assert found.get("proxmox_tenant_quota_vms", tenant="acme") == 20
    assert found.get("proxmox_tenant_quota_memory_bytes", tenant="acme") == 4 * 2**30
    assert found.get("proxmox_tenant_quota_disk_bytes", tenant="initech") == 2**40
    assert found.get("proxmox_tenant_vms", tenant="initech") == 0
    assert not found.has("proxmox_tenant_quota_cores")


def test_load_and_room_of_nodes(lab: Lab) -> None:
    machine(lab, node="pve3", cores=4, memory=2048)
    found, _result = read(lab, **SMALL, cpu_overcommit=0.1, max_vms_per_node=5)
    assert found.get("proxmox_node_free_cores", node="pve3") == -3
    assert found.get("proxmox_node_free_memory_bytes", node="pve3") == 62 * 2**30
    assert found.get("proxmox_node_free_vms", node="pve3") == 4
    assert found.get("proxmox_node_cores", node="pve3") == 16
    assert 0 <= found.get("proxmox_node_cpu_usage_ratio", node="pve3") <= 1
    assert found.get("proxmox_storage_size_bytes", storage="ceph") == 4 * 2**40


def test_newest_snapshot(lab: Lab) -> None:
    vm, other = machine(lab, name="web", tags="tenant_acme"), machine(lab, name="db")
    take(lab, vm, "one", "two")
    rows = lab.client.get("nodes", "pve1", "qemu", vm["vmid"], "snapshot")
    newest = max(row.get("snaptime", 0) for row in rows)
    found, _result = read(lab)
    when = "proxmox_vm_newest_snapshot_timestamp_seconds"
    assert found.get("proxmox_vm_snapshots", **vm_labels(vm, "acme")) == 2
    assert found.get(when, **vm_labels(vm, "acme")) == newest
    assert found.get("proxmox_vm_snapshots", **vm_labels(other)) == 0
    assert not found.has(when, **vm_labels(other))


def test_a_vm_whose_snapshots_cannot_be_read_is_unknown(lab: Lab) -> None:
    vm, other = machine(lab), machine(lab)
    message = "Permission check failed (/vms/1, VM.Audit)"
    path = f"/qemu/{vm['vmid']}/snapshot$"
    lab.simulator.fault(method="GET", path=path, status=403, message=message, times=None)
    found, result = read(lab)
    lab.simulator.clear_faults()
    assert not found.has("proxmox_vm_snapshots", **vm_labels(vm))
    assert found.has("proxmox_vm_snapshots", **vm_labels(other))
    (row,) = result["missing"]
    assert (row["part"], row["subject"]) == ("snapshots", str(vm["vmid"]))
    assert "VM.Audit" in row["reason"]
    assert found.get("proxmox_unread_parts", part="snapshots", error_type="PermissionDenied") == 1
    assert found["proxmox_metrics_complete"] == 0
    assert found.get("proxmox_errors_total", error_type="PermissionDenied") == 1


def test_newest_backup(lab: Lab) -> None:
    vm, other = machine(lab), machine(lab)
    put_backup(lab, vm["vmid"], age=200)
    newest = put_backup(lab, vm["vmid"], age=100, node="pve2", day=21)
    put_backup(lab, 99999, age=1)
    found, _result = read(lab)
    when = "proxmox_vm_newest_backup_timestamp_seconds"
    assert found.get("proxmox_vm_backups", **vm_labels(vm)) == 2
    assert found.get(when, **vm_labels(vm)) == newest
    assert found.get("proxmox_vm_backups", **vm_labels(other)) == 0
    assert not found.has(when, **vm_labels(other))


def test_what_may_have_a_newer_backup_is_left_out(lab: Lab) -> None:
    """Of an older one that is shown as the newest, an alert would come."""
    vm = machine(lab, tags="tenant_acme")
    put_backup(lab, vm["vmid"], age=100)
    path = "/nodes/pve2/storage/local/content$"
    lab.simulator.fault(method="GET", path=path, status=500, message="out of order", times=None)
    found, result = read(lab, retries=1)
    assert not found.has("proxmox_vm_backups")
    assert not found.has("proxmox_vm_newest_backup_timestamp_seconds")
    reasons = {row["part"]: row["reason"] for row in result["missing"]}
    assert "out of order" in reasons["backups"]


def test_a_backup_of_a_removed_vm_is_not_that_of_its_successor(lab: Lab) -> None:
    vm = machine(lab)
    put_backup(lab, vm["vmid"], age=5)
    assert read(lab)[0].get("proxmox_vm_backups", **vm_labels(vm)) == 1
    lab.client.task("DELETE", "nodes", "pve1", "qemu", vm["vmid"])
    data = {"vmid": vm["vmid"], "name": vm["name"]}
    lab.client.task("POST", "nodes", "pve1", "qemu", data=data)
    assert read(lab)[0].get("proxmox_vm_backups", **vm_labels(vm)) == 0


def test_a_node_in_maintenance(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve2", {"maintenance": True})
    found = read(lab)[0]
    nodes = {node: found.get("proxmox_node_maintenance", node=node) for node in ("pve1", "pve2")}
    lab.simulator.steer("/nodes/pve2", {"maintenance": False})
    assert nodes == {"pve1": 0, "pve2": 1}


def test_nodes_of_different_versions(lab: Lab) -> None:
    """A version that cannot be read is left out, and named."""
    version = lab.client.get("version")["version"]
    lab.simulator.steer("/nodes/pve2", {"version": "9.2.9"})
    lab.simulator.fault(method="GET", path="/nodes/pve3/version", status=500, times=None)
    found, result = read(lab, **{**SMALL, "versions": True})
    lab.simulator.steer("/nodes/pve2", {"version": version})
    assert found.has("proxmox_node_info", node="pve1", version=version)
    assert found.get("proxmox_node_info", node="pve2", version="9.2.9") == 1
    assert not found.has("proxmox_node_info", node="pve3")
    assert [(row["part"], row["subject"]) for row in result["missing"]] == [("node", "pve3")]


def test_an_offline_node_is_unknown(lab: Lab) -> None:
    vm = machine(lab, node="pve3", tags="tenant_acme", running=True)
    machine(lab, node="pve1", tags="tenant_globex", disk="ceph:1")
    lab.simulator.steer("/nodes/pve3", {"online": False})
    found, result = read(lab, retries=1)
    name = "proxmox_machines_total"
    assert found.get(name, node="pve3", phase="unknown", kind="vm") == 1
    assert not found.has(name, node="pve3", phase="running", kind="vm")
    assert not found.has(name, node="pve3", phase="stopped", kind="vm")
    assert found["proxmox_cluster_nodes_available"] == 2
    assert found["proxmox_cluster_nodes"] == 3
    assert found.get("proxmox_node_up", node="pve3") == 0
    assert found.get("proxmox_node_maintenance", node="pve1") == 0
    for figure in ("cores", "cpu_usage_ratio", "memory_bytes", "free_cores"):
        assert not found.has(f"proxmox_node_{figure}", node="pve3")
    assert not found.has("proxmox_storage_size_bytes", node="pve3", storage="local")
    # the tag of a VM is in the configuration of the cluster, its size is not
    assert found.get("proxmox_tenant_vms", tenant="acme") == 1
    for kind in ("cores", "memory_bytes", "disk_bytes"):
        assert not found.has(f"proxmox_tenant_{kind}", tenant="acme")
        assert found.has(f"proxmox_tenant_{kind}", tenant="globex")
    for copies in ("snapshots", "backups"):
        assert not found.has(f"proxmox_vm_{copies}", **vm_labels(vm, "acme"))
    assert found["proxmox_metrics_complete"] == 0
    nodes = [row for row in result["missing"] if row["part"] == "node"]
    assert [(row["subject"], row["category"]) for row in nodes] == [("pve3", "NodeUnhealthy")]
    assert any("pve3" in text and "offline" in text for text in result["warnings"])


def test_an_auditor_learns_what_it_may_not_see(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_acme")
    put_backup(lab, vm["vmid"], age=10)
    lab.client.write("PUT", "access", "acl", data=grant("PVEAuditor"))
    found, result = read(lab, **as_ops(lab))
    lab.client.write("PUT", "access", "acl", data={**grant("PVEAuditor"), "delete": 1})
    assert not found.has("proxmox_vm_backups")
    assert not found.has("proxmox_tenant_disk_bytes")
    assert found.get("proxmox_vm_snapshots", **vm_labels(vm, "acme")) == 0
    assert found.get("proxmox_tenant_vms", tenant="acme") == 1
    reasons = {row["part"]: row["reason"] for row in result["missing"]}
    assert reasons.keys() == {"backups", "disk"}
    assert "Datastore.AllocateSpace on /storage/local" in reasons["backups"]
    assert f"VM.Config.Disk on /vms/{vm['vmid']}" in reasons["disk"]


def test_the_documented_privileges_are_enough(lab: Lab) -> None:
    vm = machine(lab, tags="tenant_acme")
    put_backup(lab, vm["vmid"], age=10)
    privileges = (
        "VM.Audit VM.Backup VM.Config.Disk Sys.Audit Datastore.Audit Datastore.AllocateSpace"
    )
    lab.client.write("POST", "access", "roles", data={"roleid": "Metrics", "privs": privileges})
    lab.client.write("PUT", "access", "acl", data=grant("Metrics"))
    found, result = read(lab, **as_ops(lab))
    assert result["missing"] == []
    assert found.get("proxmox_vm_backups", **vm_labels(vm, "acme")) == 1
    assert found.has("proxmox_tenant_disk_bytes", tenant="acme")


def test_hidden_vms_are_reported(lab: Lab) -> None:
    machine(lab)
    found, result = read(lab, **as_ops(lab), **SMALL)
    assert found["proxmox_metrics_complete"] == 0
    (row,) = [row for row in result["missing"] if row["part"] == "vms"]
    assert "VM.Audit on /vms" in row["reason"]


def grant(role: str) -> dict[str, Any]:
    return {"path": "/", "roles": role, "users": "ops@pve"}


def as_ops(lab: Lab) -> dict[str, Any]:
    secret = "00000000-0000-4000-8000-0000000000f2"
    return {**lab.connection, "token_id": "ops@pve!auto", "token_secret": secret}


def test_a_cluster_that_does_not_answer(lab: Lab) -> None:
    machine(lab)
    found, result = read(lab, host="https://127.0.0.1:1", retries=1)
    assert found["proxmox_cluster_connection_status"] == 0
    assert found["proxmox_metrics_complete"] == 0
    assert found.families == {
        "proxmox_cluster_connection_status",
        "proxmox_metrics_complete",
        "proxmox_unread_parts",
        "proxmox_metrics_timestamp_seconds",
        "proxmox_reconciliation_duration_seconds",
        "proxmox_api_requests_total",
        "proxmox_errors_total",
    }
    status = {"method": "GET", "endpoint": "/version", "status": "none"}
    assert found.get("proxmox_api_requests_total", **status) == 1
    assert found.get("proxmox_errors_total", error_type="NetworkError") == 1
    (row,) = result["missing"]
    assert (row["part"], row["category"]) == ("site", "NetworkError")
    assert len(result["warnings"]) == 1


@pytest.mark.parametrize("path", ["/version$", "/cluster/resources$"])
def test_a_listing_that_fails_leaves_nothing_known(lab: Lab, path: str) -> None:
    lab.simulator.fault(method="GET", path=path, status=596, times=None)
    found, _result = read(lab, retries=1)
    lab.simulator.clear_faults()
    assert found["proxmox_cluster_connection_status"] == 0
    assert not found.has("proxmox_machines_total")


def test_wrong_credentials_are_not_an_empty_cluster(lab: Lab) -> None:
    found, result = read(lab, token_secret="00000000-0000-4000-8000-00000000dead")
    assert found["proxmox_cluster_connection_status"] == 0
    assert result["missing"][0]["category"] == "AuthenticationError"


def test_parts_that_fail_are_left_out(lab: Lab) -> None:
    vm = machine(lab)
    for path in ("/cluster/status$", "/access/permissions$"):
        lab.simulator.fault(method="GET", path=path, status=500, message="broken", times=None)
    found, result = read(lab, retries=1)
    lab.simulator.clear_faults()
    assert found["proxmox_cluster_connection_status"] == 1
    assert not found.has("proxmox_cluster_quorate")
    assert not found.has("proxmox_vm_backups")
    assert found.get("proxmox_vm_snapshots", **vm_labels(vm)) == 0
    assert {row["part"] for row in result["missing"]} == {"site", "privileges"}


def test_a_cluster_without_quorum(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"quorate": False})
    found, _result = read(lab, **SMALL)
    lab.simulator.steer("/cluster", {"quorate": True})
    assert found["proxmox_cluster_quorate"] == 0


def test_drift_by_tenant_and_status(lab: Lab) -> None:
    result = lab.run("vms", **ESTATE)
    assert not result.get("failed"), result
    web = next(row for row in result["vms"] if row["name"] == "web")
    lab.simulator.steer(f"/vms/{web['vmid']}", {"config": {"cores": "4"}})
    machine(lab, name="stray")
    report = lab.run("drift_info", **ESTATE)["drift"]
    found, _result = read(lab, **SMALL, drift=report)
    name = "proxmox_drift_vms"
    assert found.get(name, tenant="acme", status="drifted") == 1
    assert found.get(name, tenant="acme", status="in_sync") == 1
    assert found.get(name, tenant="acme", status="missing") == 0
    assert found.get(name, status="unlisted") == 1
    assert found["proxmox_drift_complete"] == 1
    assert found["proxmox_drift_timestamp_seconds"] > 1_700_000_000
    lab.simulator.steer("/nodes/pve3", {"online": False})
    report = lab.run("drift_info", **ESTATE)["drift"]
    found, _result = read(lab, **SMALL, drift=report)
    assert found["proxmox_drift_complete"] == 0
    assert not read(lab, **SMALL)[0].has(name)


def test_several_sites_in_one_file(lab: Lab, munich: Lab, tmp_path: Path) -> None:
    machine(lab, node="pve2")
    sites = [{"name": "berlin", **lab.connection}, {"name": "munich", **munich.connection}]
    file = tmp_path / "sites.prom"
    options = {"sites": sites, "path": str(file), "retries": 1}
    result = run_module("metrics", options)
    assert not result.get("failed"), result
    found = read_text(file.read_text(encoding="utf-8"))
    stopped = {"kind": "vm", "node": "pve2", "phase": "stopped"}
    assert found.get("proxmox_machines_total", site="berlin", **stopped) == 1
    assert found.get("proxmox_machines_total", site="munich", **stopped) == 0
    for site in ("berlin", "munich"):
        assert found.get("proxmox_cluster_connection_status", site=site) == 1

    dead = [sites[0], {**sites[1], "host": "https://127.0.0.1:1"}]
    result = run_module("metrics", {**options, "sites": dead})
    assert not result.get("failed"), result
    assert [row["site"] for row in result["missing"]] == ["munich"]
    assert result["warnings"][0].startswith("Site munich: ")
    found = read_text(file.read_text(encoding="utf-8"))
    assert found.get("proxmox_cluster_connection_status", site="berlin") == 1
    assert found.get("proxmox_cluster_connection_status", site="munich") == 0
    assert found.get("proxmox_machines_total", site="berlin", **stopped) == 1
    assert not found.has("proxmox_machines_total", site="munich", **stopped)

    one = run_module("metrics_info", {"sites": sites, "site": "munich", **SMALL})
    assert {label["site"] for label in all_labels(one)} == {"munich"}
    alone = run_module("metrics_info", {"sites": sites, **lab.connection, **SMALL})
    assert all("site" not in label for label in all_labels(alone))


def test_a_task_that_removes_the_metrics_of_another_site_warns(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "one.prom"
    sites = [{"name": name, **lab.connection} for name in ("berlin", "munich")]
    for site, lost in (("berlin", ""), ("munich", "site berlin"), ("munich", "")):
        result = run_module("metrics", {"sites": sites, "site": site, "path": str(file), **SMALL})
        warnings = " ".join(result.get("warnings", ()))
        assert (f"had metrics of {lost}, which this task does not read" in warnings) is bool(lost)
    alone = lab.run("metrics", path=str(file), **SMALL)
    assert "had metrics of site munich" in alone["warnings"][0]


def all_labels(result: dict[str, Any]) -> list[dict[str, str]]:
    return [row["labels"] for family in result["metrics"] for row in family["samples"]]


def test_the_file_is_replaced_and_counters_continue(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "proxmox.prom"
    options: dict[str, Any] = {"path": str(file), **SMALL}
    foreseen = lab.run("metrics", check=True, **options)
    assert foreseen["changed"]
    assert list(tmp_path.iterdir()) == []
    assert foreseen["diff"]["before"] == {}
    with umask(0o077):
        done = lab.run("metrics", **options)
    assert done["diff"] == foreseen["diff"]
    assert (done["file"], done["complete"]) == (str(file), True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [file]
    first = read_text(file.read_text(encoding="utf-8"))
    assert first.families == set(done["families"])
    assert len(first.values) == done["series"]

    text = file.read_text(encoding="utf-8")
    foreseen = lab.run("metrics", check=True, **options)
    assert foreseen["diff"]["before"] == done["diff"]["after"]
    assert file.read_text(encoding="utf-8") == text
    machine(lab)
    lab.run("metrics", **options)
    again = read_text(file.read_text(encoding="utf-8"))
    count = "proxmox_reconciliation_duration_seconds_count"
    assert (first.sum(count), again.sum(count)) == (1, 2)
    assert first.sum("proxmox_api_requests_total") == 4
    assert again.sum("proxmox_api_requests_total") == 8
    assert again.get("proxmox_machines_without_tenant", kind="vm") == 1


class umask:
    """Sets the mask of new files for a while."""

    def __init__(self, mask: int) -> None:
        self._mask = mask

    def __enter__(self) -> None:
        self._mask = os.umask(self._mask)

    def __exit__(self, *_unused: object) -> None:
        os.umask(self._mask)


def test_a_file_that_cannot_be_read_is_replaced(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "proxmox.prom"
    file.write_text("proxmox_errors_total{ 1\n", encoding="utf-8")
    result = lab.run("metrics", path=str(file), **SMALL)
    assert not result.get("failed"), result
    assert read_text(file.read_text(encoding="utf-8")).sum("proxmox_api_requests_total") == 4


def test_a_file_of_others_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "others.prom"
    for text in (b"# HELP x y\nnode_x 1\n", b"\xff\xfe"):
        file.write_bytes(text)
        result = refused(lab, "metrics", path=str(file))
        assert result["error"]["category"] == "Conflict"
        assert file.read_bytes() == text
        assert lab.simulator.log() == []


def test_a_path_that_cannot_be_written_is_refused_before_any_request(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "folder.prom").mkdir()
    os.mkfifo(tmp_path / "pipe.prom")
    for path, category in (
        (f"{tmp_path}/missing/x.prom", "ConfigurationError"),
        (f"{tmp_path}/folder.prom", "ConfigurationError"),
        (f"{tmp_path}/pipe.prom", "ConfigurationError"),
        (f"{tmp_path}/x.txt", "ValidationFailed"),
        ("x.prom", "ValidationFailed"),
    ):
        for check in (False, True):
            settle(lab)
            result = lab.run("metrics", check=check, path=path)
            assert result["failed"]
            assert result["error"]["category"] == category, path
            assert lab.simulator.log() == []
    with mock.patch("os.access", return_value=False):
        result = refused(lab, "metrics", path=f"{tmp_path}/x.prom")
    assert "cannot write" in result["msg"]
    with mock.patch("os.replace", side_effect=PermissionError(13, "Permission denied")):
        result = lab.run("metrics", path=f"{tmp_path}/x.prom", **SMALL)
    assert result["error"]["category"] == "ConfigurationError"
    assert "Permission denied" in result["msg"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder.prom", "pipe.prom"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"quotas": {"acme": {"vmz": 1}}}, "quotas.acme"),
        ({"quotas": {"": {"vms": 1}}}, "quotas was refused: '' is not the name of a tenant"),
        ({"quotas": {"acme": {"vms": 1}, "ACME": {"vms": 2}}}, "are one tenant"),
        ({"drift": {"version": 2}}, "drift"),
        ({"drift": {"version": 1}}, "drift"),
        ({"max_vms_per_node": "many"}, "max_vms_per_node"),
    ],
    ids=str,
)
def test_a_mistake_is_refused(lab: Lab, options: dict[str, Any], named: str) -> None:
    result = refused(lab, "metrics_info", **options)
    assert result["error"]["category"] == "ValidationFailed"
    assert named in result["msg"]
    assert lab.simulator.log() == []


@pytest.mark.parametrize("module", ["metrics", "metrics_info"])
def test_the_library_is_named_if_it_is_missing(lab: Lab, module: str, tmp_path: Path) -> None:
    found = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "prometheus_client" else found(name, *rest)

    options = {"path": f"{tmp_path}/x.prom"} if module == "metrics" else {}
    with mock.patch("importlib.util.find_spec", without):
        result = refused(lab, module, **options)
    assert "prometheus_client" in result["msg"]
    assert result["error"]["category"] == "ConfigurationError"
    assert result["error"]["reason"] == "missing library prometheus_client"
    assert lab.simulator.log() == []


def test_no_secret_is_in_the_file(lab: Lab, tmp_path: Path) -> None:
    cloud = {"user": "ops", "password": "canary-cloud-1"}
    lab.vm(name="web", tenant="acme", cloud_init=cloud, description="canary-notes-2")
    file = tmp_path / "proxmox.prom"
    sites = [{"name": "berlin", **lab.connection}]
    sites.append({"name": "dead", "host": "https://127.0.0.1:1"})
    sites[1].update(token_id="root@pam!dead", token_secret="canary-token-5")
    result = run_module("metrics", {"sites": sites, "path": str(file), "retries": 1})
    assert not result.get("failed"), result
    text = file.read_text(encoding="utf-8")
    assert "web" in text
    for secret in ("canary", TOKEN_SECRET):
        assert secret not in text
        assert secret not in json.dumps({**result, "invocation": None})
