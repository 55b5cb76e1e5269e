# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module clone in a playbook: in check mode, twice for real, side by side, and what a play can do
with its failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player, diffs

PLAY = """
- name: Clones
  hosts: localhost
  gather_facts: false
  module_defaults:
    group/pve.fleet.all:
      tenant: acme
  tasks:
    - name: Clone, size and start
      pve.fleet.clone:
        name: clone1
        source: debian-13
        cores: 3
        disks: [{name: scsi0, size: 9G}]
        cloud_init: {user: ops}
        state: started
      register: made
    - name: Clone in full to another node
      pve.fleet.clone:
        name: clone2
        source: "9000"
        node: pve3
        storage: ceph
    - name: Tell
      ansible.builtin.debug:
        msg: "vmid={{ made.vm.vmid }} from={{ made.vm.cloned_from | default('') }}"
"""

AT_ONCE = """
- name: Clones side by side
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Begin
      pve.fleet.clone:
        name: "side{{ item }}"
        source: debian-13
        full: true
      loop: "{{ range(4) | list }}"
      async: 120
      poll: 0
      register: started
    - name: Wait
      ansible.builtin.async_status:
        jid: "{{ item.ansible_job_id }}"
      loop: "{{ started.results }}"
      loop_control: {label: "{{ item.item }}"}
      register: ended
      until: ended is finished
      retries: 120
      delay: 1
"""

LATE = """
- name: A clone that takes its time
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Do not wait for it
      block:
        - name: Clone
          pve.fleet.clone: &late {name: late, source: debian-13, full: true, task_timeout: 1}
      rescue:
        - name: Tell what is known
          ansible.builtin.debug:
            msg: "{{ ansible_failed_result.error.category }} {{ ansible_failed_result.error.upid }}"
    - name: Come back later
      pve.fleet.clone:
        <<: *late
        task_timeout: 60
      register: made
    - name: Refuse another source
      pve.fleet.clone: {name: late, source: alma-10}
      register: refused
      failed_when: refused.error.category != 'Conflict'
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(task_ms="qmclone=2000,default=10", auth_delay_s=0.1, lag_s=0.1) as lab:
        yield lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


def numbers(lab: Lab, prefix: str) -> dict[str, int]:
    return {
        machine.name: machine.vmid for machine in lab.machines() if machine.name.startswith(prefix)
    }


def test_clones_in_check_mode_then_twice(lab: Lab, player: Player) -> None:
    (player.directory / "play.yml").write_text(PLAY, encoding="utf-8")
    mark = lab.mark()
    foreseen = player.play("play.yml", "--check", "--diff").expect()
    assert foreseen.changed == 2
    assert [one for one in lab.requests_since(mark) if one.is_write] == []
    made = player.play("play.yml", "--diff").expect()
    assert made.changed == 2
    assert len(diffs(made.output)) == len(diffs(foreseen.output)) == 2
    found = numbers(lab, "clone")
    assert len(found) == 2
    assert f"vmid={found['clone1']} from=9000" in made.output
    mark = lab.mark()
    again = player.play("play.yml").expect()
    assert again.changed == 0
    assert f"vmid={found['clone1']} from=9000" in again.output
    assert [one for one in lab.requests_since(mark) if one.is_write] == []


@pytest.mark.slow
def test_clones_side_by_side(lab: Lab, player: Player) -> None:
    (player.directory / "play.yml").write_text(AT_ONCE, encoding="utf-8")
    player.play("play.yml").expect()
    assert sorted(numbers(lab, "side")) == ["side0", "side1", "side2", "side3"]


def test_a_play_gets_the_task_of_a_clone_and_comes_back(lab: Lab, player: Player) -> None:
    (player.directory / "play.yml").write_text(LATE, encoding="utf-8")
    played = player.play("play.yml").expect()
    assert "TaskTimeout UPID:pve1:" in played.output
    assert list(numbers(lab, "late")) == ["late"]
