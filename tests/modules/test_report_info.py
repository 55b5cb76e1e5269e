# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module report_info against the simulator: what it finds, from one look, and what is unknown."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.filter.report_html import report_html
from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
from tests.modules.access_lab import ROOT, do
from tests.modules.container_lab import add_container, add_mount
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module
from tests.modules.report_lab import (
    DAY,
    add_backup,
    gathered,
    gathered_at,
    risks,
    tenants,
    validated,
    vms,
)
from tests.modules.snapshot_lab import machine, refused, take
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

GIB = 1 << 30
PRICES = {"core": "4.50", "memory": "2", "storage": "0.08", "currency": "EUR"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def web(lab: Lab, **options: Any) -> dict[str, Any]:
    """Make a VM of tenant acme with one core, 256 MiB and 1 GiB of disk."""
    return machine(lab, **{"name": "web", "tags": "tenant_acme", "agent": "1", **options})


def simulator_options(simulator: Simulator) -> dict[str, Any]:
    return {
        "host": simulator.url,
        "ca_path": str(simulator.ca),
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }


def site_of(lab: Lab, name: str) -> dict[str, Any]:
    return {"name": name, **lab.connection}


def login(lab: Lab, **privileges: str) -> dict[str, str]:
    """Return the options of a token with these privileges: words by path, `root` for /."""
    write = lab.client.write
    write("POST", "access", "users", data={"userid": "reader@pve"})
    for number, (place, words) in enumerate(privileges.items()):
        role = f"Reader{number}"
        path = "/" if place == "root" else f"/{place}"
        write("POST", "access", "roles", data={"roleid": role, "privs": words.replace(" ", ",")})
        acl = {"path": path, "users": "reader@pve", "roles": role}
        write("PUT", "access", "acl", data=acl)
    segments = ("access", "users", "reader@pve", "token", "report")
    made = write("POST", *segments, data={"privsep": 0})
    return {"token_id": made["full-tokenid"], "token_secret": made["value"]}


def test_containers_are_reported_beside_vms(lab: Lab) -> None:
    """The quota of a tenant is one over both kinds."""
    machine(lab, name="web", tags="tenant_acme", cores=2, memory=512, disk="ceph:3")
    add_container(
        lab, 710, running=True, hostname="proxy1", tags="tenant_acme", cores=1, memory=256
    )
    add_mount(lab, 710, "ceph:2,mp=/data")
    add_container(lab, 711, hostname="proxy2")
    add_container(lab, 712, hostname="base", template=1)
    quotas = {"acme": {"quota": {"vms": 1, "disk": "6G"}}}
    report = gathered(lab, tenants=quotas)["report"]
    assert report["complete"] is True
    assert [(one["name"], one["kind"]) for one in report["vms"]] == [("web", "vm")]
    first, second = report["containers"]
    assert (first["name"], first["kind"], first["tenant"]) == ("proxy1", "container", "acme")
    assert (first["agent"], first["pending"], first["disk"]) == (None, [], 3 * GIB)
    assert (first["backup"]["state"], first["snapshots"]["count"]) == ("none", 0)
    assert (second["name"], second["owners"]) == ("proxy2", [])
    (site,) = report["sites"]
    assert (site["vms"], site["containers"], site["templates"]) == (1, 3, 2)
    acme = tenants(report)["acme"]
    assert (acme["vms"], acme["running"], acme["cores"], acme["disk"]) == (2, 1, 3, 6 * GIB)
    assert [quota["exceeded"] for quota in acme["quotas"]] == [True, False]
    found = risks(report)
    assert found["no_tenant"] == ["proxy2"]
    assert sorted(found["no_backup"]) == ["acme/proxy1", "acme/web", "proxy2"]
    assert found["no_agent"] == ["acme/web"]


def test_a_guest_that_moves_to_another_site(lab: Lab) -> None:
    """Its record is in its notes. Module container_info shows it, too."""
    add_container(lab, 710, hostname="proxy1", tags="tenant_acme")
    move = "0f:710:munich:701:online:1:1764500000::0:vienna"
    notes = {"description": f"mail\n<!-- pve.fleet: move={move} -->"}
    lab.client.write("PUT", "nodes", "pve1", "lxc", 710, "config", data=notes)
    report = gathered(lab)["report"]
    found = lab.run("container_info", vmid=710, config=True)["containers"][0]
    assert found["move"] == report["containers"][0]["move"]
    assert found["move"]["state"] == "moving"
    assert risks(report)["move"] == ["acme/proxy1: moving, vienna 710 to munich 701"]


def test_disks_without_backup_need_attention(lab: Lab) -> None:
    """A mount without C(backup=1) is not in the archive (pve-container: LXC/Config.pm,
    mountpoint_backup_enabled).
    """
    add_container(lab, 710, hostname="proxy1", tags="tenant_acme")
    add_mount(lab, 710, "ceph:2,mp=/data")
    assert "left_out" not in risks(gathered(lab)["report"])
    job = {"id": "all", "all": 1, "schedule": "1:00", "storage": "local"}
    lab.client.write("POST", "cluster", "backup", data=job)
    report = gathered(lab)["report"]
    assert report["containers"][0]["left_out"] == ["mp0"]
    assert risks(report)["left_out"] == ["acme/proxy1: mp0"]


def test_a_cluster_without_vms(lab: Lab) -> None:
    result = gathered(lab)
    report = result["report"]
    assert (report["vms"], report["tenants"], report["attention"]) == ([], [], [])
    assert report["complete"]
    assert result["lines"] == ["Report: sites 1, VMs 0", "Nothing needs attention"]
    assert result["costs_csv"] is None
    (site,) = report["sites"]
    assert (site["name"], site["vms"], site["templates"]) == ("demo", 0, 2)
    assert site["room"] == {"cores_left": 3 * 16 * 4, "memory_left": 192 * GIB, "vms_left": None}


def test_a_single_node_without_a_cluster() -> None:
    with Simulator("--nodes", 1, "--vms", 0, "--lag-s", 0) as simulator:
        options = {**simulator_options(simulator), "retries": 1}
        (site,) = validated(run_module("report_info", options))["report"]["sites"]
    assert (len(site["nodes"]), site["quorate"]) == (1, True)


def test_a_vm_with_its_tenant(lab: Lab) -> None:
    vm = web(lab, running=True, cores=2)
    add_backup(lab, vm, 3600)
    take(lab, vm, "before")
    report = gathered(lab, tenants={"globex": {"quota": {"vms": 3}}})["report"]
    found = vms(report)["web"]
    assert (found["tenant"], found["owners"], found["node"]) == ("acme", ["acme"], "pve1")
    assert (found["cores"], found["memory"], found["disk"]) == (2, GIB // 4, GIB)
    assert (found["agent"], found["pending"], found["reason"]) == (True, [], None)
    assert (found["snapshots"]["count"], found["snapshots"]["old"]) == (1, [])
    assert (found["backup"]["state"], found["backup"]["count"]) == ("ok", 1)
    acme, globex = tenants(report)["acme"], tenants(report)["globex"]
    assert (acme["vms"], acme["running"], acme["cores"], acme["quotas"]) == (1, 1, 2, [])
    assert globex["vms"] == 0
    assert globex["quotas"] == [{"kind": "vms", "used": 0, "limit": 3, "exceeded": False}]
    assert report["attention"] == []


def test_what_needs_attention(lab: Lab) -> None:
    old, none, both = (
        web(lab, name="old"),
        web(lab, name="none", agent="0"),
        web(lab, name="shared", tags="tenant_acme;tenant_globex"),
    )
    nobodys = web(lab, name="nobodys", tags="", running=True)
    lab.client.task(
        "POST", "nodes", "pve1", "qemu", nobodys["vmid"], "config", data={"cores": 2, "memory": 512}
    )
    for vm in (old, both, nobodys):
        add_backup(lab, vm, 8 * DAY if vm is old else 60)
    take(lab, none, "ancient")
    quotas = {"acme": {"quota": {"memory": "300M", "vms": 2}}}
    report = gathered(lab, tenants=quotas, snapshot_days=0)["report"]
    found = risks(report)
    assert found["quota"] == ["acme: memory 512 MiB of 300 MiB"]
    assert found["no_backup"] == ["acme/none"]
    assert [text.split(":")[0] for text in found["old_backup"]] == ["acme/old"]
    assert found["no_tenant"] == ["nobodys"]
    assert found["several_tenants"] == ["shared: acme, globex"]
    assert found["reboot"] == ["nobodys: cores, memory"]
    assert found["old_snapshot"] == ["acme/none: ancient"]
    assert found["no_agent"] == ["acme/none"]
    severities = [risk["severity"] for risk in report["attention"]]
    assert severities == sorted(severities, key=["critical", "warning", "notice"].index)
    kinds = {risk["kind"]: risk for risk in report["attention"]}
    assert kinds["old_backup"]["title"].endswith("older than 7 days")
    assert kinds["no_backup"]["cases"][0]["vmid"] == none["vmid"]
    # neither tenant has the VM with the tags of both
    assert tenants(report)[""]["vms"] == 2
    assert report["complete"]


def test_pending_changes_of_a_stopped_vm_wait_for_nothing(lab: Lab) -> None:
    vm = web(lab)
    lab.client.task("POST", "nodes", "pve1", "qemu", vm["vmid"], "config", data={"cores": 2})
    found = vms(gathered(lab)["report"])["web"]
    assert (found["pending"], found["cores"]) == ([], 2)


def test_the_room_follows_the_rules_of_placement(lab: Lab) -> None:
    web(lab, cores=2)
    placement = {"cpu_overcommit": 1, "memory_overcommit": 0.5, "max_vms_per_node": {"pve1": 0}}
    report = gathered(lab, placement=placement)["report"]
    first = report["sites"][0]["nodes"][0]
    assert first["capacity"]["cores_left"] == 14
    assert first["capacity"]["memory_left"] == 32 * GIB - GIB // 4
    assert first["capacity"]["vms_left"] == -1
    # a node above its limit takes nothing from the room of the others
    assert report["sites"][0]["room"]["vms_left"] == 0
    assert risks(report)["node_warning"] == ["pve1: guests: 1 more than the placement rules allow"]


def test_one_look(lab: Lab) -> None:
    """Each VM is read once, also where an estate is compared with it."""
    made = [web(lab, name=f"web{number}") for number in range(3)]
    gathered(lab)
    paths = Counter(row["path"] for row in lab.simulator.log())
    assert {paths[f"/nodes/pve1/qemu/{vm['vmid']}/pending"] for vm in made} == {1}
    assert {paths[f"/nodes/pve1/qemu/{vm['vmid']}/snapshot"] for vm in made} == {1}
    alone = len(lab.simulator.log())
    wanted = [{"name": vm["name"], "tenant": "acme", "cores": 1} for vm in made]
    estate = {"vms": wanted, "unlisted": False}
    report = gathered(lab, estate=estate)["report"]
    assert report["drift"]["summary"]["in_sync"] == 3
    # what the comparison adds: the VMs of their node with the full power state
    assert len(lab.simulator.log()) == alone + 1


def asked_for_addresses(lab: Lab) -> int:
    return len([row for row in lab.simulator.log() if row["path"].endswith("interfaces")])


def test_addresses_are_read_on_request(lab: Lab) -> None:
    """One more request for each guest that runs."""
    runs = web(lab, running=True)
    web(lab, name="off", ipconfig0="ip=10.0.0.7/24")
    nic = "name=eth0,bridge=vmbr0,ip=10.0.0.8/24"
    add_container(lab, 710, running=True, hostname="proxy1", net0=nic)
    assert vms(gathered(lab)["report"])["web"]["address"] is None
    assert asked_for_addresses(lab) == 0
    report = gathered(lab, addresses=True)["report"]
    assert asked_for_addresses(lab) == 2
    found = vms(report)
    assert (
        found["web"]["address"]
        == lab.run("vm_info", vmid=runs["vmid"], addresses=True)["vms"][0]["address"]
    )
    assert found["off"]["address"] == "10.0.0.7"
    assert report["containers"][0]["address"] == "10.0.0.8"


def test_drift_is_that_of_drift_info(lab: Lab) -> None:
    web(lab, cores=2)
    estate = {"vms": [{"name": "web", "tenant": "acme", "cores": 1}, {"name": "db"}]}
    report = gathered(lab, estate=estate)["report"]
    compared = run_module("drift_info", {**lab.connection, **estate})["drift"]
    compared["checked"] = report["drift"]["checked"]
    assert report["drift"] == compared
    assert risks(report)["drift"] == ["acme/web differs from the estate", "db is missing"]


def test_a_report_with_a_cluster_file(lab: Lab) -> None:
    group: dict[str, Any] = {"name": "editors", "comment": "Editors"}
    lab.run("pool_info", **ROOT)
    report = gathered(lab, estate={"cluster": {"groups": [group]}})["report"]
    assert risks(report)["cluster_drift"] == ["groups editors is missing"]
    assert report["drift"]["unlisted"] == []
    page = report_html(report)
    assert "groups editors" in page
    assert "Last logins: root@pam" in page
    lab.run("group", **group)
    report = gathered(lab, estate={"cluster": {"groups": [group]}})["report"]
    assert "cluster_drift" not in risks(report)
    assert "As in the cluster file" in report_html(report)
    lab.run("group", name="editors", comment="Authors")
    page = report_html(gathered(lab, estate={"cluster": {"groups": [group]}})["report"])
    assert "comment Authors -&gt; Editors" in page


def test_quotas_of_an_estate(lab: Lab) -> None:
    web(lab)
    settings = {"acme": {"quota": {"vms": 1, "disk": "10G"}}}
    estate = {"vms": [{"name": "web", "tenant": "acme"}], "tenant_settings": settings}
    quotas = tenants(gathered(lab, estate=estate)["report"])["acme"]["quotas"]
    assert {one["kind"]: (one["used"], one["limit"]) for one in quotas} == {
        "vms": (1, 1),
        "disk": (GIB, 10 * GIB),
    }


def test_growth_since_the_last_report(lab: Lab) -> None:
    first = web(lab)
    one = gathered(lab)
    assert one["report"]["growth"] == {"since": None, "reason": None, "total": None, "tenants": {}}
    web(lab, name="more", tags="tenant_globex", cores=3)
    lab.client.task("DELETE", "nodes", "pve1", "qemu", first["vmid"])
    two = gathered(lab, history=json.dumps(one["history"]))
    growth = two["report"]["growth"]
    assert growth["since"] == one["report"]["checked"]
    assert growth["tenants"][""]["globex"] == {
        "vms": 1,
        "cores": 3,
        "memory": GIB // 4,
        "disk": GIB,
    }
    assert growth["tenants"][""]["acme"]["vms"] == -1
    assert growth["total"] == {"vms": 0, "cores": 2, "memory": 0, "disk": 0}
    assert [row["cores"] for row in two["report"]["trend"]] == [1, 3]
    assert len(two["history"]["reports"]) == 2


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ("{", "it is not JSON"),
        ('{"version": 2, "reports": []}', "it has version 2, not 1"),
        ("[]", "it is not complete"),
        ("[" * 100_000, "it is not JSON"),
        ('{"version": 1, "reports": [{"checked": "yesterday", "sites": {}}]}', "not complete"),
        (
            '{"version": 1, "reports": [{"checked": "2026-01-01", "sites": {"": {"a": {}}}}]}',
            "not complete",
        ),
    ],
    ids=("half", "version", "list", "deep", "time", "figures"),
)
def test_a_history_that_cannot_be_used_is_kept(lab: Lab, history: str, why: str) -> None:
    web(lab)
    result = gathered(lab, history=history)
    assert result["history"] is None
    growth = result["report"]["growth"]
    assert why in growth["reason"]
    assert (growth["since"], growth["total"]) == (None, None)
    assert growth["reason"] in result["warnings"]


