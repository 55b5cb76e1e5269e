# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module estate_info against the simulator: what it exports is provisioned without a write."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.texts.checksum import (
    find_edit,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from tests.cases import cases
from tests.modules.estate_lab import TOKEN_ID, TOKEN_SECRET, Lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check, machine, refused
from tests.simulator.process import Simulator
from tests.unit.module_utils.estate.test_promise import (
    OPTIONS_OF_VARIABLES,
    Loader,
    machine_lists,
    many,
)

TOKEN = {"token_id": TOKEN_ID, "token_secret": TOKEN_SECRET}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9kL2cSGZ9Y7wqGm5y7qGmM4bqXy9t6v4kq3Yx0JmPz ops"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def export(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return an export, which must cost no write and have the same data in its text."""
    result = check(lab, "estate_info", **options)
    assert result["changed"] is False
    read = yaml.load(result["text"], Loader)
    assert read == {
        name: value for name, value in result["estate"].items() if value or name == "provision_vms"
    }
    return result


def options_of(estate: dict[str, Any]) -> dict[str, Any]:
    """Return the options of module vms for the variables of an estate."""
    return {OPTIONS_OF_VARIABLES[name]: value for name, value in estate.items()}


def provision(lab: Lab, estate: dict[str, Any]) -> dict[str, Any]:
    """Return what a run of an exported estate comes to, which must cost no write."""
    lab.simulator.reset_log()
    result = lab.run("vms", **options_of(estate))
    assert not result.get("failed"), result
    assert lab.simulator.writes() == []
    assert result["changed"] is False
    return result


def vms(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for vm in result["estate"]["provision_vms"]:
        found[vm.get("name") or str(vm["vmid"])] = vm
    return found


def put(lab: Lab, vmid: int, config: dict[str, str], **more: Any) -> None:
    """Put a VM with this configuration into the cluster, whatever the API would say of it."""
    lab.simulator.ask("POST", f"/vms/{vmid}", {"node": "pve1", "name": f"vm-{vmid}", **more})
    lab.simulator.steer(f"/vms/{vmid}", {"config": {"name": None, **config}})


@many(cases(100, 8))
@given(machines=machine_lists(5))
def test_any_cluster_is_provisioned_without_a_write(cluster: Lab, machines: list[Actual]) -> None:
    cluster.simulator.reset()
    for vm in machines:
        is_template = vm.template
        config = {key: text for key, text in vm.target.items() if key not in ("lock", "template")}
        more = {"pool": vm.pool} if vm.pool else {}
        put(cluster, vm.vmid, config, **more)
        if vm.running:
            cluster.simulator.steer(f"/vms/{vm.vmid}", {"running": True})
        if is_template:
            cluster.simulator.steer(f"/vms/{vm.vmid}", {"config": {"template": "1"}})
    result = export(cluster)
    assert result["complete"]
    assert result["unsettled"] == []
    exported = {vm["vmid"] for vm in result["estate"]["provision_vms"]}
    assert exported == {9000, 9001, *(vm.vmid for vm in machines)}
    provision(cluster, result["estate"])


def test_a_large_cluster_is_provisioned_without_a_write() -> None:
    count = cases(1000, 60)
    arguments = ("--nodes", 5, "--vms", count, "--seed", 1, "--lag-s", 0)
    with Simulator(*arguments) as simulator:
        connection = {"host": simulator.url, "ca_path": str(simulator.ca), **TOKEN}
        result = run_module("estate_info", connection)
        estate = result["estate"]
        assert result["complete"]
        assert result["unexpressed"] == []
        assert estate["provision_classes"]
        assert estate["provision_networks"]
        simulator.reset_log()
        done = run_module("vms", {**connection, **options_of(estate)})
        assert done["summary"]["unchanged"] == len(estate["provision_vms"]) >= count
        assert simulator.writes() == []


def test_a_cluster_is_provisioned_without_a_write(lab: Lab) -> None:
    for number in (1, 2):
        lab.vm(
            name=f"web{number}",
            tenant="acme",
            pool="acme",
            source="debian-13",
            cores=4,
            memory="2G",
            state="started",
            nics=[{"bridge": "vmbr1", "vlan": 120, "ip": f"10.0.0.{number}/24"}],
            cloud_init={"user": "ops", "password": "canary", "ssh_keys": [KEY]},
        )
    db = machine(lab, name="db", cores=4, memory=2048, onboot=1, balloon=1024)
    lab.simulator.steer(f"/vms/{db['vmid']}", {"config": {"args": "-no-hpet"}})
    lab.simulator.reset_log()
    result = export(lab)
    requests = len(lab.simulator.log())
    assert result["complete"]
    web1 = vms(result)["web1"]
    assert web1["class"] == "4c-2g"
    assert web1["tenant"] == "acme"
    acme = result["estate"]["tenants"]["acme"]
    assert (acme["pool"], acme["defaults"]["source"]) == ("acme", "debian-13")
    (nic,) = web1["nics"]
    assert (nic["network"], nic["ip"]) == ("vmbr1.120", "10.0.0.1/24")
    assert result["estate"]["provision_networks"]["vmbr1.120"] == {"bridge": "vmbr1", "vlan": 120}
    assert vms(result)["db"]["options"] == {"args": "-no-hpet"}
    assert [row["option"] for row in result["secrets"]] == ["cloud_init.password"] * 2
    assert "canary" not in str(result)
    assert result["unexpressed"] == []
    done = provision(lab, result["estate"])
    assert done["summary"]["unchanged"] == 5
    # the requests of a run without a change, and for the privileges, jobs, HA rules and VNets
    assert requests == len(lab.simulator.log()) + 4
    assert export(lab)["text"] == result["text"]


def test_the_names_of_what_is_shared_do_not_depend_on_the_order(lab: Lab) -> None:
    for node in ("pve3", "pve1", "pve2"):
        machine(lab, name=f"on-{node}", node=node, cores=2, net0="virtio,bridge=vmbr0,tag=7")
    first = export(lab)["text"]
    assert export(lab)["text"] == first


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"tenant": "acme"}, ["a", "b"]),
        ({"tenant": "ACME", "tags": ["Web"]}, ["b"]),
        ({"pool": "globex"}, ["c"]),
        ({"tags": ["web"]}, ["b", "c"]),
        ({"vms": ["a", "9000"]}, ["a", "debian-13"]),
        ({"templates": False}, ["a", "b", "c", "d"]),
    ],
    ids=str,
)
def test_filters(lab: Lab, filters: dict[str, Any], names: list[str]) -> None:
    machine(lab, name="a", tags="tenant_acme")
    machine(lab, name="b", tags="tenant_acme;web")
    machine(lab, name="c", tags="tenant_globex;web", pool="globex")
    machine(lab, name="d", tags="tenant_globex;tenant_acme")
    result = export(lab, **filters)
    assert sorted(vms(result)) == names
    assert result["complete"]
    provision(lab, result["estate"])


