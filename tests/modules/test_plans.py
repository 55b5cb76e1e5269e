"""A plan that was approved is what runs: module vms with plan_file and apply_plan."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry import module as entry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import TaskMode
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.document import (
    read_document,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.show import markdown_of
from ansible_collections.pve.fleet.plugins.modules.vms import ENTRY
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made
from tests.modules.test_vms import WEB, actions, done, named

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "plan.schema.json").read_text())
SECRET = "a-password-of-acme"
GOAL: dict[str, Any] = {
    **WEB,
    "state": "started",
    "cloud_init": {"user": "admin", "password": SECRET},
    "disks": [{"name": "scsi0", "size": "30G"}, {"name": "scsi1", "size": "5G", "storage": "ceph"}],
    "placement": {"anti_affinity": ["web"], "keep": True},
    "backup": {"schedule": "02:30", "storage": "local"},
    "vms": named("a", "b"),
}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "plan.json")


def plan(lab: Lab, place: str, **goal: Any) -> dict[str, Any]:
    """Write the plan of module vms, and return its result."""
    lab.simulator.reset_log()
    result = done(lab.run("vms", check=True, plan_file=place, **goal))
    assert lab.simulator.writes() == []
    return result


def apply(lab: Lab, place: str, **goal: Any) -> dict[str, Any]:
    lab.simulator.reset_log()
    return lab.run("vms", apply_plan=place, **goal)


def part_of(place: str) -> dict[str, Any]:
    (part,) = json.loads(Path(place).read_text())["parts"]
    return part


def approved_requests(place: str) -> set[tuple[str, str]]:
    """Return method and path of each request of a plan."""
    return {
        (request["method"], request["path"])
        for change in part_of(place)["changes"]
        for request in change["requests"]
    }


def written(lab: Lab) -> set[tuple[str, str]]:
    """Return method and path of each write that the server has seen, as a plan has them, without
    those of root on a node.
    """
    found = {
        (row["method"], row["path"].removeprefix("/api2/json"))
        for row in lab.simulator.writes()
        if row["user"] != "root@pam" and not row["path"].endswith("/access/ticket")
    }
    return {("PUT" if path.endswith("/config") else method, path) for method, path in found}


def test_an_approved_plan_is_what_runs(unused: Lab, place: str) -> None:
    planned = plan(unused, place, **GOAL)
    assert any(place in line for line in planned["report"])
    jsonschema.validate(json.loads(Path(place).read_text()), SCHEMA)
    made = done(apply(unused, place, **GOAL))
    assert written(unused) == approved_requests(place)
    assert [(vm["vmid"], vm["node"]) for vm in made["vms"]] == [
        (vm["vmid"], vm["node"]) for vm in planned["vms"]
    ]
    again = done(apply(unused, place, **GOAL))
    assert not again["changed"]
    assert unused.simulator.writes() == []


def test_a_plan_has_no_secret_and_still_tells_secrets_apart(unused: Lab, place: str) -> None:
    plan(unused, place, **GOAL)
    text = Path(place).read_text()
    assert SECRET not in text
    assert "secret:" in text
    assert Path(place).stat().st_mode & 0o777 == 0o600
    other = {**GOAL, "cloud_init": {"user": "admin", "password": "another-password"}}
    refused = apply(unused, place, **other)
    assert refused["failed"]
    assert unused.simulator.writes() == []
    assert "another-password" not in json.dumps(refused)


def test_a_password_is_set_once(unused: Lab, place: str) -> None:
    """PVE shows of a password only that it is set (qemu-server: QemuServer.pm, cipassword)."""
    done(unused.run("vms", **{**GOAL, "cloud_init": {"user": "admin"}}))
    plan(unused, place, **GOAL)
    assert done(apply(unused, place, **GOAL))["changed"]
    assert not done(apply(unused, place, **GOAL))["changed"]
    assert unused.simulator.writes() == []


def test_a_password_that_was_set_by_hand_stays(unused: Lab, place: str) -> None:
    """It is not noticed, as docs/plans.md says: PVE shows each password as ********** (qemu-server:
    API2/Qemu.pm, vm_config), and the digest of the configuration changes with any option.
    """
    bare = {**GOAL, "cloud_init": {"user": "admin"}}
    vms = done(unused.run("vms", **bare))["vms"]
    plan(unused, place, **GOAL)
    for vm in vms:
        path = ("nodes", vm["node"], "qemu", vm["vmid"], "config")
        unused.client.write("PUT", *path, data={"cipassword": "by-hand"})
    assert not done(apply(unused, place, **GOAL))["changed"]
    assert unused.simulator.writes() == []


def test_a_guest_that_changed_behind_the_plan_is_refused_and_the_others_are_changed(
    unused: Lab, place: str
) -> None:
    vms = named("a", "b")
    done(unused.run("vms", **WEB, vms=vms))
    plan(unused, place, **WEB, memory="3G", vms=vms)
    unused.vm(name="a", tenant="acme", memory="8G")
    result = apply(unused, place, **WEB, memory="3G", vms=vms)
    assert result["failed"]
    assert actions(result) == {"a": "failed", "b": "changed"}
    (line,) = [line for line in result["report"] if line.startswith("! acme/a")]
    assert "not the approved one" in line
    assert "memory 2G -> 8G" in line


@pytest.mark.parametrize(
    ("planned", "by_hand", "text"),
    [
        ("", "by hand", "changed since it was planned: description by hand"),
        ("first", "", "changed since it was planned: description removed"),
    ],
)
def test_a_value_that_was_set_or_removed_behind_the_plan_is_compared(
    unused: Lab, place: str, planned: str, by_hand: str, text: str
) -> None:
    """PVE leaves out what is not set, so the value is missing in one of the readings."""
    goal = {**WEB, "vms": named("a")}
    done(unused.run("vms", **goal, description=planned))
    plan(unused, place, **goal, description="second")
    unused.vm(name="a", tenant="acme", description=by_hand)
    refused = apply(unused, place, **goal, description="second")
    assert text in refused["vms"][0]["msg"]
    assert unused.simulator.writes() == []


@pytest.mark.parametrize(
    "change",
    [
        {"memory": "5G"},
        {"memory": "2G"},
        {"vms": named("a", "b", "c")},
        {"vms": named("a", "b"), "tags": ["web", "more"]},
    ],
    ids=str,
)
def test_an_estate_that_changed_after_the_approval_is_refused(
    unused: Lab, place: str, change: dict[str, Any]
) -> None:
    done(unused.run("vms", **WEB, vms=named("a", "b")))
    plan(unused, place, **WEB, memory="3G", vms=named("a", "b"))
    result = apply(unused, place, **{**WEB, "memory": "3G", "vms": named("a", "b"), **change})
    assert result["failed"]
    planned = approved_requests(place)
    assert written(unused) <= planned
    assert "not the approved one" in json.dumps(result)


def test_an_interrupted_run_is_completed(unused: Lab, place: str) -> None:
    plan(unused, place, **GOAL)
    unused.simulator.fault(method="PUT", path="/config$", status=500, message="broken")
    broken = apply(unused, place, **GOAL)
    assert broken["failed"]
    unused.simulator.clear_faults()
    made = done(apply(unused, place, **GOAL))
    drives = {("PUT", path) for _method, path in written(unused) if path.endswith("/cloudinit")}
    assert written(unused) <= approved_requests(place) | drives
    assert [vm["status"] for vm in made["vms"]] == ["running", "running"]
    assert not done(apply(unused, place, **GOAL))["changed"]


def test_a_guest_that_is_not_finished_can_be_planned(unused: Lab, place: str, alone: None) -> None:
    unused.simulator.fault(method="PUT", path="/config$", status=500, message="broken")
    assert unused.run("vms", **WEB, vms=named("a"))["failed"]
    unused.simulator.clear_faults()
    plan(unused, place, **WEB, vms=named("a"))
    done(apply(unused, place, **WEB, vms=named("a")))
    assert written(unused) <= approved_requests(place)
    assert not done(apply(unused, place, **WEB, vms=named("a")))["changed"]


def test_two_runs_of_one_plan_make_its_guests_once(unused: Lab, place: str) -> None:
    planned = plan(unused, place, **WEB, vms=named("a", "b"))
    arguments = {**unused.connection, "apply_plan": place, **WEB, "vms": named("a", "b")}
    params = {**parse_options(ENTRY.whole_spec, arguments)}
    with ThreadPoolExecutor(2) as pool:
        mode = TaskMode(check=False, diff=False, verbosity=0)
        runs = [pool.submit(ENTRY.perform, params, {}, mode, lend=Client) for _number in range(2)]
        outcomes = [one.result() for one in runs]
    assert [one.values.get("msg") for one in outcomes if one.failed] == []
    rows = unused.client.get("cluster", "resources", type="vm")
    found = {row["name"]: row["vmid"] for row in rows if row.get("name") in ("a", "b")}
    assert found == {vm["name"]: vm["vmid"] for vm in planned["vms"]}
    assert len([row for row in rows if row.get("name") in ("a", "b")]) == 2


def test_a_number_that_was_taken_is_refused(unused: Lab, place: str) -> None:
    planned = plan(unused, place, **WEB, vms=named("a", "b"))
    unused.vm(name="other", vmid=planned["vms"][0]["vmid"])
    result = apply(unused, place, **WEB, vms=named("a", "b"))
    assert actions(result) == {"a": "failed", "b": "created"}
    assert written(unused) <= approved_requests(place)


def test_a_plan_shows_its_arguments_and_the_room_that_it_needs(unused: Lab, place: str) -> None:
    classes = {"web": {"cloud_init": {"user": "admin", "password": "a-secret-of-a-class"}}}
    vms = [{"name": "a", "class": "web", "memory": "2G", "cores": 2}]
    plan(unused, place, **{**WEB, "vms": vms, "classes": classes, "state": "started"})
    arguments = part_of(place)["arguments"]
    (item,) = arguments["vms"]
    assert (item["name"], item["memory"]) == ("a", "2G")
    assert arguments["state"] == "started"
    assert arguments["classes"]["web"]["cloud_init"]["password"].startswith("secret:")
    assert not {"host", "plan_file", "token_secret", "prune"} & arguments.keys()
    guest = part_of(place)["changes"][0]["guest"]
    assert guest["room"]["memory"] == 2 << 30
    assert "a-secret-of-a-class" not in Path(place).read_text()
    shown = markdown_of(read_document(Path(place).read_text(), place))
    assert f"Needs on {guest['node']}: 2G of memory" in shown


def test_an_approved_node_without_room_is_not_replaced_by_another(unused: Lab, place: str) -> None:
    goal: dict[str, Any] = {
        **WEB,
        "memory": "4G",
        "placement": {"memory_overcommit": 1.0},
        "state": "started",
        "vms": named("a"),
    }
    planned = plan(unused, place, **goal)
    node = planned["vms"][0]["node"]
    unused.simulator.steer(f"/nodes/{node}", {"memory": 2 << 30})
    result = apply(unused, place, **goal)
    assert result["failed"]
    assert f"planned VMID {planned['vms'][0]['vmid']} on node {node}, now " in result["msg"]
    assert "memory_overcommit" in result["msg"]
    assert unused.simulator.writes() == []
    unused.simulator.steer(f"/nodes/{node}", {"memory": 64 << 30})
    done(apply(unused, place, **goal))


@pytest.mark.parametrize(
    "goal",
    [
        {
            "disks": [{"name": "scsi0", "size": "30G", "options": {"ssd": True}}],
            "nics": [{"bridge": "vmbr0", "vlan": 5}, {"bridge": "vmbr0"}],
        },
        {
            "full": True,
            "disks": [{"name": "scsi0", "storage": "local-lvm", "options": {"ssd": True}}],
            "description": "of acme",
            "state": "started",
        },
        {"state": "template", "tags": ["x"]},
        {
            "source": None,
            "disks": [{"size": "3G", "storage": "ceph"}],
            "nics": [{"bridge": "vmbr0"}],
        },
        {
            "vms": [],
            "containers": [
                {
                    "name": "a",
                    "source": "debian-13-standard",
                    "rootfs": {"size": "9G"},
                    "nics": [{"bridge": "vmbr0", "ip": "dhcp"}],
                    "mounts": [{"path": "/srv", "size": "2G", "storage": "ceph"}],
                }
            ],
        },
    ],
    ids=str,
)
def test_values_that_the_server_assigns_do_not_differ(
    unused: Lab, place: str, goal: dict[str, Any]
) -> None:
    """A new guest gets MAC addresses and names of volumes from PVE: qemu-server, PVE/QemuServer.pm,
    parse_net and clone_disk.
    """
    goal = {**WEB, "vms": named("a"), **goal}
    plan(unused, place, **goal)
    done(apply(unused, place, **goal))
    assert written(unused) <= approved_requests(place)
    assert not done(apply(unused, place, **goal))["changed"]


@pytest.mark.parametrize("change", ["expire", "edit", "site", "text", "missing", "version"])
def test_a_plan_that_is_not_in_force_is_refused_before_any_request(
    unused: Lab, place: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(unused, place, **WEB, vms=named("a"))
    text = Path(place).read_text()
    options: dict[str, Any] = {}
    if change == "expire":
        later = time.time() + 8 * 86400
        monkeypatch.setattr(entry.time, "time", lambda: later)
    elif change == "edit":
        Path(place).write_text(text.replace('"name": "a"', '"name": "z"'))
    elif change == "site":
        options["host"] = unused.simulator.url.replace("127.0.0.1", "localhost")
    elif change == "text":
        Path(place).write_text("no plan")
    elif change == "version":
        Path(place).write_text(text.replace('"version": 1', '"version": 2'))
    else:
        Path(place).unlink()
    unused.simulator.reset_log()
    result = unused.run("vms", apply_plan=place, **WEB, vms=named("a"), **options)
    assert result["failed"]
    assert unused.simulator.counts() == {}
    assert "was not applied" in result["msg"]


def test_contradicting_options_are_refused(unused: Lab, place: str) -> None:
    both = unused.run("vms", check=True, plan_file=place, apply_plan=place, **WEB, vms=named("a"))
    assert "exclude each other" in both["msg"]
    run = unused.run("vms", plan_file=place, **WEB, vms=named("a"))
    assert "check mode" in run["msg"]
    assert not Path(place).exists()


def test_another_task_of_one_run_does_not_replace_the_plan_of_the_first(
    unused: Lab, place: str
) -> None:
    run = {"plan_run": "one", "plan_file": place, **WEB}
    done(unused.run("vms", check=True, vms=named("a"), **run))
    first = Path(place).read_text()
    refused = unused.run("vms", check=True, vms=named("b"), **run)
    assert "another task of this run has the plan of vms at" in refused["msg"]
    assert Path(place).read_text() == first
    done(unused.run("vms", check=True, vms=named("a"), **run))
    done(unused.run("vms", check=True, vms=named("b"), **{**run, "plan_run": "two"}))
    assert part_of(place)["arguments"]["vms"][0]["name"] == "b"
    done(unused.run("vms", check=True, vms=named("c"), **run))
    assert part_of(place)["arguments"]["vms"][0]["name"] == "c"


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"state": "absent"}, "it was made with state not set, and this task has absent"),
        ({"tenants": ["acme"]}, "it was made with tenants not set, and this task has acme"),
        ({"remove": True}, "it was made with remove not set, and this task has True"),
        ({"vms": named("a")}, "this task lacks b of its vms"),
        ({"plan_subject": "images"}, "it is for vms at"),
    ],
    ids=str,
)
def test_an_option_that_contradicts_the_plan_is_refused_before_any_request(
    unused: Lab, place: str, other: dict[str, Any], text: str
) -> None:
    """Such a run would find nothing to do for a guest of the plan, and end well."""
    goal = {**WEB, "memory": "3G", "vms": named("a", "b")}
    plan(unused, place, **goal)
    unused.simulator.reset_log()
    refused = unused.run("vms", apply_plan=place, **{**goal, **other})
    assert text in refused["msg"]
    assert unused.simulator.counts() == {}


def test_check_mode_shows_whether_a_plan_still_holds(unused: Lab, place: str) -> None:
    done(unused.run("vms", **WEB, vms=named("a", "b")))
    plan(unused, place, **WEB, memory="3G", vms=named("a", "b"))
    assert not unused.run(
        "vms", check=True, apply_plan=place, **WEB, memory="3G", vms=named("a", "b")
    ).get("failed")
    unused.vm(name="a", tenant="acme", memory="8G")
    result = unused.run(
        "vms", check=True, apply_plan=place, **WEB, memory="3G", vms=named("a", "b")
    )
    assert actions(result) == {"a": "failed", "b": "changed"}


def test_a_template_that_was_replaced_is_another_source(unused: Lab, place: str) -> None:
    source: dict[str, Any] = {
        "name": "golden",
        "disks": [{"size": "1G", "storage": "ceph"}],
        "state": "template",
    }
    unused.vm(**source, vmid=801)
    goal: dict[str, Any] = {"source": "golden", "full": True, "vms": named("a")}
    plan(unused, place, **goal)
    unused.vm(name="golden", state="absent", force=True)
    unused.vm(**source, vmid=802)
    result = apply(unused, place, **goal)
    assert result["failed"]
    assert "not the approved one" in result["msg"]
    assert unused.simulator.writes() == []


def test_a_guest_that_has_moved_is_refused(unused: Lab, place: str) -> None:
    done(unused.run("vms", **WEB, vms=named("a", "b")))
    plan(unused, place, **WEB, memory="3G", vms=named("a", "b"))
    node = unused.vm(name="a", tenant="acme")["vm"]["node"]
    unused.vm(name="a", tenant="acme", node="pve3" if node != "pve3" else "pve1")
    result = apply(unused, place, **WEB, memory="3G", vms=named("a", "b"))
    assert actions(result) == {"a": "failed", "b": "changed"}
    assert written(unused) <= approved_requests(place)


def test_a_node_that_was_lost_is_not_replaced_by_another(unused: Lab, place: str) -> None:
    planned = plan(unused, place, **WEB, vms=named("a"))
    vmid, node = planned["vms"][0]["vmid"], planned["vms"][0]["node"]
    unused.simulator.steer(f"/nodes/{node}", {"online": False})
    for check in (True, False):
        result = unused.run("vms", check=check, apply_plan=place, **WEB, vms=named("a"))
        assert result["failed"]
        assert f"planned VMID {vmid} on node {node}, now it is offline" in result["msg"]
    assert unused.simulator.writes() == []


def test_a_storage_that_was_disabled_is_named_with_the_plan(unused: Lab, place: str) -> None:
    row = plan(unused, place, **WEB, vms=named("a"))["vms"][0]
    unused.client.write("PUT", "storage", "ceph", data={"disable": 1})
    result = apply(unused, place, **WEB, vms=named("a"))
    assert f"planned VMID {row['vmid']} on node {row['node']}, now " in result["msg"]
    assert "'ceph'" in result["msg"]


def test_two_plans_that_collide_end_with_the_first(unused: Lab, place: str) -> None:
    done(unused.run("vms", **WEB, vms=named("a")))
    plan(unused, place, **WEB, memory="3G", vms=named("a"))
    plan(unused, f"{place}.2", **WEB, memory="4G", vms=named("a"))
    done(apply(unused, place, **WEB, memory="3G", vms=named("a")))
    result = apply(unused, f"{place}.2", **WEB, memory="4G", vms=named("a"))
    assert result["failed"]
    assert "memory 2G -> 3G" in result["msg"]
    assert unused.simulator.writes() == []


def test_a_tenant_plans_and_applies_with_its_own_token(unused: Lab, place: str) -> None:
    """The hashes of secrets depend on the login: another one needs plan_key in both tasks."""
    token = made(unused, "initech", image_storages=["local"])
    goal: dict[str, Any] = {
        "tenant": "initech",
        "pool": "initech",
        "source": "debian-13",
        "cloud_init": {"user": "admin", "password": SECRET},
        "vms": named("a"),
    }
    plan(unused, place, **token, **goal)
    other = apply(unused, place, **goal)
    assert other["failed"]
    assert unused.simulator.writes() == []
    done(apply(unused, place, **token, **goal))
    assert written(unused) == approved_requests(place)
    plan(unused, place, plan_key="shared", **token, **{**goal, "vms": named("b")})
    done(apply(unused, place, plan_key="shared", **{**goal, "vms": named("b")}))


@pytest.mark.parametrize("more", [{}, {"memory": "3G"}, {"remove": True}], ids=str)
def test_a_plan_with_guests_of_others_is_refused_before_the_first_write(
    unused: Lab, place: str, more: dict[str, Any]
) -> None:
    """A tenant's token applies its own part of an estate, from a plan of its own."""
    token = made(unused, "globex", image_storages=["local"])
    own = {"name": "g", "tenant": "globex", "pool": "globex"}
    vms = [{"name": "a", "tenant": "acme"}, own]
    goal: dict[str, Any] = {"source": "debian-13", "vms": vms}
    if more:
        done(unused.run("vms", **goal))
    plan(unused, place, **goal, **more)
    refused = apply(unused, place, **token, **goal, **more)
    text = "has no rights on these guests of it: tenant_acme/a. Apply it with a login that has them"
    assert text in refused["msg"]
    assert unused.simulator.writes() == []
    done(apply(unused, place, **goal, **more))
    task = {"source": "debian-13", "vms": [{**own, "name": "h"}]}
    plan(unused, place, **token, **task)
    done(apply(unused, place, **token, **task))
    assert written(unused) == approved_requests(place)