def test_costs(lab: Lab) -> None:
    web(lab, cores=3)
    web(lab, name="other", tags="")
    result = gathered(lab, prices=PRICES, tenants={"globex": {}})
    costs = result["report"]["costs"]
    by_tenant = {row["tenant"]: row for row in costs["tenants"]}
    acme = by_tenant["acme"]
    assert (acme["cores"], acme["memory"], acme["disk"]) == ("13.50", "0.50", "0.08")
    assert acme["total"] == "14.08"
    assert by_tenant["globex"]["total"] == "0.00"
    assert by_tenant[""]["total"] == "5.08"
    assert costs["total"] == "19.16"
    lines = list(csv.DictReader(io.StringIO(result["costs_csv"])))
    assert [line["tenant"] for line in lines] == ["acme", "globex", ""]
    assert lines[0]["cost"] == "14.08"
    assert (lines[0]["memory_gib"], lines[0]["currency"]) == ("0.25", "EUR")
    assert lines[0]["month"] == result["report"]["checked"][:7]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"prices": {"core": "cheap"}}, "prices.core"),
        ({"prices": {"memory": True}}, "prices.memory"),
        ({"prices": {"storage": "-1"}}, "prices.storage"),
        ({"prices": {"core": "nan"}}, "prices.core"),
        ({"prices": {"core": "1e99"}}, "prices.core"),
        ({"prices": {"core": [1]}}, "prices.core"),
        ({"prices": {"kernel": 1}}, "kernel"),
        ({"snapshot_days": -1}, "snapshot_days"),
        ({"tenants": {"acme": {"quota": {"vms": "many"}}}}, "acme were refused: quota.vms"),
        ({"tenants": {"acme": 5}}, "tenant acme"),
        ({"placement": {"cpu_overcommit": 0}}, "cpu_overcommit"),
        ({"placement": {"cpus": 1}}, "cpus"),
        ({"memory_warn": 0}, "memory_warn"),
        ({"estate": {"vms": [{"name": "a", "coers": 1}]}}, "coers"),
        ({"estate": {}}, "vms"),
        ({"estate": {"vms": [], "wms": []}}, "wms"),
    ],
    ids=str,
)
def test_a_mistake_is_refused(lab: Lab, options: dict[str, Any], named: str) -> None:
    result = refused(lab, "report_info", **options)
    assert result["error"]["category"] == "ValidationFailed"
    assert named in result["msg"]
    assert lab.simulator.log() == []


