# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Approved plans of modules tenant, cluster and power: the run sends their requests and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_cluster import FILE
from tests.modules.test_plans import approved_requests, written
from tests.modules.test_power import places, populate
from tests.modules.test_tenant_networks import INITECH, ZONE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return str(tmp_path / "plan.json")


def planned_and_applied(lab: Lab, place: str, module: str, **task: Any) -> dict[str, Any]:
    """Plan a task, apply its plan twice, and return the result of the first run."""
    lab.simulator.reset_log()
    result = lab.run(module, check=True, plan_file=place, **task)
    assert not result.get("failed"), result["msg"]
    assert lab.simulator.writes() == []
    first = lab.run(module, apply_plan=place, **task)
    assert not first.get("failed"), first["msg"]
    assert first["changed"]
    assert written(lab) <= approved_requests(place)
    lab.simulator.reset_log()
    again = lab.run(module, apply_plan=place, **task)
    assert not again.get("failed"), again["msg"]
    assert not again["changed"]
    return first


def test_a_tenant_with_networks(unused: Lab, place: str) -> None:
    do(unused, "sdn", zones=[ZONE])
    do(unused, "firewall", scope="cluster", options={"enable": True})
    planned_and_applied(unused, place, "tenant", **INITECH)
    refused = unused.run("tenant", apply_plan=place, **{**INITECH, "templates": []})
    assert refused["failed"]
    assert "not the approved one" in refused["msg"]


def test_one_file_has_the_plans_of_several_tenants(unused: Lab, place: str) -> None:
    tenants: list[dict[str, Any]] = [
        {"name": name, "credentials_file": f"{place}.{name}.yml"} for name in ("hooli", "initech")
    ]
    for tenant in tenants:
        run: dict[str, Any] = {"plan_run": "one", "plan_file": place}
        assert unused.run("tenant", check=True, **run, **tenant)["changed"]
    for tenant in tenants:
        assert do(unused, "tenant", apply_plan=place, **tenant)["changed"]
        assert not do(unused, "tenant", apply_plan=place, **tenant)["changed"]


def test_a_tenant_that_is_removed_with_its_guests(unused: Lab, place: str) -> None:
    do(unused, "tenant", **{**INITECH, "networks": {}}, credentials_file=f"{place}.sites.yml")
    unused.vm(name="a", tenant="initech", pool="initech", memory="128M", state="started")
    gone: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}
    result = unused.run("tenant", check=True, plan_file=place, **gone)
    assert not result.get("failed"), result["msg"]
    unused.vm(name="b", tenant="initech", pool="initech", memory="128M")
    refused = unused.run("tenant", apply_plan=place, **gone)
    assert refused["failed"]
    unused.vm(name="b", tenant="initech", state="absent")
    planned_and_applied(unused, place, "tenant", **gone)


def test_a_whole_cluster_file(unused: Lab, place: str, fast: None) -> None:
    tank = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "images"}
    unused.client.write("POST", "storage", data=tank)
    for vmid in (300, 301):
        disks = [{"size": 1, "storage": "tank"}]
        unused.vm(name=f"c-{vmid}", vmid=vmid, node="pve1", memory="128M", disks=disks)
    token = {**FILE["tokens"][0], "credentials_file": f"{place}.sites.yml"}
    planned_and_applied(unused, place, "cluster", **{**FILE, "tokens": [token]})
    assert "hush-hush-1" not in Path(place).read_text()


def test_a_resource_that_changed_behind_the_plan(unused: Lab, place: str) -> None:
    storage: dict[str, Any] = {
        "name": "more",
        "type": "dir",
        "path": "/mnt/more",
        "content": ["iso"],
    }
    do(unused, "cluster", storages=[storage])
    wanted: dict[str, Any] = {"storages": [{**storage, "content": ["iso", "backup"]}]}
    wanted["groups"] = [{"name": "staff", "comment": "of 2027"}]
    do(unused, "cluster", groups=[{"name": "staff", "comment": "of 2025"}])
    planned = unused.run("cluster", check=True, plan_file=place, **wanted)
    assert planned["changed"]
    do(unused, "storage", **{**storage, "content": ["vztmpl"]})
    do(unused, "group", name="staff", comment="of 2026")
    foreseen = unused.run("cluster", check=True, apply_plan=place, **wanted)
    assert "2 plans are not the approved ones" in foreseen["msg"]
    assert "comment of 2025 -> of 2026" in foreseen["msg"]
    do(unused, "group", name="staff", comment="of 2025")
    unused.simulator.reset_log()
    refused = unused.run("cluster", apply_plan=place, **wanted)
    assert refused["failed"]
    assert "changed since it was planned: content" in refused["msg"]
    assert {row["path"] for row in unused.simulator.writes()} == {"/access/groups/staff"}


