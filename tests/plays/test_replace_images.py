# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook replace_images, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.plays.commands import start
from tests.plays.interrupting import End, await_that, end
from tests.plays.provision_helpers import PROVISION, Player, writes

REPLACE = "pve.fleet.replace_images"
NEW = 9501
GUESTS = ("web", "db")
ESTATE: dict[str, Any] = {
    "provision_defaults": {"source": "golden", "node": "pve1", "cores": 1, "memory": "256M"},
    "provision_vms": [
        {"name": name, "tenant": "acme", "disks": [{"name": "scsi1", "size": "1G"}]}
        for name in GUESTS
    ],
}
CHECK = """
- name: Check db
  ansible.builtin.assert:
    that: _provision_guest.name != 'db'
    fail_msg: db is not healthy
"""


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    """A player of an estate whose VMs are of the older one of two versions."""
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    (tmp_path / "check.yml").write_text(CHECK, encoding="utf-8")
    player = Player(tmp_path, lab.environment)
    publish(lab, NEW - 1, "1")
    player.play(PROVISION, "-e", "@estate.yml").expect()
    publish(lab, NEW, "2")
    return player


def publish(lab: Lab, vmid: int, version: str) -> None:
    options = {"name": "golden", "tags": f"version-{version}", "scsi0": "local-lvm:1"}
    lab.call("POST", "/nodes/pve1/qemu", vmid=vmid, agent=1, boot="order=scsi0", **options)
    lab.call("POST", f"/nodes/pve1/qemu/{vmid}/template")


def configs(lab: Lab) -> dict[str, dict[str, Any]]:
    return {
        machine.name: lab.call("GET", f"/nodes/pve1/qemu/{machine.vmid}/config")
        for machine in lab.machines()
        if machine.name in GUESTS
    }


def versions(lab: Lab) -> dict[str, str]:
    """Return the version in the marker of each VM."""
    found = {}
    for name, config in configs(lab).items():
        found[name] = config["description"].partition("image=golden:")[2].partition(" ")[0]
    return found


def status(lab: Lab, name: str) -> str:
    (vmid,) = [machine.vmid for machine in lab.machines() if machine.name == name]
    return str(lab.call("GET", f"/nodes/pve1/qemu/{vmid}/status/current")["status"])


@pytest.mark.slow
def test_images_are_replaced_one_by_one_and_rolled_back(lab: Lab, player: Player) -> None:
    before = configs(lab)
    mark = lab.mark()
    foreseen = player.play(REPLACE, "--check", "-e", "@estate.yml").expect()
    assert foreseen.changed == 1  # one task plans all virtual machines
    assert writes(lab, mark) == []
    plan = [f"~ acme/{name:<3}  image golden@1 -> golden@2" for name in GUESTS]
    assert "\n".join([*plan, "Plan: 2 to change"]) in foreseen.output
    # web passes its check, db does not and returns to the version before.
    check = ("-e", f"provision_replace_check={player.directory / 'check.yml'}")
    failed = player.play(REPLACE, "-e", "@estate.yml", *check).expect(2)
    assert "db is not healthy" in failed.output
    assert "It has image golden@1 again." in failed.output
    outcome = [plan[0], "! acme/db   not replaced", "Done: 1 changed, 1 failed"]
    assert failed.output.index("\n".join(outcome)) > failed.output.index("\n".join(plan))
    assert versions(lab) == {"web": "2", "db": "1"}
    assert {status(lab, name) for name in GUESTS} == {"running"}
    # Interrupted between the new disk and the start: the next run starts and checks it.
    (web,) = [machine.vmid for machine in lab.machines() if machine.name == "web"]
    lab.call("POST", f"/nodes/pve1/qemu/{web}/status/stop")
    second = player.play(REPLACE, "-e", "@estate.yml").expect()
    assert versions(lab) == {"web": "2", "db": "2"}
    assert "~ acme/web  is started and checked" in second.output
    assert "Done: 2 changed" in second.output
    assert {status(lab, name) for name in GUESTS} == {"running"}
    for name, config in configs(lab).items():
        assert config["scsi1"] == before[name]["scsi1"]
        kept = {value for key, value in config.items() if key.startswith("unused")}
        assert before[name]["scsi0"].partition(",")[0] in kept
    mark = lab.mark()
    third = player.play(REPLACE, "-e", "@estate.yml").expect()
    assert (third.changed, "Plan: 2 unchanged" in third.output) == (0, True)
    assert len(third.lines) <= 12
    assert writes(lab, mark) == []


