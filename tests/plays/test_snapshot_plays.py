# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles preflight and snapshot_policy and their playbooks, run by ansible-playbook against the
simulator.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player, diffs

SNAPSHOT = "pve.fleet.snapshot"
ROLLBACK = "pve.fleet.rollback"
PREFLIGHT = "pve.fleet.preflight"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(task_ms="default=10", auth_delay_s=0.1, lag_s=0.1) as lab:
        yield lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


def two(lab: Lab, tenant: str) -> list[int]:
    """Make two running VMs of a tenant."""
    vmids = [
        lab.make_vm(f"{tenant}-{number}", tags=f"tenant_{tenant}", scsi0="ceph:1")
        for number in (1, 2)
    ]
    for vmid in vmids:
        lab.call("POST", f"/nodes/pve1/qemu/{vmid}/status/start")
    return vmids


def names(lab: Lab, vmid: int) -> list[str]:
    rows = lab.call("GET", f"/nodes/pve1/qemu/{vmid}/snapshot")
    return sorted(row["name"] for row in rows if row["name"] != "current")


def writes(lab: Lab, mark: int) -> list[str]:
    return [str(one) for one in lab.requests_since(mark) if one.is_write]


def test_snapshot_and_rollback_in_check_mode_then_twice(lab: Lab, player: Player) -> None:
    vmids = two(lab, "plays")
    said: dict[str, Any] = {"snapshot_policy_tenant": "plays", "snapshot_policy_name": "before"}

    mark = lab.mark()
    predicted = player.play(SNAPSHOT, "--check", "--diff", **said).expect()
    assert predicted.changed == 1
    assert writes(lab, mark) == []
    made = player.play(SNAPSHOT, "--diff", **said).expect()
    assert made.changed == 1
    assert diffs(made.output) == diffs(predicted.output) != []
    steps = [f"~ plays/plays-{number}  take snapshot 'before'" for number in (1, 2)]
    for played, headline in ((predicted, "Plan: 2 to change"), (made, "Done: 2 changed")):
        assert all(line in played.output.splitlines() for line in (headline, *steps))
    assert [names(lab, vmid) for vmid in vmids] == [["before"], ["before"]]
    mark = lab.mark()
    assert player.play(SNAPSHOT, **said).expect().changed == 0
    assert writes(lab, mark) == []

    mark = lab.mark()
    predicted = player.play(ROLLBACK, "--check", "--diff", **said).expect()
    assert predicted.changed == 1
    assert writes(lab, mark) == []
    assert "Plan: 2 to change" in predicted.output
    assert "~ plays/plays-1  roll back to snapshot 'before'" in predicted.output
    for _time in range(2):  # every run rolls back
        assert player.play(ROLLBACK, "--diff", **said).expect().changed == 1
        assert {
            lab.call("GET", f"/nodes/pve1/qemu/{vmid}/status/current")["status"] for vmid in vmids
        } == {"running"}

    gone = {**said, "snapshot_policy_state": "absent", "snapshot_policy_vms": vmids[0]}
    assert player.play(SNAPSHOT, **gone).expect().changed == 1
    assert player.play(SNAPSHOT, **gone).expect().changed == 0
    assert [names(lab, vmid) for vmid in vmids] == [[], ["before"]]


@pytest.mark.slow
def test_failed_vms_end_the_play_with_each_cause_once(lab: Lab, player: Player) -> None:
    """Ansible would print the rows of all VMs in the line of the task that fails."""
    two(lab, "lacking")
    wrong = {"snapshot_policy_tenant": "lacking", "snapshot_policy_name": "nosuch"}
    for arguments in ((), ("--check",)):
        played = player.play(ROLLBACK, *arguments, **wrong).expect(2)
        fatal = [line for line in played.output.splitlines() if line.startswith("fatal: ")]
        assert len(fatal) == 1
        assert "2 of 2 VMs failed" in fatal[0]
        assert fatal[0].count("has no snapshot 'nosuch'") == 1
        counts = "Plan: 2 refused" if arguments else "Done: 2 failed"
        assert counts in played.output


def test_nightly_snapshots_are_kept_by_count(lab: Lab, player: Player) -> None:
    vmid = two(lab, "nightly")[0]
    for name in ("n-20200101-000000", "n-20200102-000000", "n-keep-me"):
        lab.call("POST", f"/nodes/pve1/qemu/{vmid}/snapshot", snapname=name)
    player.play(
        SNAPSHOT,
        snapshot_policy_tenant="nightly",
        snapshot_policy_prefix="n-",
        snapshot_policy_keep=1,
    ).expect()
    left = names(lab, vmid)
    assert len(left) == 2
    assert "n-keep-me" in left
    assert "n-20200102-000000" not in left