def test_secrets_of_the_estate_are_hidden(lab: Lab) -> None:
    vm = {"name": "web", "cloud_init": {"user": "ops", "password": "hush-hush"}}
    arguments = {**lab.connection, "estate": {"vms": [vm]}}
    assert "hush-hush" not in json.dumps(run_module("report_info", arguments))


def test_a_dead_node_is_unknown(lab: Lab) -> None:
    web(lab)
    other = web(lab, name="other", node="pve2")
    before = gathered(lab)["history"]
    lab.simulator.steer("/nodes/pve2", {"online": False})
    try:
        result = gathered(
            lab,
            retries=1,
            prices=PRICES,
            tenants={"acme": {"quota": {"cores": 2}}},
            history=json.dumps(before),
        )
    finally:
        lab.simulator.steer("/nodes/pve2", {"online": True})
    report = result["report"]
    assert not report["complete"]
    found = vms(report)
    lost = next(vm for vm in report["vms"] if vm["vmid"] == other["vmid"])
    assert lost["reason"] == "node pve2 is offline"
    assert (lost["agent"], lost["pending"], lost["snapshots"]) == (None, None, None)
    assert lost["backup"]["state"] == "unknown"
    assert found["web"]["reason"] is None
    # backups on the local storage of that node cannot be seen
    assert found["web"]["backup"]["state"] == "unknown"
    node = next(one for one in report["sites"][0]["nodes"] if one["node"] == "pve2")
    assert (node["status"], node["capacity"]) == ("offline", None)
    acme = tenants(report)["acme"]
    assert "1 of its guests could not be read: node pve2 is offline" in acme["reason"]
    assert report["costs"]["total"] is None
    assert report["growth"]["tenants"][""]["acme"] is None
    assert report["growth"]["total"] is None
    assert result["history"]["reports"][-1]["sites"][""]["acme"] is None
    assert risks(report)["node"] == ["pve2: the node is offline"]
    assert "unread" in risks(report)
    assert "no_backup" not in risks(report)
    assert "no_agent" not in risks(report)


