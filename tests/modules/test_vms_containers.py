# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module vms with VMs and containers: one plan, one choice of VMIDs and nodes, one quota."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab, first_number, open_lab
from tests.modules.tenant_lab import made

DEBIAN = "debian-13-standard"
VM: dict[str, Any] = {"name": "db", "disks": [{"size": "2G"}]}
CT: dict[str, Any] = {"name": "web", "source": DEBIAN}
BOTH: dict[str, Any] = {
    "tenant": "acme",
    "memory": "1G",
    "default_storage": "ceph",
    "vms": [VM],
    "containers": [CT],
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def rows_of(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(row["kind"], row["name"], row["action"]) for row in result["vms"]]


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure, which check mode foresees; neither may write anything."""
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run("vms", check=check, **options)
        assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return result


def do_check(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the result of check mode, failed or not."""
    return lab.run("vms", check=True, **options)


def test_both_kinds_are_created_changed_and_removed_by_one_plan(lab: Lab) -> None:
    foreseen = do(lab, "vms", check=True, **BOTH)
    assert lab.simulator.writes() == []
    result = do(lab, "vms", **BOTH)
    assert rows_of(result) == [("vm", "db", "created"), ("container", "web", "created")]
    assert rows_of(foreseen) == rows_of(result)
    assert [row["vmid"] for row in foreseen["vms"]] == [row["vmid"] for row in result["vms"]]
    assert [one["after"].keys() for one in foreseen["diff"]] == [
        one["after"].keys() for one in result["diff"]
    ]
    db, web = result["vms"]
    assert (db["vm"]["tags"], web["container"]["tags"]) == (["tenant_acme"], ["tenant_acme"])
    assert not do(lab, "vms", **BOTH)["changed"]
    grown = {**BOTH, "memory": "2G"}
    foreseen = do(lab, "vms", check=True, **grown)
    assert rows_of(do(lab, "vms", **grown)) == rows_of(foreseen)
    assert {row["action"] for row in foreseen["vms"]} == {"changed"}
    gone = do(lab, "vms", **BOTH, remove=True)
    assert {row["action"] for row in gone["vms"]} == {"removed"}
    assert not do(lab, "vms", **BOTH, remove=True)["changed"]


def test_unchanged_run_reads_each_guest_once(lab: Lab) -> None:
    names = [f"g{number}" for number in range(4)]
    options: dict[str, Any] = {
        **BOTH,
        "vms": [{**VM, "name": name} for name in names[:2]],
        "containers": [{**CT, "name": name} for name in names[2:]],
    }
    do(lab, "vms", **options)
    lab.simulator.reset_log()
    assert not do(lab, "vms", **options)["changed"]
    counts = Counter(
        entry["path"].partition("?")[0].split("/")[-1] for entry in lab.simulator.log()
    )
    assert counts["resources"] == 1
    assert counts["pending"] == 4
    assert counts["qemu"] <= 3
    assert counts["lxc"] <= 3


def test_classes_defaults_and_networks_hold_for_both_kinds(lab: Lab) -> None:
    options: dict[str, Any] = {
        "tenant": "acme",
        "classes": {
            "small": {"cores": 2, "bios": "seabios", "swap": "256M", "source": "debian-13"}
        },
        "class": "small",
        "networks": {"back": {"bridge": "vmbr1"}},
        "storage_classes": {"fast": "ceph"},
        "defaults": {"memory": "1G", "tty": 3, "nics": [{"network": "back"}]},
        "vms": [{"name": "db"}],
        "containers": [
            {**CT, "rootfs": {"storage_class": "fast", "size": "4G"}, "class": "small"},
            {**CT, "name": "web2", "default_storage": "ceph", "memory": "2G"},
        ],
    }
    result = do(lab, "vms", **options)
    assert not do(lab, "vms", **options)["changed"]
    db, web, web2 = result["vms"]
    assert db["vm"]["config"]["cores"] == 2
    config = lab.client.get("nodes", web["node"], "lxc", web["vmid"], "config")
    assert (config["cores"], config["memory"]) == (2, 1024)
    assert (config["swap"], config["tty"]) == (256, 3)
    assert config["rootfs"].startswith("ceph:")
    assert "bridge=vmbr1" in config["net0"]
    assert web2["container"]["config"]["memory"] == 2048


def test_tenants_have_settings_for_both_kinds(lab: Lab) -> None:
    settings = {"acme": {"tags": ["prod"], "defaults": {"memory": "1G", "tty": 4, "bios": "ovmf"}}}
    own = {**CT, "tenant": "acme", "default_storage": "ceph"}
    (web,) = do(lab, "vms", containers=[own], tenant_settings=settings)["vms"]
    config = lab.client.get("nodes", web["node"], "lxc", web["vmid"], "config")
    assert (config["tags"], config["tty"]) == ("prod;tenant_acme", 4)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"containers": [{**CT, "name": "db"}]}, "vms[0] and containers[0] have the same identity"),
        ({"containers": [{**CT, "name": "DB"}]}, "both have the name"),
        (
            {"vms": [{**VM, "vmid": 300}], "containers": [{**CT, "vmid": 300}]},
            "both have the VMID 300",
        ),
        ({"containers": [{**CT, "bios": "ovmf"}]}, "containers[0] (web)"),
        ({"nics": [{"model": "e1000", "bridge": "vmbr0"}]}, "model"),
        ({"state": "paused"}, "state"),
        ({"class": "big", "classes": {"big": {"sawp": 1}}}, "sawp"),
        ({"defaults": {"sawp": 1}}, "sawp"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_the_first_request(
    lab: Lab, change: dict[str, Any], cause: str
) -> None:
    assert cause in refused(lab, **{**BOTH, **change})["msg"]


def test_list_without_any_list_is_refused(lab: Lab) -> None:
    result = lab.run("vms", tenant="acme")
    assert result["failed"]
    assert "vms, containers" in result["msg"]


def test_template_of_a_vm_is_refused_as_a_source(lab: Lab) -> None:
    wrong = {**BOTH, "vms": [], "containers": [{**CT, "source": "debian-13"}]}
    assert "debian-13" in refused(lab, **wrong)["msg"]


def test_number_of_the_other_kind_is_refused_in_both_directions(lab: Lab) -> None:
    do(lab, "vms", **BOTH)
    web = first_number("web", "acme")
    db = first_number("db", "acme")
    as_vm = refused(lab, tenant="acme", vms=[{**VM, "name": "x", "vmid": web}])
    assert f"a container has the number {web}" in as_vm["msg"]
    as_ct = refused(lab, tenant="acme", containers=[{**CT, "name": "x", "vmid": db}])
    assert f"a VM has the number {db}" in as_ct["msg"]
    with_both = refused(lab, tenant="acme", vms=[VM], containers=[{**CT, "name": "x", "vmid": db}])
    assert f"a VM has the number {db}" in with_both["vms"][1]["msg"]


@pytest.mark.parametrize("own", ["vm", "container"])
def test_name_of_the_other_kind_is_refused_while_the_listing_lags(own: str) -> None:
    """A guest has no name in the listing until pvestatd has run (pve-manager: API2Tools.pm)."""
    made_of: dict[str, dict[str, Any]] = {
        "vm": {"name": "both", "memory": "1G"},
        "container": {"name": "both", "source": DEBIAN, "default_storage": "ceph"},
    }
    other = "container" if own == "vm" else "vm"
    with open_lab("--lag-s", "60", "--auth-delay-s", "0") as lab:
        do(lab, other, tenant="acme", vmid=700, **made_of[other])
        lab.simulator.reset_log()
        result = lab.run(own, tenant="acme", **made_of[own])
        assert result["error"]["reason"] == "name taken", result
        lists: dict[str, Any] = {f"{own}s": [made_of[own]]}
        listed = lab.run("vms", tenant="acme", **lists)
        assert listed["error"]["reason"] == "name taken", listed
        assert lab.simulator.writes() == []


@pytest.mark.parametrize("own", ["vm", "container"])
def test_run_that_creates_the_other_kind_at_the_same_time(lab: Lab, own: str) -> None:
    """The VMID follows from the name, so that both runs try the same one first."""
    number = first_number("both", "acme")
    kinds = {"vm": "containers", "container": "vms"}
    name = {"vms": "name", "containers": "hostname"}[kinds[own]]
    body = {"node": "pve1", "config": {name: "both", "tags": "tenant_acme"}}
    taken = [["POST", f"/{kinds[own]}/{number}", body]]
    path = {"vm": "/nodes/[^/]+/qemu$", "container": "/nodes/[^/]+/lxc$"}[own]
    lab.simulator.fault(method="POST", path=path, steer=taken)
    options: dict[str, Any] = {
        "vm": {"memory": "1G"},
        "container": {"source": DEBIAN, "default_storage": "ceph"},
    }
    result = lab.run(own, name="both", tenant="acme", **options[own])
    assert result["failed"], result
    assert result["error"]["reason"] == "name taken"


def test_quota_counts_both_kinds(lab: Lab) -> None:
    limits = {"vms": 2, "memory": "2G", "cores": 3, "disk": "100G"}
    unlimited = do_check(lab, **BOTH, quota=limits)["vms"][1]
    assert unlimited["error"]["reason"] == "unlimited cores"
    lab_quota = {**BOTH, "quota": limits, "defaults": {"cores": 1}}
    result = do(lab, "vms", **lab_quota)
    assert {row["action"] for row in result["vms"]} == {"created"}
    third = {**lab_quota, "containers": [CT, {**CT, "name": "web2"}]}
    stops = refused(lab, **third)
    assert stops["error"]["category"] == "QuotaExceeded"
    assert [row["action"] for row in stops["vms"]] == ["unchanged", "unchanged", "failed"]
    alone = refused(lab, **{**lab_quota, "vms": [{**VM, "name": "db2"}], "containers": []})
    assert "vms: 2 used + 1 wanted, the limit is 2" in alone["msg"]
    swapped = {**lab_quota, "containers": [{**CT, "state": "absent"}, {**CT, "name": "web2"}]}
    assert [row["action"] for row in do(lab, "vms", **swapped)["vms"]] == [
        "unchanged",
        "removed",
        "created",
    ]


def test_quota_of_disks_counts_mount_points(lab: Lab) -> None:
    mounts = [{"path": "/data", "size": "6G", "storage": "ceph"}]
    web = {**CT, "rootfs": {"size": "4G"}, "mounts": mounts}
    limited = {**BOTH, "quota": {"disk": "11G"}}
    beyond = do_check(lab, **{**limited, "containers": [web]})
    assert "disk" in beyond["vms"][1]["msg"]
    do(lab, "vms", **{**limited, "vms": [], "containers": [web]})
    later = do_check(lab, **{**limited, "containers": [web]})
    assert "10 GiB used + 2 GiB wanted" in later["vms"][0]["msg"]


def test_guests_of_both_kinds_keep_apart(lab: Lab) -> None:
    apart = {"placement": {"anti_affinity": ["ha"]}, "tags": ["ha"]}
    containers = [CT, {**CT, "name": "web2"}]
    result = do(lab, "vms", **{**BOTH, **apart, "containers": containers})
    assert len({row["node"] for row in result["vms"]}) == 3
    full = refused(lab, **{**BOTH, **apart, "containers": [*containers, {**CT, "name": "web3"}]})
    assert "web3" in full["msg"]


def test_prune_is_about_the_kinds_of_the_list(lab: Lab) -> None:
    more = {**BOTH, "vms": [VM, {**VM, "name": "db2"}], "containers": [CT, {**CT, "name": "web2"}]}
    do(lab, "vms", **more)
    only_vms = {**BOTH, "containers": [], "prune": True}
    result = do(lab, "vms", **only_vms)
    assert [row["name"] for row in result["vms"] if row["pruned"]] == ["db2"]
    assert any("Not pruned: 2 containers" in line for line in result["warnings"])
    foreseen = do(lab, "vms", check=True, **BOTH, prune=True)
    result = do(lab, "vms", **BOTH, prune=True)
    assert [row["name"] for row in result["vms"] if row["pruned"]] == ["web2"]
    assert rows_of(foreseen) == rows_of(result)
    assert not do(lab, "vms", **BOTH, prune=True)["changed"]


def test_failure_names_the_list(lab: Lab) -> None:
    wrong = {**BOTH, "containers": [{**CT, "cores": 0}, {**CT, "name": "-"}]}
    result = refused(lab, **wrong)
    assert result["refused"]
    assert {row["kind"] for row in result["vms"]} == {"container"}
    assert "containers[1]" in result["msg"]


def test_tenant_works_with_its_own_token(lab: Lab) -> None:
    login = made(lab, "initech", storages=["ceph", "local"])
    options: dict[str, Any] = {
        **BOTH,
        **login,
        "tenant": "initech",
        "pool": "initech",
        "quota": {"vms": 2},
    }
    result = do(lab, "vms", **options)
    assert {row["action"] for row in result["vms"]} == {"created"}
    assert not do(lab, "vms", **options)["changed"]
    assert {row["action"] for row in do(lab, "vms", **options, remove=True)["vms"]} == {"removed"}


@pytest.mark.parametrize("kind", ["vms", "containers"])
@pytest.mark.parametrize("source", ["first", "5001"])
def test_a_source_that_the_same_list_creates_is_named(lab: Lab, kind: str, source: str) -> None:
    first: dict[str, Any] = {"name": "first", "vmid": 5001}
    if kind == "vms":
        first["disks"] = [{"size": 1, "storage": "ceph"}]
    else:
        first |= {"source": "debian-13-standard", "default_storage": "ceph"}
    items: dict[str, Any] = {kind: [first, {"name": "second", "source": source}]}
    foreseen = lab.run("vms", check=True, tenant="acme", **items)
    result = lab.run("vms", tenant="acme", **items)
    assert foreseen["msg"] == result["msg"]
    assert "'first' was not cloned: the same list has yet to create it" in result["msg"]
    assert result["vms"][1]["error"]["reason"] == "source is planned"