def test_adoption_only_adds_the_tag(lab: Lab) -> None:
    free = machine(lab, name="free", tags="web", running=True)
    machine(lab, name="other", tags="tenant_globex")
    result = export(lab, adopt="acme")
    assert vms(result)["free"]["adopt"] is True
    assert "adopt" not in vms(result)["debian-13"]
    options = options_of(result["estate"])
    foreseen = check(lab, "vms", **options)
    (changed,) = [row for row in foreseen["vms"] if row["changed"]]
    assert changed["name"] == "free"
    (diff,) = foreseen["diff"]
    assert (diff["before"], diff["after"]) == ({"tags": ["web"]}, {"tags": ["tenant_acme", "web"]})
    before = lab.config(free)
    done = lab.run("vms", **options)
    assert not done.get("failed"), done
    after = lab.config(free)
    different = {key for key in before | after if before.get(key) != after.get(key)}
    assert different == {"tags", "digest"}
    again = export(lab)
    assert vms(again)["free"]["tenant"] == "acme"
    assert "adopt" not in vms(again)["free"]
    provision(lab, again["estate"])
    provision(lab, result["estate"])


def test_another_prefix_of_tenants(lab: Lab) -> None:
    machine(lab, name="a", tags="org-acme")
    machine(lab, name="b", tags="tenant_acme")
    result = export(lab, tenant_prefix="Org-", adopt="globex")
    assert vms(result)["a"]["tenant"] == "acme"
    assert (vms(result)["b"]["tenant"], vms(result)["b"]["tags"]) == ("globex", ["tenant_acme"])
    done = check(lab, "vms", **options_of(result["estate"]))
    (diff,) = done["diff"]
    assert diff["after"] == {"tags": ["org-globex", "tenant_acme"]}
    provision(lab, export(lab, tenant="acme", tenant_prefix="Org-")["estate"])


def test_hostile_texts_stay_texts(lab: Lab) -> None:
    texts = [
        "{{ lookup('pipe', 'touch /tmp/pwned') }}",
        "no",
        "0123",
        "# not a comment\n{% if %}\n  - list",
        "\u202eright to left \u2028 and \x1b[31m",
        "a\tb: 'c' \"d\" \\ \u2603 \U0001f600",
    ]
    for number, text in enumerate(texts):
        machine(lab, name=f"h{number}", description=text)
    put(lab, 666, {"name": "no", "memory": "64"})
    result = export(lab)
    for number, text in enumerate(texts):
        assert vms(result)[f"h{number}"]["description"] == text
    assert all(line.isprintable() for line in result["text"].splitlines())
    provision(lab, result["estate"])