def test_a_dead_site_is_unknown_and_the_other_is_not(lab: Lab, munich: Lab) -> None:
    web(lab)
    web(munich)
    alive = [site_of(lab, "berlin"), site_of(munich, "munich")]
    described = {"acme": {"quota": {"vms": 3}}, "globex": {"site": "munich"}}
    both = gathered_at(alive, tenants=described)
    assert [site["reason"] for site in both["report"]["sites"]] == [None, None]
    dead = [alive[0], {**alive[1], "host": "https://127.0.0.1:1"}]
    estate = {"vms": [{"name": "web", "tenant": "acme", "site": "munich"}], "unlisted": False}
    result = gathered_at(
        dead,
        tenants=described,
        retries=1,
        prices=PRICES,
        estate=estate,
        history=json.dumps(both["history"]),
    )
    report = result["report"]
    assert not report["complete"]
    berlin, lost = report["sites"]
    assert berlin["reason"] is None
    assert "127.0.0.1" in lost["reason"]
    assert (lost["vms"], lost["room"], lost["nodes"]) == (None, None, [])
    by_place = {(row["site"], row["tenant"]): row for row in report["tenants"]}
    assert by_place["berlin", "acme"]["vms"] == 1
    at_munich = by_place["munich", "acme"]
    assert (at_munich["vms"], at_munich["reason"]) == (None, lost["reason"])
    assert at_munich["quotas"] == [{"kind": "vms", "used": None, "limit": 3, "exceeded": None}]
    assert ("berlin", "globex") not in by_place
    assert report["costs"]["total"] is None
    assert "munich" in result["costs_csv"]
    assert result["history"]["reports"][-1]["sites"]["munich"] is None
    assert report["growth"]["tenants"]["berlin"]["acme"]["vms"] == 0
    assert report["drift"]["vms"][0]["status"] == "unknown"
    assert not report["drift"]["drift"]
    assert risks(report)["site"] == [lost["reason"]]