def test_what_the_playbooks_refuse(lab: Lab, player: Player) -> None:
    mark = lab.mark()
    assert "No VMs are selected" in player.play(SNAPSHOT).expect(2).output
    result = player.play(
        SNAPSHOT, snapshot_policy_vms=["x"], snapshot_policy_name="s1", snapshot_policy_keep=3
    )
    assert "snapshot_policy_pattern" in result.expect(2).output
    none = player.play(SNAPSHOT, snapshot_policy_vms=["x"], snapshot_policy_keep=0).expect(2)
    assert "outside 1 to" in none.output
    assert (
        "snapshot_policy_name" in player.play(ROLLBACK, snapshot_policy_vms=["x"]).expect(2).output
    )
    blank = player.play(SNAPSHOT, snapshot_policy_vms=["x"], snapshot_policy_tenant="").expect(2)
    assert "snapshot_policy_tenant is given without a value" in blank.output
    assert lab.requests_since(mark) == []
    gone = player.play(ROLLBACK, snapshot_policy_tenant="nosuch", snapshot_policy_name="s1").expect(
        2
    )
    assert "there is no tenant 'nosuch'" in gone.output
    vmid = two(lab, "theirs")[0]
    result = player.play(SNAPSHOT, snapshot_policy_vms=[str(vmid)], snapshot_policy_tenant="other")
    assert "belongs to another tenant" in result.expect(2).output
    assert names(lab, vmid) == []


# The policy around a change.

CHANGE_PLAY = """
- name: A change with a way back
  hosts: localhost
  gather_facts: false
  roles:
    - role: pve.fleet.snapshot_policy
  post_tasks:
    - name: Tell
      ansible.builtin.debug:
        msg: "result={{ snapshot_policy_result | to_json }}"
"""

CHANGE_IN_A_BLOCK = """
- name: A change with a way back
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Change
      block:
        - name: With the policy
          ansible.builtin.include_role:
            name: pve.fleet.snapshot_policy
      rescue:
        - name: Tell
          ansible.builtin.debug:
            msg: "RESULT={{ snapshot_policy_result | to_json }}=RESULT"
"""

CHANGE = """
- name: Set the cores
  pve.fleet.vm:
    name: "{{ vm }}"
    cores: 3
- name: Stumble
  ansible.builtin.fail:
    msg: the change is bad
  when: stumble | default(false)
"""


@pytest.fixture
def change(player: Player) -> Player:
    (player.directory / "change.yml").write_text(CHANGE, encoding="utf-8")
    (player.directory / "play.yml").write_text(CHANGE_PLAY, encoding="utf-8")
    return player


def cores(lab: Lab, vmid: int) -> int:
    return int(lab.call("GET", f"/nodes/pve1/qemu/{vmid}/config").get("cores", 1))


def test_a_change_that_goes_well(lab: Lab, change: Player) -> None:
    vmid = two(lab, "well")[0]
    said = {
        "snapshot_policy_vms": [str(vmid)],
        "snapshot_policy_tasks": "change.yml",
        "vm": "well-1",
    }
    mark = lab.mark()
    assert change.play("play.yml", "--check", **said).expect().changed == 2
    assert writes(lab, mark) == []
    first = change.play(
        "play.yml", **said, snapshot_policy_after=True, snapshot_policy_keep=1
    ).expect()
    assert '\\"changed_back\\": false' in first.output
    assert cores(lab, vmid) == 3
    assert len(names(lab, vmid)) == 1
    time.sleep(1)  # the name of the next snapshot is that of another second
    again = change.play("play.yml", **said, snapshot_policy_remove=True).expect()
    assert again.changed == 2  # the snapshot is taken and removed, the change is made already
    assert len(names(lab, vmid)) == 1


def test_a_change_that_fails_is_rolled_back(lab: Lab, change: Player) -> None:
    vmid = two(lab, "bad")[0]
    said = {
        "snapshot_policy_vms": ["bad-1"],
        "snapshot_policy_tenant": "bad",
        "vm": "bad-1",
        "stumble": True,
    }
    said |= {
        "snapshot_policy_tasks": str(change.directory / "change.yml"),
        "snapshot_policy_name": "before",
    }
    mark = lab.mark()
    change.play("play.yml", "--check", **said).expect(2)
    assert writes(lab, mark) == []
    result = change.play("play.yml", **said).expect(2)
    assert "The change failed in 'Stumble': the change is bad" in result.output
    assert "rolled back to" in result.output
    assert cores(lab, vmid) == 1
    assert lab.call("GET", f"/nodes/pve1/qemu/{vmid}/status/current")["status"] == "running"
    assert names(lab, vmid) == ["before"]
    for more in ({}, {"snapshot_policy_description": "another text is not another snapshot"}):
        refused = change.play("play.yml", **said, **more).expect(2)
        assert "already existed on bad-1: a rollback" in re.sub(r"\s+", " ", refused.output)
    left = change.play(
        "play.yml", **said, snapshot_policy_reuse=True, snapshot_policy_rollback=False
    ).expect(2)
    assert "left as they are" in left.output
    assert cores(lab, vmid) == 3


