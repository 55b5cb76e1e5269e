# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that move and nodes that go down in the middle of a play, and who may have how much, through
ansible-playbook.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.demo.lab import Lab, Machine
from tests.modules.estate_lab import first_number
from tests.plays.provision_helpers import Played, Player

pytestmark = pytest.mark.slow

# The control plane of the simulator does between two tasks what no API call can do.
STEER = """
- name: Steer the cluster
  ansible.builtin.uri:
    url: "{{ control }}/{{ steer.path }}"
    method: PUT
    body_format: json
    body: "{{ steer.body }}"
    ca_path: "{{ lookup('env', 'PROXMOX_CA_PATH') }}"
    use_proxy: false
"""

PLAY = """
- name: An estate in a cluster that does not keep still
  hosts: localhost
  gather_facts: false
  vars:
    estate:
      - {name: web1, placement: {nodes: [pve1]}}
      - {name: web2, placement: {nodes: [pve2]}}
      - {name: web3, placement: {nodes: [pve3]}}
    provision_defaults:
      source: debian-13
      tenant: acme
      quotas: {acme: {vms: 4, cores: 16}, globex: {vms: 0}}
  tasks:
    - name: Make the estate
      ansible.builtin.include_role:
        name: pve.fleet.provision
      vars:
        provision_vms: "{{ estate }}"
    - name: Something happens
      ansible.builtin.include_tasks: steer.yml
      loop: "{{ events }}"
      loop_control: {loop_var: steer}
    - name: Change the estate
      block:
        - name: Change what is there and add a VM
          ansible.builtin.include_role:
            name: pve.fleet.provision
          vars:
            provision_vms: >-
              {{ estate | map('combine', {'description': 'second round', 'cores': 3}) + [{'name':
              'web4'}] }}
      rescue:
        - name: Continue
          ansible.builtin.debug:
            msg: "{{ ansible_failed_result.msg }}"
    - name: Write the outcome
      keep:
        content: "{{ provision_result.vms | to_json }}"
        dest: outcome.json
"""


@pytest.fixture(scope="module")
def running_lab() -> Iterator[Lab]:
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:
        yield lab


@pytest.fixture
def lab(running_lab: Lab) -> Lab:
    running_lab.simulator.reset()
    return running_lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    (tmp_path / "steer.yml").write_text(STEER, encoding="utf-8")
    (tmp_path / "play.yml").write_text(PLAY, encoding="utf-8")
    return Player(tmp_path, lab.environment)


def event(path: str, **body: Any) -> dict[str, Any]:
    return {"path": path, "body": body}


def outcome(played: Played) -> dict[str, dict[str, Any]]:
    rows = json.loads((played.directory / "outcome.json").read_text(encoding="utf-8"))
    return {row["name"]: row for row in rows}


def machine(lab: Lab, name: str) -> Machine:
    (found,) = [one for one in lab.machines() if one.name == name]
    return found


def test_a_vm_that_the_ha_manager_moved_is_followed(player: Player, lab: Lab) -> None:
    """A node dies, its VM turns up on another one, and the play continues with it there."""
    number = first_number("web3", "acme")
    events = [event("nodes/pve3", online=False), event(f"vms/{number}", node="pve1")]
    played = player.play("play.yml", events=events, control=lab.simulator.control).expect()
    rows = outcome(played)
    assert {name: row["failed"] for name, row in rows.items()} == dict.fromkeys(
        ("web1", "web2", "web3", "web4"), False
    )
    assert (rows["web3"]["vmid"], rows["web3"]["node"]) == (number, "pve1")
    assert rows["web4"]["node"] != "pve3"
    assert lab.config(machine(lab, "web3"))["description"].startswith("second round")


def test_a_node_that_goes_down_stops_only_its_own_vms(player: Player, lab: Lab) -> None:
    played = player.play(
        "play.yml", events=[event("nodes/pve3", online=False)], control=lab.simulator.control
    )
    rows = outcome(played.expect())
    assert {name for name, row in rows.items() if row["failed"]} == {"web3"}
    assert rows["web3"]["error"]["category"] == "NodeUnhealthy"
    assert "pve3" in rows["web3"]["msg"]
    assert all(rows[name]["changed"] for name in ("web1", "web2", "web4"))
    assert sorted(one.name for one in lab.machines()) == ["web1", "web2", "web3", "web4"]

    lab.simulator.steer("nodes/pve3", {"online": True})
    rows = outcome(player.play("play.yml", events=[], control=lab.simulator.control).expect())
    assert not any(row["failed"] for row in rows.values())
    assert rows["web3"]["changed"]