def test_a_wrong_login_is_not_an_empty_cluster(lab: Lab) -> None:
    web(lab)
    wrong = {**lab.connection, "token_secret": "00000000-0000-4000-8000-000000000bad"}
    report = run_module("report_info", wrong)["report"]
    assert report["sites"][0]["reason"]
    assert (report["complete"], report["sites"][0]["vms"]) == (False, None)


def test_an_unreadable_vm_is_named(lab: Lab) -> None:
    vm = web(lab)
    message = f"Permission check failed (/vms/{vm['vmid']}, VM.Audit)"
    path = f"/qemu/{vm['vmid']}/snapshot$"
    lab.simulator.fault(method="GET", path=path, status=403, message=message, times=None)
    report = gathered(lab)["report"]
    assert "VM.Audit" in vms(report)["web"]["reason"]
    assert vms(report)["web"]["snapshots"] is None
    assert not report["complete"]


def test_privileges_that_are_missing_are_named(lab: Lab) -> None:
    web(lab)
    add_backup(lab, web(lab, name="safe"), 60)
    report = gathered(lab, **login(lab, vms="VM.Audit"))["report"]
    lacking = {(row["path"], row["privilege"]) for row in report["sites"][0]["privileges"]}
    assert lacking == {("/nodes", "Sys.Audit"), ("/storage", "Datastore.Audit")}
    assert not report["complete"]
    assert {vm["backup"]["state"] for vm in report["vms"]} == {"unknown"}
    assert report["sites"][0]["room"] is None
    named = " ".join(risks(report)["unknown"])
    assert "Sys.Audit on /nodes" in named


