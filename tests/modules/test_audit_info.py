# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module audit_info and the playbook: each kind of finding, in a cluster that has them all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests

from tests.modules.access_lab import do, limited
from tests.modules.container_lab import add_container, add_mount
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.tenant_lab import RIGHTS, made

REPO = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((REPO / "docs" / "audit.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TENANTS: dict[str, Any] = {
    "initech": {"quota": {"vms": 1}, "access": RIGHTS},
    "hooli": {"access": RIGHTS},
}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def test_schema_is_valid_and_strict() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    finding = {"kind": "no_tenant", "tenant": None, "subject": "100", "message": "x", "site": ""}
    document: dict[str, Any] = {"passed": False, "vms": 1, "containers": 0, "findings": [finding]}
    VALIDATOR.validate(document)
    for wrong in (
        {**document, "more": 1},
        {**document, "findings": [{**finding, "kind": "other"}]},
        {**document, "findings": [{**finding, "subject": 100}]},
        {**document, "findings": [{"kind": "no_tenant"}]},
    ):
        assert not VALIDATOR.is_valid(wrong)


def kinds(lab: Lab, **options: Any) -> set[tuple[str, str]]:
    lab.simulator.reset_log()
    result = do(lab, "audit_info", **options)
    assert lab.simulator.writes() == []
    assert result["passed"] == (not result["findings"])
    VALIDATOR.validate({name: result[name] for name in SCHEMA["required"]})
    for finding in result["findings"]:
        assert finding["message"] in " ".join(result["report"])
    return {(finding["kind"], finding["subject"]) for finding in result["findings"]}


def test_cluster_in_order_has_no_findings(lab: Lab) -> None:
    for user, name in (("root@pam", "fleet"), ("ops@pve", "auto")):
        path = ("access", "users", user, "token", name)
        lab.client.write("PUT", *path, data={"expire": 4102444800})
    for name in TENANTS:
        do(lab, "tenant", name=name, **RIGHTS, expire="2099-01-01")
        do(lab, "vm", name=name, tenant=name, pool=name, memory="1G")
    assert kinds(lab, tenants=TENANTS) == set()


def test_each_kind_is_found(lab: Lab) -> None:
    for name in TENANTS:
        do(lab, "tenant", name=name, **RIGHTS, expire="2099-01-01")
    blank: dict[str, Any] = {
        "memory": "1G",
        "disks": [{"size": 1, "storage": "ceph"}],
        "node": "pve1",
    }
    do(lab, "vm", name="a", vmid=500, tenant="initech", pool="initech", **blank)
    do(lab, "vm", name="b", vmid=501, tenant="initech", **blank)
    lab.client.write("PUT", "pools", data={"poolid": "hooli", "vms": "501"})
    do(lab, "vm", name="c", vmid=502, **blank)
    do(lab, "vm", name="d", vmid=503, tenant="umbrella", **blank)
    do(lab, "vm", name="e", vmid=504, tenant="hooli", pool="hooli", **blank)
    lab.simulator.steer("/vms/503", {"config": {"scsi3": "ceph:vm-500-disk-0,size=1G"}})
    lab.simulator.steer("/vms/504", {"config": {"tags": "tenant_hooli;tenant_initech"}})
    write = lab.client.write
    more = {"users": "tenant_initech@pve", "path": "/storage"}
    write("PUT", "access", "acl", data={**more, "roles": "PVEAuditor"})
    write("PUT", "access", "acl", data={**more, "roles": "tenant_initech", "path": "/pool/acme"})
    privileges = {"privs": "Sys.Modify", "append": 1}
    write("PUT", "access", "roles", "tenant_hooli", data=privileges)
    write("POST", "access", "users", data={"userid": "x@gone"})
    comment = {"comment": "Tenant x, created 2020-01-01", "expire": 4102444800}
    write("POST", "access", "users", "x@gone", "token", "tt", data=comment)
    found = kinds(lab, tenants=TENANTS)
    assert found >= {
        ("outside_pool", "501"),
        ("foreign_pool", "501"),
        ("no_tenant", "502"),
        ("unknown_tenant", "503"),
        ("foreign_volume", "503"),
        ("several_tenants", "504"),
        ("wide_rights", "/storage"),
        ("wide_rights", "/pool/acme"),
        ("wide_role", "tenant_hooli"),
        ("over_quota", "vms"),
        ("no_expiry", "root@pam!fleet"),
        ("old_token", "x@gone!tt"),
        ("unknown_user", "x@gone!tt"),
    }
    assert "9000" not in {subject for _kind, subject in found}
    without = {kind for kind, _subject in kinds(lab, volumes=False, max_token_age=36500)}
    assert not without & {"foreign_volume", "old_token", "over_quota", "unknown_tenant"}


def test_a_right_on_a_storage_that_a_tenant_must_not_use(lab: Lab) -> None:
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    declared = {"initech": {"access": RIGHTS}}
    assert kinds(lab, tenants=declared) == set()
    user = {"users": "tenant_initech@pve", "propagate": 1}
    for path, role in (
        ("/storage/local", "tenant_initech.storage"),
        ("/storage/local-lvm", "PVEDatastoreUser"),
    ):
        lab.client.write("PUT", "access", "acl", data={**user, "path": path, "roles": role})
    assert kinds(lab, tenants=declared) == {
        ("wide_rights", "/storage/local"),
        ("wide_rights", "/storage/local-lvm"),
    }
    fewer = {"initech": {"access": {**RIGHTS, "storages": ["local"]}}}
    assert ("wide_rights", "/storage/ceph") in kinds(lab, tenants=fewer)
    assert ("wide_rights", "/storage/local") not in kinds(lab, tenants=fewer)


def test_an_ha_rule_with_guests_of_several_tenants(lab: Lab) -> None:
    in_order(lab)
    for number, name in enumerate(TENANTS):
        do(lab, "tenant", name=name, **RIGHTS, expire="2099-01-01")
        do(lab, "vm", name=name, vmid=600 + number, tenant=name, pool=name, memory="1G")
        do(lab, "ha_resource", sid=f"vm:{600 + number}", request_state="stopped")
    rule: dict[str, Any] = {"type": "resource-affinity", "affinity": "negative"}
    do(lab, "ha_rule", name="apart", **rule, resources=["vm:600", "vm:601"])
    assert kinds(lab, tenants=TENANTS) == {("shared_rule", "apart")}
    login = limited(lab, "blind", {"/vms": "PVEAuditor"})
    found = do(lab, "audit_info", tenants={}, volumes=False, **login)["findings"]
    assert ("unknown", "HA rules") in {(one["kind"], one["subject"]) for one in found}


def test_containers_are_checked_like_vms(lab: Lab) -> None:
    in_order(lab)
    for name in TENANTS:
        do(lab, "tenant", name=name, **RIGHTS, expire="2099-01-01")
    add_container(lab, 700, hostname="ok", tags="tenant_hooli", pool="hooli")
    add_container(lab, 701, hostname="base", template=1)
    assert kinds(lab, tenants=TENANTS) == set()
    do(lab, "vm", name="own", tenant="initech", pool="initech", memory="1G")
    add_container(lab, 702, hostname="none")
    add_container(lab, 703, hostname="two", tags="tenant_hooli;tenant_initech", pool="hooli")
    add_container(lab, 704, hostname="other", tags="tenant_umbrella")
    add_container(lab, 705, hostname="away", tags="tenant_initech", pool="hooli")
    mount = "ceph:vm-700-disk-0,mp=/data"
    lab.simulator.steer("/containers/704", {"config": {"mp0": mount}})
    volume: dict[str, Any] = {"vmid": 700, "filename": "vm-700-disk-7", "size": "1G"}
    answer = allocate(lab, lab.connection, "pve1", volume)
    assert answer.json()["data"] == "ceph:vm-700-disk-7"
    found = kinds(lab, tenants=TENANTS)
    assert found == {
        ("no_tenant", "702"),
        ("several_tenants", "703"),
        ("unknown_tenant", "704"),
        ("foreign_volume", "704"),
        ("outside_pool", "705"),
        ("foreign_pool", "705"),
        ("unreferenced_volume", "700"),
        ("over_quota", "vms"),
    }
    assert do(lab, "audit_info")["containers"] == 6


def test_the_mount_points_of_containers_count_against_the_quota(lab: Lab) -> None:
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    add_container(lab, 700, hostname="ok", tags="tenant_initech", pool="initech")
    add_mount(lab, 700, "ceph:50,mp=/data")
    tenants = {"initech": {"access": RIGHTS, "quota": {"disk": "51G"}}}
    assert kinds(lab, tenants=tenants) == set()
    tenants["initech"]["quota"] = {"disk": "50G"}
    assert kinds(lab, tenants=tenants) == {("over_quota", "disk")}
    (shown,) = do(lab, "tenant_info", name="initech")["tenants"]
    assert (shown["vms"], shown["containers"], shown["usage"]["vms"]) == ([], [700], 1)


def allocate(
    lab: Lab, login: dict[str, Any], node: str, volume: dict[str, Any]
) -> requests.Response:
    """Allocate a volume on the storage `ceph` with any VMID."""
    return requests.post(
        f"{lab.simulator.url}/api2/json/nodes/{node}/storage/ceph/content",
        data=volume,
        headers={"Authorization": f"PVEAPIToken={login['token_id']}={login['token_secret']}"},
        verify=str(lab.simulator.ca),
        timeout=30,
    )


def in_order(lab: Lab) -> None:
    """Give every token an expiry date, so that the cluster has no findings."""
    for user, name in (("root@pam", "fleet"), ("ops@pve", "auto")):
        path = ("access", "users", user, "token", name)
        lab.client.write("PUT", *path, data={"expire": 4102444800})


def test_login_that_may_not_see_everything_is_a_finding(lab: Lab) -> None:
    login = made(lab, "initech", expire="2099-01-01")
    in_order(lab)
    do(lab, "vm", name="without-tenant", memory="1G")
    assert kinds(lab, **login) == {
        ("unknown", "VM.Audit on /vms"),
        ("unknown", "Sys.Audit on /access"),
        ("unknown", "VM.Config.Disk on /vms"),
        ("unknown", "Datastore.Audit on /storage"),
        ("unknown", "HA rules"),
    }


def test_vm_that_cannot_be_read_is_a_finding_and_one_that_vanished_is_not(lab: Lab) -> None:
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech", "memory": "1G"}
    kept = do(lab, "vm", name="kept", **own)["vm"]
    gone = do(lab, "vm", name="gone", **own)["vm"]
    lab.simulator.fault(
        method="GET",
        path=f"/qemu/{kept['vmid']}/(config|pending)$",
        status=500,
        message="cluster not ready - no quorum?",
        times=None,
    )
    lab.simulator.fault(
        method="GET",
        path=f"/qemu/{gone['vmid']}/(config|pending)$",
        nth=1,
        steer=[["DELETE", f"/vms/{gone['vmid']}", {}]],
    )
    assert kinds(lab, tenants={"initech": TENANTS["hooli"]}) == {("unknown", str(kept["vmid"]))}


def test_volume_with_the_vmid_of_another_tenants_vm(lab: Lab) -> None:
    """A user who may allocate on a storage can name any VMID: method create of pve-storage,
    PVE/API2/Storage/Content.pm, checks Datastore.AllocateSpace on the storage only.
    """
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    disks = [{"size": 1, "storage": "ceph"}, {"size": 1, "storage": "ceph"}]
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech", "memory": "1G", "disks": disks}
    machine = do(lab, "vm", name="app1", **own, cloud_init={"user": "ops"})["vm"]
    vmid, node = machine["vmid"], machine["node"]
    do(lab, "snapshot", vms=[vmid], snapshot="before", tenant="initech")
    tenants = {"initech": {"access": RIGHTS}}
    assert kinds(lab, tenants=tenants) == set()

    login = made(lab, "hooli", expire="2099-01-01")
    volume = {"vmid": vmid, "filename": f"vm-{vmid}-disk-7", "size": "1G"}
    answer = allocate(lab, login, node, volume)
    assert answer.json()["data"] == f"ceph:vm-{vmid}-disk-7"
    tenants["hooli"] = {"access": RIGHTS}
    lab.simulator.reset_log()
    result = do(lab, "audit_info", tenants=tenants)
    [finding] = result["findings"]
    assert finding == {
        "kind": "unreferenced_volume",
        "tenant": "initech",
        "subject": str(vmid),
        "message": f"VM app1 ({vmid}) does not refer to volume ceph:vm-{vmid}-disk-7,"
        " which has its VMID",
        "site": "",
    }
    assert kinds(lab, tenants=tenants, volumes=False) == set()


def test_volumes_of_a_snapshot_and_of_a_pending_change_are_referenced(lab: Lab) -> None:
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    disks = [{"size": 1, "storage": "ceph"}, {"size": 1, "storage": "ceph"}]
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech", "memory": "1G", "disks": disks}
    machine = do(lab, "vm", name="app1", **own)["vm"]
    do(lab, "snapshot", vms=[machine["vmid"]], snapshot="before", tenant="initech")
    lab.simulator.steer(f"/vms/{machine['vmid']}", {"config": {"scsi1": None}})
    assert kinds(lab, tenants={"initech": {"access": RIGHTS}}) == set()


def test_storage_that_cannot_be_listed_is_a_finding(lab: Lab) -> None:
    in_order(lab)
    path = "/storage/ceph/content$"
    message = "rbd error: connection refused"
    lab.simulator.fault(method="GET", path=path, status=500, message=message, times=None)
    assert ("unknown", "ceph") in kinds(lab)


def test_all_disks_count_against_the_quota(lab: Lab) -> None:
    in_order(lab)
    do(lab, "tenant", name="initech", **RIGHTS, expire="2099-01-01")
    disks = [{"size": 1, "storage": "ceph"}, {"size": 50, "storage": "ceph"}]
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech", "memory": "1G"}
    do(lab, "vm", name="app1", **own, disks=disks)
    tenants = {"initech": {"access": RIGHTS, "quota": {"disk": "51G"}}}
    assert kinds(lab, tenants=tenants) == set()
    tenants["initech"]["quota"] = {"disk": "50G"}
    assert kinds(lab, tenants=tenants) == {("over_quota", "disk")}


def test_vm_with_the_number_of_a_template_that_was_removed() -> None:
    """The listing has the state of the template until pvestatd has run (BEHAVIOUR.md)."""
    with open_lab("--lag-s", "60", "--auth-delay-s", "0") as lab:
        in_order(lab)
        lab.simulator.ask("POST", "/vms/500", {"node": "pve1", "name": "golden", "template": True})
        do(lab, "vm", vmid=500, state="absent", force=True)
        lab.client.task(
            "POST", "nodes", "pve1", "qemu", data={"vmid": 500, "name": "app1", "memory": 512}
        )
        result = do(lab, "audit_info")
        assert [one["message"] for one in result["findings"]] == ["VM app1 (500) has no tenant"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_token_age": 0}, "max_token_age"),
        ({"tenants": {"a b": {}}}, "is not the name of a tenant"),
    ],
    ids=str,
)
def test_mistakes(lab: Lab, options: dict[str, Any], words: str) -> None:
    assert words in lab.run("audit_info", **options)["msg"]