def when(
    lab: Lab, happened: Callable[[str, str], bool], then: Callable[[], None]
) -> threading.Thread:
    """Do something as soon as the cluster got such a request."""

    def watch() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if any(happened(row["method"], row["path"]) for row in lab.simulator.log()):
                then()
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


TASK = """
- name: One task
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Change a VM
      pve.fleet.vm:
        name: web1
        tenant: acme
        cores: 3
        description: followed
        state: "{{ state | default('started') }}"
      register: done
    - name: Write the outcome
      keep:
        content: "{{ [{'name': 'web1', 'node': done.vm.node if done.vm else none}] | to_json }}"
        dest: outcome.json
"""


@pytest.mark.parametrize("state", ["started", "absent"])
def test_a_vm_that_moves_in_the_middle_of_a_task_is_followed(
    player: Player, lab: Lab, state: str
) -> None:
    """The HA manager takes it away between the module's look and its first write, which is held up
    for that.
    """
    (player.directory / "task.yml").write_text(TASK, encoding="utf-8")
    data = {"vmid": 20001, "name": "web1", "tags": "tenant_acme", "memory": 128}
    lab.call("POST", "/nodes/pve1/qemu", **data)
    lab.simulator.reset_log()
    # With state absent the VM is stopped already, so the first write is the one that removes it.
    path = r"/qemu/20001/config$" if state == "started" else r"/qemu/20001$"
    lab.simulator.fault(
        method="PUT" if state == "started" else "DELETE", path=path, delay_ms=1500, times=1
    )

    def move() -> None:
        time.sleep(0.5)
        lab.simulator.steer("vms/20001", {"node": "pve2"})

    thread = when(lab, lambda _method, path: path.endswith("/qemu/20001/pending"), move)
    played = player.play("task.yml", state=state).expect()
    thread.join(60)
    lab.simulator.clear_faults()
    assert outcome(played)["web1"]["node"] == ("pve2" if state == "started" else None)
    left = [one for one in lab.machines() if one.name == "web1"]
    if state == "absent":
        assert left == []
    else:
        assert (left[0].node, left[0].status) == ("pve2", "running")
        assert lab.config(left[0])["cores"] == 3


REBALANCE = """
- name: A node is emptied
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Move every VM off pve2
      pve.fleet.vm:
        name: "{{ item }}"
        tenant: acme
        rebalance: true
        placement: {exclude: [pve2]}
      loop: [web1, web2, web3]
      register: moved
    - name: Write the outcome
      keep:
        content: "{{ moved.results | map(attribute='vm') | to_json }}"
        dest: outcome.json
"""


def test_a_node_is_emptied_while_the_ha_manager_takes_its_time(player: Player, lab: Lab) -> None:
    (player.directory / "rebalance.yml").write_text(REBALANCE, encoding="utf-8")
    player.play("play.yml", events=[], control=lab.simulator.control).expect()
    web2 = machine(lab, "web2")
    assert web2.node == "pve2"
    lab.call("POST", "/cluster/ha/resources", sid=f"vm:{web2.vmid}")
    lab.simulator.steer("settings", {"task_ms": {"qmigrate": 1500}})
    try:
        first = player.play("rebalance.yml").expect()
        rows = outcome(first)
        assert {row["node"] for row in rows.values()} <= {"pve1", "pve3"}
        assert machine(lab, "web2").status == "running"
        assert "changed: [localhost] => (item=web2)" in first.output
        assert "ok: [localhost] => (item=web1)" in first.output
        assert "changed: [localhost] => (item=" not in player.play("rebalance.yml").expect().output
    finally:
        lab.simulator.steer("settings", {"task_ms": {"qmigrate": 10}})


def test_a_quota_of_the_estate_holds(player: Player, lab: Lab) -> None:
    case = {
        "name": "quota",
        "vms": [
            {"name": f"{tenant}-{index}", "tenant": tenant}
            for tenant in ("acme", "globex")
            for index in (1, 2, 3)
        ],
        "defaults": {"disks": [{"size": 1}], "quotas": {"acme": {"vms": 2}}},
    }
    played = player.cases(case)["quota"]
    failed = [row for row in played.result if row["failed"]]
    assert [(row["tenant"], row["name"]) for row in failed] == [("acme", "acme-3")]
    assert failed[0]["error"]["category"] == "QuotaExceeded"
    assert "vms: 2 used + 1 wanted, the limit is 2" in failed[0]["msg"]
    assert len(lab.machines()) == 5