def test_hidden_backups_are_unknown(lab: Lab) -> None:
    """PVE lists backups only for who may restore them, and leaves others out without an error
    (pve-storage: PVE/Storage.pm, check_volume_access).
    """
    add_backup(lab, web(lab), 60)
    words = "VM.Audit Sys.Audit Datastore.Audit"
    report = gathered(lab, **login(lab, root=words))["report"]
    backup = vms(report)["web"]["backup"]
    assert backup["state"] == "unknown"
    assert "Datastore.AllocateSpace" in backup["reason"]
    assert "no_backup" not in risks(report)
    assert report["sites"][0]["privileges"] == []
    write = lab.client.write
    more = f"{words} Datastore.AllocateSpace VM.Backup".replace(" ", ",")
    write("PUT", "access", "roles", "Reader0", data={"privs": more})
    path = ("access", "users", "reader@pve", "token", "second")
    made = write("POST", *path, data={"privsep": 0})
    second = {"token_id": made["full-tokenid"], "token_secret": made["value"]}
    assert vms(gathered(lab, **second)["report"])["web"]["backup"]["state"] == "ok"


def test_an_old_backup_is_not_known_to_be_the_newest_where_a_storage_is_silent(lab: Lab) -> None:
    add_backup(lab, web(lab, name="old"), 8 * DAY)
    add_backup(lab, web(lab, name="safe"), 60)
    path = "/nodes/pve2/storage/local/content$"
    lab.simulator.fault(method="GET", path=path, status=500, message="out of order", times=None)
    report = gathered(lab, retries=1, backup_days=7)["report"]
    old, safe = vms(report)["old"]["backup"], vms(report)["safe"]["backup"]
    assert (old["state"], old["time"], old["count"]) == ("unknown", None, None)
    assert "out of order" in old["reason"]
    assert "old_backup" not in risks(report)
    assert any("out of order" in text for text in risks(report)["backup_unknown"])
    assert (safe["state"], safe["count"]) == ("ok", None)
    assert safe["time"] is not None
    assert "was backed up last" in safe["reason"]