def test_guests_that_are_stopped_and_started(unused: Lab, place: str) -> None:
    populate(unused)
    for state in ("stopped", "started"):
        task = {"state": state, "tenants": ["acme"], "selection": "all"}
        planned_and_applied(unused, place, "power", **task)
    assert places(unused)[401][1]


def test_a_guest_that_was_added_to_the_tenant_is_not_stopped(unused: Lab, place: str) -> None:
    populate(unused)
    task: dict[str, Any] = {"state": "stopped", "tenants": ["acme"]}
    unused.run("power", check=True, plan_file=place, **task)
    unused.client.task("POST", "nodes", places(unused)[406][0], "qemu", 406, "status", "start")
    result = unused.run("power", apply_plan=place, **task)
    assert result["failed"], json.dumps(result)
    assert places(unused)[406][1]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tags": "other"}, "vm401 is not the approved one: planned with tag tenant_acme, now its"),
        (
            {"name": "renamed"},
            "planned VMID 401 as qemu tenant_acme/vm401, now it is qemu tenant_acme/renamed",
        ),
        ({}, "vm401 is not the approved one: planned VMID 401, now there is no such guest"),
    ],
)
def test_a_guest_that_is_not_found_any_more_is_named_and_the_others_are_stopped(
    unused: Lab, place: str, change: dict[str, str], text: str
) -> None:
    populate(unused)
    task: dict[str, Any] = {"state": "stopped", "tenants": ["acme"]}
    unused.run("power", check=True, plan_file=place, **task)
    path = ("nodes", places(unused)[401][0], "qemu", 401)
    if change:
        unused.client.write("PUT", *path, "config", data=change)
    else:
        unused.client.task("POST", *path, "status", "stop")
        unused.client.task("DELETE", *path)
    for check in (True, False):
        result = unused.run("power", check=check, apply_plan=place, **task)
        assert result["failed"]
        assert text in json.dumps(result)
        assert check or any(line.startswith("! ") and text in line for line in result["report"])
    states = places(unused)
    assert not any(states[vmid][1] for vmid in (402, 403, 404, 405))
    assert states.get(401, ("", bool(change)))[1] == bool(change)


@pytest.mark.parametrize("other", [{"state": "started"}, {"tenants": ["globex"]}], ids=str)
def test_another_direction_or_tenant_is_refused_before_any_request(
    unused: Lab, place: str, other: dict[str, Any]
) -> None:
    populate(unused)
    task: dict[str, Any] = {"state": "stopped", "tenants": ["acme"]}
    unused.run("power", check=True, plan_file=place, **task)
    unused.simulator.reset_log()
    refused = unused.run("power", apply_plan=place, **{**task, **other})
    assert f"it was made with {next(iter(other))}" in refused["msg"]
    assert unused.simulator.counts() == {}


def test_a_cluster_file_without_a_part_of_the_plan_is_refused(unused: Lab, place: str) -> None:
    groups = [{"name": name, "comment": "of 2026"} for name in ("staff", "guests")]
    unused.run("cluster", check=True, plan_file=place, groups=groups)
    refused = unused.run("cluster", apply_plan=place, groups=groups[:1])
    assert "this task lacks guests of its groups" in refused["msg"]


@pytest.mark.parametrize(
    ("module", "task", "text"),
    [
        ("vms", {"vms": [{"name": "a", "state": "restarted"}]}, "state: restarted"),
        ("vms", {"vms": [{"name": "a"}], "state": "reset"}, "state: reset"),
        ("vms", {"containers": [{"name": "c", "reboot": "always"}], "vms": []}, "reboot: always"),
        (
            "vms",
            {
                "classes": {"web": {"cloud_init": {"password": "x", "update_password": "always"}}},
                "vms": [{"name": "a", "class": "web"}],
            },
            "update_password: always",
        ),
        (
            "cluster",
            {
                "users": [
                    {"name": "a@pve", "user_password": "12345678", "update_password": "always"}
                ]
            },
            "update_password: always",
        ),
        (
            "cluster",
            {"acme_plugins": [{"name": "a", "api": "cf", "update_secrets": "always"}]},
            "update_secrets: always",
        ),
        ("tenant", {"name": "initech", "state": "rotated"}, "state: rotated"),
    ],
    ids=str,
)
def test_a_task_that_acts_in_each_run_has_no_plan(
    unused: Lab, place: str, module: str, task: dict[str, Any], text: str
) -> None:
    """A second apply would act again: PVE does not show that the first one did. The uptime of a VM is
    that of its process (qemu-server: QemuServer.pm, vmstatus), which a migration replaces, too.
    """
    unused.simulator.reset_log()
    refused = unused.run(module, check=True, plan_file=place, **task)
    assert f"{text} in a plan would act again each time the plan is applied" in refused["msg"]
    assert unused.simulator.counts() == {}
    assert not Path(place).exists()