def test_two_vms_of_a_name(lab: Lab) -> None:
    first, second = machine(lab, name="same"), machine(lab, name="same")
    machine(lab, name="same", tags="tenant_acme")
    result = export(lab)
    assert [vm["vmid"] for vm in result["estate"]["provision_vms"] if vm.get("name") == "same"] == [
        second["vmid"] + 1,
        first["vmid"],
    ]
    (row,) = result["unexpressed"]
    assert (row["vmid"], row["option"], row["value"]) == (second["vmid"], "name", "same")
    provision(lab, result["estate"])


def test_a_dead_node(lab: Lab) -> None:
    away = machine(lab, name="away", node="pve3", tags="tenant_acme", pool="acme")
    machine(lab, name="here", tags="tenant_acme", onboot=1, pool="acme")
    lab.simulator.steer("/nodes/pve3", {"online": False})
    try:
        result = export(lab, retries=1)
        elsewhere = export(lab, retries=1, pool="globex")
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
    assert not result["complete"]
    assert result["nodes"] == [{"node": "pve3", "reason": "node pve3 is offline"}]
    (missing,) = result["missing"]
    assert (missing["vmid"], missing["tenant"]) == (away["vmid"], "acme")
    assert missing["reason"] == "node pve3 is offline"
    assert "# NOT COMPLETE" in result["text"]
    assert result["report"][0].startswith("NOT COMPLETE")
    # no VM of this pool is on that node
    assert elsewhere["complete"]
    # It is in the list, so that a run which prunes keeps it, and such a run changes nothing of it.
    known = vms(result)[str(away["vmid"])]
    assert known == {"vmid": away["vmid"], "tenant": "acme", "state": "present"}
    provision(lab, result["estate"])


def test_a_node_that_does_not_answer(lab: Lab) -> None:
    away = machine(lab, name="away", node="pve3")
    lab.simulator.fault(method="GET", path="/nodes/pve3/", status=596, times=None)
    result = export(lab, retries=1)
    (missing,) = result["missing"]
    assert not result["complete"]
    assert (missing["vmid"], missing["name"], missing["node"]) == (away["vmid"], "away", "pve3")
    assert missing["reason"]
    assert missing["privilege"] is None


def test_missing_privileges_are_named_for_each_vm(lab: Lab) -> None:
    shown = machine(lab, name="shown")
    broken = machine(lab, name="broken")
    message = f"Permission check failed (/vms/{broken['vmid']}, VM.Audit)"
    path = f"/qemu/{broken['vmid']}/pending$"
    lab.simulator.fault(method="GET", path=path, status=403, message=message, times=None)
    result = export(lab)
    (missing,) = result["missing"]
    assert (missing["vmid"], missing["name"]) == (broken["vmid"], "broken")
    assert (missing["privilege"], missing["acl_path"]) == ("VM.Audit", f"/vms/{broken['vmid']}")
    assert f"broken ({broken['vmid']})" in result["text"]
    assert "shown" in vms(result)
    assert shown["vmid"] not in [row["vmid"] for row in result["missing"]]


def test_a_login_that_sees_a_part_of_the_vms(lab: Lab) -> None:
    seen = machine(lab, name="seen", pool="acme")
    hidden = machine(lab, name="hidden", pool="globex")
    login = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}
    whole = export(lab, **login)
    assert vms(whole).keys() == {"seen"}
    assert any("VM.Audit on /vms" in warning for warning in whole["warnings"])
    named = export(lab, **login, vms=[str(hidden["vmid"]), "seen"])
    assert not named["complete"]
    (missing,) = named["missing"]
    assert (missing["vmid"], missing["privilege"]) == (hidden["vmid"], "VM.Audit")
    assert str(hidden["vmid"]) in named["text"]
    rights = {"path": "/pool/acme", "users": "ops@pve", "roles": "PVEPoolUser"}
    lab.client.write("PUT", "access", "acl", data=rights)
    of_pool = export(lab, **login, pool="acme")
    assert of_pool["complete"]
    assert vms(of_pool).keys() == {"seen"}
    lab.client.write(
        "PUT", "pools", data={"poolid": "acme", "vms": str(hidden["vmid"]), "allow-move": 1}
    )
    lab.client.write(
        "PUT",
        "access",
        "acl",
        data={"path": f"/vms/{hidden['vmid']}", "users": "ops@pve", "roles": "NoAccess"},
    )
    of_pool = export(lab, **login, pool="acme")
    assert [row["vmid"] for row in of_pool["missing"]] == [hidden["vmid"]]
    assert seen["vmid"] in [vm["vmid"] for vm in of_pool["estate"]["provision_vms"]]