def test_a_tenant_stops_its_guests_with_its_own_plan(unused: Lab, place: str) -> None:
    token = made(unused, "globex", image_storages=["local"])
    vms = [
        {"name": name, "tenant": tenant, "pool": tenant}
        for name, tenant in (("a", "acme"), ("g", "globex"), ("h", "globex"))
    ]
    done(unused.run("vms", source="debian-13", state="started", vms=vms))
    both: dict[str, Any] = {"state": "stopped", "tenants": ["acme", "globex"]}
    assert unused.run("power", check=True, plan_file=place, **both)["changed"]
    unused.simulator.reset_log()
    refused = unused.run("power", apply_plan=place, **token, **both)
    assert "has no rights on these guests of it: tenant_acme/a" in refused["msg"]
    task = {**both, "tenants": ["globex"]}
    planned = unused.run("power", check=True, plan_file=place, **token, **task)
    assert not planned.get("failed"), planned["msg"]
    assert unused.simulator.writes() == []
    stopped = unused.run("power", apply_plan=place, **token, **task)
    assert not stopped.get("failed"), stopped["msg"]
    assert written(unused) <= approved_requests(place)
    states = {
        row["name"]: row["status"]
        for row in unused.client.get("cluster", "resources", type="vm")
        if row["name"] in ("a", "g", "h")
    }
    assert states == {"a": "running", "g": "stopped", "h": "stopped"}