@pytest.mark.parametrize("write", repeated([2, 3, 6, 1, 4, 5, 7, 8], first=0, more=2))
def test_a_killed_run_is_completed_by_the_next(lab: Lab, player: Player, write: int) -> None:
    """The playbook and its worker are killed at each of the eight writes: Shut, Set, Start and Note of
    two guests.
    """
    before, mark = configs(lab), lab.mark()
    command = ["ansible-playbook", REPLACE, "-e", "@estate.yml"]
    process = start(command, player.directory, player.environment)
    await_that(lambda: len(writes(lab, mark)) >= write or process.poll() is not None)
    end(process, End(signal.SIGKILL, worker_too=True))
    process.communicate()
    assert process.returncode != 0
    player.play(REPLACE, "-e", "@estate.yml").expect()
    assert versions(lab) == {"web": "2", "db": "2"}
    assert {status(lab, name) for name in GUESTS} == {"running"}
    for name, config in configs(lab).items():
        kept = [value for key, value in config.items() if key.startswith("unused")]
        assert kept == [before[name]["scsi0"].partition(",")[0]], config
        assert config["scsi1"] == before[name]["scsi1"]
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml").expect().changed == 0
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_the_plan_that_was_approved_is_applied(lab: Lab, player: Player) -> None:
    """One guest has changed behind the plan: it is refused, and the other one is replaced."""
    plan, approved = ("-e", "plan_file=plan.json"), ("-e", "apply_plan=plan.json")
    mark = lab.mark()
    refused = player.play(REPLACE, "-e", "@estate.yml", *plan).expect(2)
    assert "plan_file is for check mode" in refused.output
    assert lab.requests_since(mark) == []
    player.play(REPLACE, "-e", "@estate.yml", *plan, "--check").expect()
    assert writes(lab, mark) == []
    (part,) = json.loads((player.directory / "plan.json").read_text(encoding="utf-8"))["parts"]
    steps = [[one["summary"].split()[0] for one in row["requests"]] for row in part["changes"]]
    assert steps == [["Shut", "Set", "Start", "Note"]] * len(GUESTS)
    (db,) = [machine for machine in lab.machines() if machine.name == "db"]
    lab.call("PUT", f"/nodes/pve1/qemu/{db.vmid}/config", memory=512)
    mark = lab.mark()
    applied = player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert "! acme/db   not replaced" in applied.output
    assert "The plan of tenant_acme/db is not the approved one" in applied.output
    assert "1 of 2 images were not replaced" in applied.output
    assert versions(lab)["web"] == "2"
    assert status(lab, "web") == "running"
    assert not [one for one in writes(lab, mark) if f"/{db.vmid}/" in one]
    mark = lab.mark()
    player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_a_tenant_plans_and_applies_its_part_with_its_own_token(lab: Lab, tmp_path: Path) -> None:
    """Its plan has none of the guests of others, and an administrator's plan is refused whole."""
    ours = {**ESTATE["provision_vms"][0], "name": "app", "tenant": "initech"}
    whole = {**ESTATE, "provision_vms": [*ESTATE["provision_vms"], ours]}
    own = {**ESTATE, "provision_vms": [ours]}
    access = {
        "operations": ["operate", "provision"],
        "templates": ["golden"],
        "storages": ["local-lvm"],
        "nodes": ["pve1"],
    }
    for name, content in (
        (
            "tenants.yml",
            {"tenants": {"acme": {}, "initech": {"pool": "initech", "access": access}}},
        ),
        ("whole.yml", whole),
        ("own.yml", own),
    ):
        (tmp_path / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    admin = Player(tmp_path, lab.environment)
    publish(lab, NEW - 1, "1")
    estate, part_of_it = (
        ("-e", "@tenants.yml", "-e", "@whole.yml"),
        ("-e", "@tenants.yml", "-e", "@own.yml"),
    )
    rights = ("pve.fleet.tenant", "-e", "@tenants.yml", "-e", "tenant_name=initech")
    admin.play(*rights).expect()
    admin.play(PROVISION, *estate).expect()
    publish(lab, NEW, "2")
    admin.play(*rights).expect()  # it may use the new version
    environment = {key: text for key, text in lab.environment.items() if "PROXMOX_" not in key}
    tenant = Player(tmp_path, {**environment, "PROXMOX_SITES_FILE": "initech.sites.yml"})
    admin.play(REPLACE, *estate, "-e", "plan_file=whole.json", "--check").expect()
    mark = lab.mark()
    refused = tenant.play(REPLACE, *part_of_it, "-e", "apply_plan=whole.json").expect(2)
    assert "Traceback" not in refused.output
    assert writes(lab, mark) == []
    tenant.play(REPLACE, *part_of_it, "-e", "plan_file=own.json", "--check").expect()
    (part,) = json.loads((tmp_path / "own.json").read_text(encoding="utf-8"))["parts"]
    assert [row["guest"]["name"] for row in part["changes"]] == ["app"]
    tenant.play(REPLACE, *part_of_it, "-e", "apply_plan=own.json").expect()
    marks = {
        machine.name: lab.call("GET", f"/nodes/pve1/qemu/{machine.vmid}/config")["description"]
        for machine in lab.machines()
    }
    assert "image=golden:2 " in marks["app"]
    assert "image=golden:1 " in marks["web"]


@pytest.mark.slow
def test_an_approved_plan_has_no_return(lab: Lab, player: Player) -> None:
    player.play(REPLACE, "-e", "@estate.yml", "-e", "plan_file=plan.json", "--check").expect()
    check = ("-e", f"provision_replace_check={player.directory / 'check.yml'}")
    approved = ("-e", "apply_plan=plan.json")
    failed = player.play(REPLACE, "-e", "@estate.yml", *check, *approved).expect(2)
    assert "It was not rolled back, because the approved plan has no return." in failed.output
    assert versions(lab) == {"web": "2", "db": "2"}
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml", *approved).expect().changed == 0
    assert writes(lab, mark) == []


CONTAINERS: dict[str, Any] = {
    "provision_vms": [],
    "provision_defaults": {"node": "pve1", "memory": "256M", "default_storage": "local-lvm"},
    "provision_containers": [
        {
            "name": f"{name}-ct",
            "tenant": "acme",
            "source": "cgolden",
            "rootfs": {"size": "2G"},
            "nics": [{"name": "net0", "bridge": "vmbr0", "ip": "dhcp"}],
            "mounts": [{"name": "mp0", "path": "/data", "size": "1G"}],
        }
        for name in GUESTS
    ],
}


def publish_container(lab: Lab, vmid: int, version: str) -> None:
    options = {"hostname": "cgolden", "tags": f"version-{version}", "rootfs": "local-lvm:1"}
    template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
    lab.call("POST", "/nodes/pve1/lxc", vmid=vmid, ostemplate=template, unprivileged=1, **options)
    lab.call("POST", f"/nodes/pve1/lxc/{vmid}/template")


def containers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Return configuration and status of each container that is not a template, by name."""
    found = {}
    for row in lab.call("GET", "/nodes/pve1/lxc"):
        path = f"/nodes/pve1/lxc/{row['vmid']}"
        if row["name"] != "cgolden":
            config = lab.call("GET", f"{path}/config")
            found[row["name"]] = {**config, "status": row["status"], "vmid": row["vmid"]}
    return found


@pytest.fixture
def container_player(lab: Lab, tmp_path: Path) -> Player:
    """A player of an estate whose containers are of the older one of two versions."""
    check = CHECK.replace("'db'", "'db-ct'")
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(CONTAINERS), encoding="utf-8")
    (tmp_path / "check.yml").write_text(check, encoding="utf-8")
    player = Player(tmp_path, lab.environment)
    publish_container(lab, NEW + 10, "1")
    player.play(PROVISION, "-e", "@estate.yml").expect()
    publish_container(lab, NEW + 11, "2")
    return player


@pytest.mark.slow
def test_the_plan_of_containers_that_was_approved_is_applied(
    lab: Lab, container_player: Player
) -> None:
    """One container has changed behind the plan: it is refused, and the other one is replaced."""
    player, approved = container_player, ("-e", "apply_plan=plan.json")
    mark = lab.mark()
    plan = ("-e", "plan_file=plan.json", "--check")
    player.play(REPLACE, "-e", "@estate.yml", *plan).expect()
    assert writes(lab, mark) == []
    parts = json.loads((player.directory / "plan.json").read_text(encoding="utf-8"))["parts"]
    found = {str(row["vmid"]): name for name, row in containers(lab).items()}
    changes = {found[part["subject"]]: part["changes"] for part in parts if part["changes"]}
    steps = {name: [one["summary"] for one in row["requests"]] for name, (row,) in changes.items()}
    assert {name: len(one) for name, one in steps.items()} == {"web-ct": 10, "db-ct": 10}
    assert steps["web-ct"][-2].startswith("Start container 'web-ct'")
    db = containers(lab)["db-ct"]
    notes = f"Another database\n{db['description']}"
    lab.call("PUT", f"/nodes/pve1/lxc/{db['vmid']}/config", description=notes)
    mark = lab.mark()
    applied = player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert "! acme/db-ct   not replaced" in applied.output
    assert "The plan of tenant_acme/db-ct is not the approved one" in applied.output
    assert "1 of 2 images were not replaced" in applied.output
    after = containers(lab)
    assert set(after) == {"web-ct", "db-ct"}
    assert (after["web-ct"]["status"], after["db-ct"]["rootfs"]) == ("running", db["rootfs"])
    assert "image=cgolden:2" in after["web-ct"]["description"]
    assert not [one for one in writes(lab, mark) if f"/{db['vmid']}/" in one]
    mark = lab.mark()
    player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert writes(lab, mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("lost", repeated(["marker", "tag", "container"], more=0))
def test_a_container_that_is_not_recognized_any_more_is_refused_and_the_others_are_replaced(
    lab: Lab, container_player: Player, lost: str
) -> None:
    """Drift has no older image of a container without its marker, tag or configuration."""
    player = container_player
    plan = ("-e", "plan_file=plan.json", "--check")
    player.play(REPLACE, "-e", "@estate.yml", *plan).expect()
    path = f"/nodes/pve1/lxc/{containers(lab)['db-ct']['vmid']}"
    if lost == "container":
        lab.call("POST", f"{path}/status/stop")
        lab.call("DELETE", path)
    else:
        changed = {"description": "Mine"} if lost == "marker" else {"tags": "mine"}
        lab.call("PUT", f"{path}/config", **changed)
    text = {
        "marker": "nothing is to do for it now, and it lacks image cgolden@2 added",
        "tag": "it has no tenant tag, so it does not belong to tenant_acme",
        "container": "there is no such container",
    }[lost]
    approved = ("-e", "apply_plan=plan.json")
    applied = player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert text in applied.output
    assert "! acme/db-ct   not replaced\nDone: 1 changed, 1 failed" in applied.output
    assert "1 of 2 images were not replaced" in applied.output
    assert "image=cgolden:2" in containers(lab)["web-ct"]["description"]
    mark = lab.mark()
    again = player.play(REPLACE, "-e", "@estate.yml", *approved, "--check").expect(2)
    assert "1 of 1 images were not replaced" in again.output
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_a_virtual_machine_that_is_not_recognized_any_more_is_refused(
    lab: Lab, player: Player
) -> None:
    player.play(REPLACE, "-e", "@estate.yml", "-e", "plan_file=plan.json", "--check").expect()
    (db,) = [machine for machine in lab.machines() if machine.name == "db"]
    lab.call("PUT", f"/nodes/pve1/qemu/{db.vmid}/config", tags="mine")
    approved = ("-e", "apply_plan=plan.json")
    applied = player.play(REPLACE, "-e", "@estate.yml", *approved).expect(2)
    assert "it has no tenant tag, so it does not belong to tenant_acme" in applied.output
    assert "! acme/db   not replaced\nDone: 1 changed, 1 failed" in applied.output
    narrowed = player.play(REPLACE, "-e", "@estate.yml", *approved, "-e", "provision_tenants=acme")
    assert "it was made with provision_tenants not set" in narrowed.expect(2).output
    other = player.play(PROVISION, "-e", "@estate.yml", *approved).expect(2)
    assert "it is for vms images at" in other.output


@pytest.mark.slow
def test_a_plan_that_is_not_in_force_is_refused_before_any_request(
    lab: Lab, player: Player
) -> None:
    plan = player.directory / "plan.json"
    player.play(REPLACE, "-e", "@estate.yml", "-e", "plan_file=plan.json", "--check").expect()
    plan.write_text(plan.read_text(encoding="utf-8").replace("golden", "silver"), encoding="utf-8")
    mark = lab.mark()
    refused = player.play(REPLACE, "-e", "@estate.yml", "-e", "apply_plan=plan.json").expect(2)
    assert "it was edited" in refused.output
    assert lab.requests_since(mark) == []


@pytest.mark.slow
def test_an_approved_plan_of_containers_is_continued(lab: Lab, container_player: Player) -> None:
    """The check of db-ct fails: it keeps its new root and its holder, which the next run removes."""
    player, approved = container_player, ("-e", "apply_plan=plan.json")
    plan = ("-e", "plan_file=plan.json", "--check")
    player.play(REPLACE, "-e", "@estate.yml", *plan).expect()
    check = ("-e", f"provision_replace_check={player.directory / 'check.yml'}")
    failed = player.play(REPLACE, "-e", "@estate.yml", *check, *approved).expect(2)
    assert "It was not rolled back, because the approved plan has no return." in failed.output
    db = containers(lab)["db-ct"]
    assert set(containers(lab)) == {"web-ct", "db-ct", f"replace-{db['vmid']}"}
    lab.call("POST", f"/nodes/pve1/lxc/{db['vmid']}/status/stop")
    player.play(REPLACE, "-e", "@estate.yml", *approved).expect()
    after = containers(lab)
    assert {name: row["status"] for name, row in after.items()} == dict.fromkeys(
        ("web-ct", "db-ct"), "running"
    )
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml", *approved).expect().changed == 0
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_containers_are_replaced_one_by_one_and_rolled_back(
    lab: Lab, container_player: Player, tmp_path: Path
) -> None:
    player = container_player
    before = containers(lab)
    mark = lab.mark()
    foreseen = player.play(REPLACE, "--check", "-e", "@estate.yml").expect()
    assert foreseen.changed == len(GUESTS)
    assert writes(lab, mark) == []
    # web-ct passes its check, db-ct does not and gets its old root file system back.
    options = ("-e", f"provision_replace_check={tmp_path / 'check.yml'}")
    failed = player.play(REPLACE, "-e", "@estate.yml", *options).expect(2)
    assert "It has its old root file system." in failed.output
    assert "Done: 1 changed, 1 failed" in failed.output
    middle = containers(lab)
    assert middle["db-ct"]["rootfs"] == before["db-ct"]["rootfs"]
    assert "image=cgolden:2" in middle["web-ct"]["description"]
    assert set(middle) == {"web-ct", "db-ct"}
    # An interrupted run that did not check the new root yet: the next run does.
    (tmp_path / "once.yml").write_text(
        yaml.safe_dump(
            [
                {
                    "name": "Replace one root",
                    "hosts": "localhost",
                    "gather_facts": False,
                    "tasks": [
                        {"pve.fleet.container_image": {"name": "db-ct", "source": "cgolden"}},
                        {"pve.fleet.container": {"name": "db-ct", "state": "started"}},
                    ],
                }
            ]
        ),
        encoding="utf-8",
    )
    player.play("once.yml").expect()
    player.play(REPLACE, "-e", "@estate.yml", *options).expect(2)
    assert containers(lab)["db-ct"]["rootfs"] == before["db-ct"]["rootfs"]
    player.play(REPLACE, "-e", "@estate.yml").expect()
    after = containers(lab)
    assert set(after) == {"web-ct", "db-ct"}
    for name, config in after.items():
        assert "image=cgolden:2" in config["description"]
        assert config["status"] == "running"
        kept = {value for key, value in config.items() if key.startswith("unused")}
        assert before[name]["rootfs"].partition(",")[0] in kept
        for key in ("vmid", "mp0", "net0", "hostname", "tags"):
            assert config[key] == before[name][key]
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml").expect().changed == 0
    assert writes(lab, mark) == []