def test_power_nodes_and_quotas(lab: Lab) -> None:
    machine(lab, name="off", tags="tenant_acme", node="pve2")
    machine(lab, name="on", tags="tenant_acme", running=True, cores=2)
    result = export(lab, tenant="acme", quotas=True, on_nodes=True)
    assert (vms(result)["off"]["state"], vms(result)["off"]["node"]) == ("stopped", "pve2")
    assert "state" not in vms(result)["on"]
    assert result["estate"]["tenants"]["acme"]["quota"] == {
        "vms": 2,
        "cores": 3,
        "memory": "512M",
        "disk": "2G",
    }
    provision(lab, result["estate"])
    result = export(lab, tenant="acme", power=False)
    assert result["estate"]["provision_state"] == "present"
    assert all("state" not in vm for vm in vms(result).values())
    assert "# its VMs have {vms: 2, cores: 3, memory: 512M, disk: 2G}" in result["text"]
    provision(lab, result["estate"])


@pytest.mark.parametrize("tags", ["", "web", "tenant_acme", "tenant_acme;web"])
def test_a_tag_that_is_set_by_hand_later_is_drift(lab: Lab, tags: str) -> None:
    vm = machine(lab, name="a", tags=tags)
    machine(lab, name="b", tags="tenant_acme;web")
    estate = export(lab)["estate"]
    provision(lab, estate)
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"tags": f"{tags};by-hand"}})
    drift = check(lab, "drift_info", **options_of(estate))["drift"]
    (drifted,) = [one for one in drift["vms"] if one["status"] != "in_sync"]
    assert (drifted["name"], drifted["status"]) == ("a", "drifted")
    (difference,) = drifted["options"]
    assert difference["option"] == "tags"
    assert set(difference["actual"]) - set(difference["wanted"] or ()) == {"by-hand"}


def test_a_tag_that_cannot_be_expressed_stays(lab: Lab) -> None:
    vm = machine(lab, name="a")
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"tags": "-odd;web"}})
    result = export(lab)
    assert [one["value"] for one in result["unexpressed"]] == ["-odd"]
    assert "tags_exact" not in vms(result)["a"]
    provision(lab, result["estate"])


def test_what_is_being_made_is_named(lab: Lab) -> None:
    vm = machine(lab, name="new")
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"lock": "create"})
    result = export(lab)
    (missing,) = result["missing"]
    assert missing["vmid"] == vm["vmid"]
    assert "is being created" in missing["reason"]
    assert "new" not in vms(result)


@pytest.mark.parametrize(
    ("options", "category", "named"),
    [
        ({"vms": ["no-such-vm"]}, "NotFound", "no-such-vm"),
        ({"vms": []}, "ValidationFailed", "vms"),
        ({"vms": [""]}, "ValidationFailed", "vms"),
        ({"pool": "no-such-pool"}, "NotFound", "no-such-pool"),
        ({"tags": ["no tag"]}, "ValidationFailed", "no tag"),
        ({"adopt": ""}, "ValidationFailed", "adopt"),
        ({"adopt": "a", "tenant": "acme"}, "ValidationFailed", "adopt"),
    ],
    ids=str,
)
def test_a_mistake_is_refused(lab: Lab, options: dict[str, Any], category: str, named: str) -> None:
    result = refused(lab, "estate_info", **options)
    assert result["error"]["category"] == category
    assert named in result["msg"]


def test_the_page_shows_what_is_exported(lab: Lab) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    example = yaml.safe_load((docs / "examples" / "estate.yml").read_text(encoding="utf-8"))
    result = lab.run(
        "vms",
        vms=example["provision_vms"],
        defaults=example["provision_defaults"],
        classes=example["provision_classes"],
        networks=example["provision_networks"],
        storage_classes=example["provision_storage_classes"],
        state="started",
    )
    assert not result.get("failed"), result
    text = with_numbered_macs(export(lab)["text"])
    page = (docs / "export.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yml\n(.*?)```", page, re.DOTALL)
    assert without_checksum(shown) == without_checksum(text)
    assert find_edit(shown.encode()) == ""


def without_checksum(text: str) -> str:
    return re.sub(r"# Checksum: .*", "", text)


def with_numbered_macs(text: str) -> str:
    """Return the text with MAC addresses in the order of the list: PVE chooses them by chance."""
    numbers = itertools.count(1)
    return re.sub(r'"BC:24:11:[^"]*"', lambda _found: f'"BC:24:11:00:00:{next(numbers):02X}"', text)