def test_a_guest_that_is_not_recognized_is_not_taken_for_removed(unused: Lab, place: str) -> None:
    goal = {**WEB, "vms": named("a", "b", "c")}
    vms = done(unused.run("vms", **goal))["vms"]
    plan(unused, place, **goal, remove=True)
    for vm, data in zip(vms[:2], ({"tags": "x"}, {"name": "renamed"}), strict=True):
        unused.client.write("PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data=data)
    result = apply(unused, place, **goal, remove=True)
    assert result["failed"]
    assert "its tags are: x" in result["msg"] or "it has no tenant tag" in result["msg"]
    assert f"planned VMID {vms[1]['vmid']} as qemu b, now it is qemu renamed" in result["msg"]
    assert written(unused) == {("DELETE", f"/nodes/{vms[2]['node']}/qemu/{vms[2]['vmid']}")}


@pytest.mark.parametrize(
    "added", [{"scsi3": "ceph:2"}, {"net3": "virtio,bridge=vmbr0"}, {"onboot": 1}], ids=str
)
def test_a_guest_that_has_got_more_since_the_plan_is_not_removed(
    unused: Lab, place: str, added: dict[str, Any]
) -> None:
    """PVE removes a guest with all of its disks, also with one that the plan lacks."""
    goal = {**WEB, "vms": named("a", "b")}
    first, second = done(unused.run("vms", **goal))["vms"]
    plan(unused, place, **goal, remove=True)
    path = ("nodes", first["node"], "qemu", first["vmid"])
    unused.client.write("PUT", *path, "config", data=added)
    result = apply(unused, place, **goal, remove=True)
    assert f"changed since it was planned: {next(iter(added))}" in result["msg"]
    assert written(unused) == {("DELETE", f"/nodes/{second['node']}/qemu/{second['vmid']}")}


@pytest.mark.parametrize("path", ["/status/stop$", r"/qemu/\d+$"], ids=["stop", "remove"])
def test_an_interrupted_removal_is_completed(unused: Lab, place: str, path: str) -> None:
    goal = {**WEB, "vms": named("a"), "force": True}
    done(unused.run("vms", **goal, state="started"))
    plan(unused, place, **goal, remove=True)
    unused.simulator.fault(path=path, status=500, times=None)
    assert apply(unused, place, **goal, remove=True)["failed"]
    unused.simulator.clear_faults()
    again = apply(unused, place, **goal, remove=True)
    assert not again.get("failed"), again["msg"]
    assert not done(apply(unused, place, **goal, remove=True))["changed"]


def test_only_a_signed_plan_is_applied_with_a_trusted_key(
    unused: Lab, place: str, tmp_path: Path
) -> None:
    own, public = tmp_path / "plan.pem", str(tmp_path / "plan.pub")
    for command in (
        f"genpkey -algorithm ed25519 -out {own}",
        f"pkey -in {own} -pubout -out {public}",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    goal: dict[str, Any] = {**WEB, "vms": named("a")}
    plan(unused, place, **goal)
    unsigned = apply(unused, place, plan_trusted_key=public, **goal)
    assert "is not signed" in unsigned["msg"]
    plan(unused, place, plan_signing_key=str(own), **goal)
    document = json.loads(Path(place).read_text())
    changed = {**document, "commit": "another"}
    del changed["digest"], changed["signature"]
    text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
    changed["digest"] = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    changed["signature"] = document["signature"]
    Path(f"{place}.2").write_text(json.dumps(changed))
    unused.simulator.reset_log()
    forged = unused.run("vms", apply_plan=f"{place}.2", plan_trusted_key=public, **goal)
    assert "signature is not by the key" in forged["msg"]
    wrong = unused.run("vms", apply_plan=place, plan_trusted_key=str(own), **goal)
    assert "is not a public key" in wrong["msg"]
    assert unused.simulator.counts() == {}
    done(apply(unused, place, plan_trusted_key=public, **goal))


def test_a_file_that_is_not_a_plan_is_kept_and_an_older_plan_is_not(
    unused: Lab, place: str
) -> None:
    Path(place).write_text("my: notes\n")
    refused = unused.run("vms", check=True, plan_file=place, **WEB, vms=named("a"))
    assert "is kept" in refused["msg"]
    assert Path(place).read_text() == "my: notes\n"
    Path(place).unlink()
    plan(unused, place, **WEB, vms=named("a"))
    assert unused.run("vms", check=True, plan_file=place, source="none", vms=named("a"))["failed"]
    text = Path(place).read_text() if Path(place).exists() else ""
    assert '"tenant_acme"' not in text