def test_a_task_without_a_name_is_reported_with_its_action(lab: Lab, change: Player) -> None:
    two(lab, "bare")
    unnamed = "- ansible.builtin.fail:\n    msg: the change is bad\n"
    (change.directory / "change.yml").write_text(unnamed, encoding="utf-8")
    said = {
        "snapshot_policy_vms": ["bare-1"],
        "snapshot_policy_tasks": "change.yml",
        "vm": "bare-1",
    }
    result = change.play("play.yml", **said).expect(2)
    assert "The change failed in 'ansible.builtin.fail': the change is bad" in result.output


def test_a_mistake_in_a_list_of_storages_names_the_storage(lab: Lab, player: Player) -> None:
    mark = lab.mark()
    storages = [{"name": "ceph"}, {"name": "local", "conten": "iso"}]
    refused = player.play(PREFLIGHT, preflight_storages=storages).expect(2).output
    assert "storages[1] (local): unknown option 'conten' (did you mean 'content'?)" in refused
    assert "argument_spec_data" not in refused
    assert lab.requests_since(mark) == []


def test_a_rollback_that_fails_is_reported_with_the_change(lab: Lab, change: Player) -> None:
    vmid = two(lab, "worse")[0]
    play = change.directory / "play.yml"
    play.write_text(CHANGE_IN_A_BLOCK, encoding="utf-8")
    said = {
        "snapshot_policy_vms": [str(vmid)],
        "snapshot_policy_tasks": "change.yml",
        "vm": "worse-1",
        "stumble": True,
    }
    lab.simulator.fault(task="qmrollback", fail="the disk is on fire", times=1)
    result = change.play("play.yml", **said).expect()
    (shown,) = [
        json.loads(line)
        for line in re.findall(r"RESULT=(.*?)=RESULT", result.output.replace('\\"', '"'))
    ]
    assert (shown["changed_back"], shown["failed_task"], shown["msg"]) == (
        False,
        "Stumble",
        "the change is bad",
    )
    assert "the disk is on fire" in shown["rollback_msg"]
    assert (
        "The change failed in 'Stumble': the change is bad. The rollback to snapshot 'auto-"
        in result.output
    )
    assert cores(lab, vmid) == 3


@pytest.mark.slow
def test_a_role_can_be_the_change(lab: Lab, change: Player) -> None:
    vmid = two(lab, "role")[0]
    tasks = change.directory / "roles" / "grow" / "tasks"
    tasks.mkdir(parents=True)
    (tasks / "main.yml").write_text(CHANGE, encoding="utf-8")
    said = {"snapshot_policy_vms": [str(vmid)], "vm": "role-1"}
    change.play("play.yml", **said, snapshot_policy_role="grow").expect()
    assert cores(lab, vmid) == 3
    assert "Either snapshot_policy_tasks" in change.play("play.yml", **said).expect(2).output


@pytest.mark.slow
def test_snapshots_that_were_taken_in_vain_are_removed(lab: Lab, change: Player) -> None:
    good, bad = two(lab, "vain")
    lab.call("POST", f"/nodes/pve1/qemu/{good}/snapshot", snapname="older")
    lab.simulator.fault(task="qmsnapshot", id=bad, fail="the disk is on fire", times=1)
    said = {"snapshot_policy_tenant": "vain", "snapshot_policy_tasks": "change.yml", "vm": "vain-1"}
    said |= {"snapshot_policy_name": "before"}
    refused = change.play("play.yml", **said).expect(2)
    assert "the disk is on fire" in refused.output.rsplit("Stop before the change", 1)[1]
    assert names(lab, good) == ["older"]
    assert cores(lab, good) == 1
    lab.simulator.fault(task="qmsnapshot", id=bad, fail="the disk is on fire", times=1)
    older = {**said, "snapshot_policy_name": "older", "snapshot_policy_description": "changed"}
    change.play("play.yml", **older).expect(2)
    assert names(lab, good) == ["older"]
    change.play("play.yml", **said).expect()  # the name is free for the next try
    assert names(lab, good) == ["before", "older"]
    assert cores(lab, good) == 3


def test_no_change_without_a_way_back(lab: Lab, change: Player) -> None:
    vmid = two(lab, "none")[0]
    said = {"snapshot_policy_tenant": "nnoe", "snapshot_policy_tasks": "change.yml", "vm": "none-1"}
    for arguments in (("--check",), ()):
        played = change.play("play.yml", *arguments, **said).expect(2)
        assert "there is no tenant 'nnoe'" in re.sub(r"\s+", " ", played.output)
    assert cores(lab, vmid) == 1