def test_a_backup_of_an_earlier_guest_does_not_count(lab: Lab) -> None:
    vm = web(lab)
    add_backup(lab, vm, 3600)
    lab.client.task("DELETE", "nodes", "pve1", "qemu", vm["vmid"])
    data = {"vmid": vm["vmid"], "name": "web", "memory": 256}
    lab.client.task("POST", "nodes", "pve1", "qemu", data=data)
    assert vms(gathered(lab)["report"])["web"]["backup"]["state"] == "none"


def test_a_site_that_uses_a_part_of_a_cluster(lab: Lab) -> None:
    web(lab)
    web(lab, name="elsewhere", node="pve2")
    site = {**site_of(lab, "half"), "nodes": ["pve1"], "storages": ["ceph"], "max_vms_per_node": 1}
    report = gathered_at([site])["report"]
    (half,) = report["sites"]
    assert [node["node"] for node in half["nodes"]] == ["pve1"]
    assert [storage["storage"] for storage in half["storages"]] == ["ceph"]
    assert list(vms(report)) == ["web"]
    assert half["room"]["vms_left"] == 0


def test_a_part_that_cannot_be_read_is_named(lab: Lab) -> None:
    web(lab)
    path = "/access/permissions$"
    lab.simulator.fault(method="GET", path=path, status=500, message="out of order", times=None)
    report = gathered(lab, retries=1)["report"]
    (entry,) = report["sites"][0]["missing"]
    assert entry["part"] == "privileges of the login"
    assert "out of order" in entry["reason"]
    assert vms(report)["web"]["backup"]["state"] == "unknown"
    assert not report["complete"]


def test_failed_tasks_of_the_last_day(lab: Lab) -> None:
    lab.simulator.fault(task="qmstart", fail="no space left on device")
    vm = web(lab)
    with pytest.raises(Exception, match="no space left"):
        lab.client.task("POST", "nodes", "pve1", "qemu", vm["vmid"], "status", "start")
    (text,) = risks(gathered(lab)["report"])["failed_task"]
    assert text == f"qmstart {vm['vmid']} by root@pam on pve1: no space left on device"


def test_zones_vnets_and_their_guests(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    do(lab, "sdn", zones=[{"name": "tenants", "type": "vlan", "bridge": "vmbr0"}])
    alias = "front [pve.fleet: tenant=tenant_acme]"
    vnets = [{"name": "tacme", "zone": "tenants", "tag": 9, "alias": alias}]
    do(lab, "sdn", vnets=vnets)
    nics = [{"bridge": "tacme"}]
    vm = do(lab, "vm", name="web", tenant="acme", nics=nics, node="pve1", default_storage="ceph")
    report = gathered(lab)["report"]
    (zone,) = report["sites"][0]["networks"]
    assert (zone["zone"], zone["type"]) == ("tenants", "vlan")
    guest = {"kind": "vm", "vmid": vm["vm"]["vmid"], "tenant": "acme", "name": "web"}
    assert zone["vnets"] == [
        {"vnet": "tacme", "name": "front", "tag": 9, "tenant": "acme", "guests": [guest]}
    ]
    page = page_of(report, "Networks")
    assert '<div class="vnet">' in page
    assert "<strong>acme front</strong>" in page