def test_a_guest_that_no_backup_job_has_is_a_finding_on_request(lab: Lab) -> None:
    """A job with a pool has its members, and a disabled job backs up nothing (pve-manager:
    PVE/VZDump.pm, get_included_guests).
    """
    in_order(lab)
    for name in TENANTS:
        do(lab, "tenant", name=name, **RIGHTS, expire="2099-01-01")
    do(lab, "vm", name="app1", vmid=600, tenant="initech", pool="initech", memory="1G")
    do(lab, "vm", name="base", vmid=601, tenant="initech", pool="initech", state="template")
    add_container(lab, 700, hostname="box", tags="tenant_hooli", pool="hooli")
    assert kinds(lab, tenants=TENANTS) == set()
    both = {("not_backed_up", "600"), ("not_backed_up", "700")}
    assert kinds(lab, tenants=TENANTS, backups=True) == both
    job: dict[str, Any] = {"storage": "local", "schedule": "21:00", "pool": "initech"}
    do(lab, "backup_job", name="nightly", **job, enabled=False)
    assert kinds(lab, tenants=TENANTS, backups=True) == both
    do(lab, "backup_job", name="nightly", enabled=True)
    [finding] = do(lab, "audit_info", tenants=TENANTS, backups=True)["findings"]
    assert finding == {
        "kind": "not_backed_up",
        "tenant": "hooli",
        "subject": "700",
        "message": "Container box (700) is in no enabled backup job",
        "site": "",
    }