@pytest.mark.slow
def test_a_host_of_the_inventory_is_its_own_vm(lab: Lab, player: Player) -> None:
    vmids = two(lab, "hosts")
    hosts = {f"hosts-{number}": {"proxmox_vmid": vmid} for number, vmid in enumerate(vmids, 1)}
    (player.directory / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8"
    )
    said = {"snapshot_policy_hosts": "all", "snapshot_policy_name": "each"}
    assert player.play(SNAPSHOT, "-i", "hosts.yml", **said).expect().changed == 2
    assert [names(lab, vmid) for vmid in vmids] == [["each"], ["each"]]
    # The tenant is a guard then, and no reason for each host to work on all of the tenant's VMs.
    said |= {"snapshot_policy_tenant": "hosts", "snapshot_policy_name": "guarded"}
    assert (
        player.play(SNAPSHOT, "-i", "hosts.yml", "--limit", "hosts-1", **said).expect().changed == 1
    )
    assert [names(lab, vmid) for vmid in vmids] == [["each", "guarded"], ["each"]]
    said |= {"snapshot_policy_tenant": "others"}
    assert (
        "belongs to another tenant"
        in player.play(SNAPSHOT, "-i", "hosts.yml", **said).expect(2).output
    )


@pytest.mark.parametrize("option", repeated(["parallel", "task_timeout"]))
@pytest.mark.parametrize("playbook", [SNAPSHOT, ROLLBACK])
@pytest.mark.slow
def test_the_environment_sets_what_the_role_leaves_out(
    lab: Lab, player: Player, playbook: str, option: str
) -> None:
    tenant = f"env{option[0]}{playbook[-1]}"
    two(lab, tenant)
    said: dict[str, Any] = {"snapshot_policy_tenant": tenant, "snapshot_policy_name": "before"}
    player.play(SNAPSHOT, **said).expect()
    player.environment[f"PROXMOX_{option.upper()}"] = "many"
    refused = re.sub(r"\s+", " ", player.play(playbook, **said).expect(2).output)
    assert f"{option} was refused: it is not a" in refused
    player.play(playbook, **said, **{f"snapshot_policy_{option}": 60}).expect()


def test_the_environment_limits_the_tasks_of_a_change(lab: Lab, change: Player) -> None:
    two(lab, "short")
    change.environment["PROXMOX_TASK_TIMEOUT"] = "1"
    said = {"snapshot_policy_tenant": "short", "snapshot_policy_tasks": "change.yml"}
    lab.simulator.steer("/settings", {"task_ms": {"qmsnapshot": 8000}})
    try:
        played = change.play("play.yml", **said, vm="short-1").expect(2)
    finally:
        lab.simulator.steer("/settings", {"task_ms": {"qmsnapshot": 10}})
    assert "after 1 s" in re.sub(r"\s+", " ", played.output)


# Preflight.


@pytest.mark.slow
def test_preflight_in_check_mode_then_twice(lab: Lab, player: Player) -> None:
    said: dict[str, Any] = {
        "preflight_tasks": ["vm_clone", "snapshot"],
        "preflight_templates": ["debian-13"],
        "preflight_nodes": ["pve1"],
        "preflight_storages": [{"name": "ceph"}],
        "preflight_bridges": ["vmbr0"],
        "preflight_pool": "acme",
    }
    mark = lab.mark()
    for arguments in (("--check",), (), ()):
        result = player.play(PREFLIGHT, *arguments, **said).expect()
        assert result.changed == 0
        assert "PASS  privilege" in result.output
    assert writes(lab, mark) == []


def test_preflight_fails_with_next_steps(lab: Lab, player: Player) -> None:
    said: dict[str, Any] = {"preflight_templates": ["nosuch"], "preflight_bridges": ["vmbr77"]}
    result = player.play(PREFLIGHT, **said).expect(2)
    assert "FAIL  template" in result.output
    assert "checks failed: " in result.output
    assert "Check the spelling" in result.output
    player.play(PREFLIGHT, **said, preflight_fail=False).expect()


@pytest.mark.slow
def test_preflight_shows_what_a_tenants_runs_left(lab: Lab, player: Player) -> None:
    """It warns and does not fail; a tenant that is given without a value is an error."""
    vmid = lab.make_vm("half", tags="tenant_acme", description="<!-- pve.fleet: drive=stale -->")
    lab.make_vm("theirs", tags="tenant_globex", description="<!-- pve.fleet: drive=stale -->")
    shown = player.play(PREFLIGHT, preflight_tenant="acme").expect().output
    assert re.search(rf"warn  unfinished +half \({vmid}\) +cloud_init: its cloud-init drive", shown)
    assert "theirs" not in shown
    assert "unfinished" not in player.play(PREFLIGHT).expect().output
    assert "without a value" in player.play(PREFLIGHT, preflight_tenant="").expect(2).output