def test_a_job_with_guests_of_others_on_the_storage_of_a_tenant(lab: Lab) -> None:
    in_order(lab)
    rights = {
        "initech": {**RIGHTS, "storages": ["local"]},
        "hooli": {**RIGHTS, "storages": ["ceph"]},
    }
    for vmid, (name, access) in zip((600, 602), rights.items(), strict=True):
        do(lab, "tenant", name=name, **access, expire="2099-01-01")
        do(lab, "vm", name=f"app{vmid}", vmid=vmid, tenant=name, pool=name, memory="1G")
    both = {name: {"access": access} for name, access in rights.items()}
    do(lab, "backup_job", name="mixed", schedule="21:00", vms=[600, 602], storage="local")
    found = do(lab, "audit_info", tenants=both, backups=True)["findings"]
    [finding] = [one for one in found if one["kind"] == "shared_job"]
    assert (finding["tenant"], finding["subject"]) == ("initech", "mixed")
    assert "puts guests of hooli on storage local, which only initech may use" in finding["message"]
    do(lab, "backup_job", name="mixed", enabled=False)
    assert ("shared_job", "mixed") not in kinds(lab, tenants=both, backups=True)


def test_backup_jobs_that_cannot_be_read_are_a_finding(lab: Lab) -> None:
    """Source: pve-manager, PVE/API2/Backup.pm, index: it needs Sys.Audit on /."""
    in_order(lab)
    login = limited(lab, "blind", {"/vms": "PVEAuditor"})
    found = do(lab, "audit_info", backups=True, volumes=False, **login)["findings"]
    assert ("unknown", "backup jobs") in {(one["kind"], one["subject"]) for one in found}
