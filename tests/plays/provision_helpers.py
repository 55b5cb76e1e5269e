# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks as a user does, and reads back what the role reported."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.demo.lab import Lab, Machine
from tests.plays.commands import run
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

PROVISION = "pve.fleet.provision"
DEPROVISION = "pve.fleet.deprovision"

# Reports the outcome of the role for every case, also when the role fails.
CASES_PLAY = """
- name: Cases
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Case
      ansible.builtin.include_tasks: case.yml
      loop: "{{ cases }}"
      loop_control: {loop_var: case, label: "{{ case.name }}"}
    - name: Write the outcomes
      keep:
        content: "{{ outcomes | to_json }}"
        dest: outcomes.json
"""

CASE_TASKS = """
- name: One case
  vars:
    provision_vms: "{{ case.vms }}"
    provision_defaults: "{{ case.defaults | default({}) }}"
    provision_classes: "{{ case.classes | default({}) }}"
    provision_networks: "{{ case.networks | default({}) }}"
    provision_storage_classes: "{{ case.storage_classes | default({}) }}"
    provision_tenants: "{{ case.tenants | default([]) }}"
    provision_all: "{{ case.all | default(false) }}"
    provision_state: "{{ case.state | default('started') }}"
    provision_prune: "{{ case.prune | default(false) }}"
    provision_parallel: "{{ case.parallel | default(32) }}"
    provision_connection: "{{ case.connection | default({}) }}"
  block:
    - name: Forget the last case
      ansible.builtin.set_fact:
        provision_result: {}
    - name: Run the role
      ansible.builtin.include_role:
        name: pve.fleet.provision
        tasks_from: "{{ case.tasks | default('main') }}"
    - name: Note the success
      ansible.builtin.set_fact:
        outcomes: "{{ outcomes | default({}) | combine({case.name: {'result': provision_result.vms,
          'refusal': ''}}) }}"
  rescue:
    - name: Note the failure
      ansible.builtin.set_fact:
        outcomes: >-
          {{ outcomes | default({}) | combine({case.name: {
               'result': provision_result.vms | default([]), 'refusal': ansible_failed_result.msg | default('')}}) }}
"""


@dataclass(frozen=True)
class Played:
    """How a run of ansible-playbook ended."""

    status: int
    output: str
    directory: Path
    recap: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        return sum(figures["changed"] for figures in self.recap.values())

    @property
    def lines(self) -> list[str]:
        """The printed lines that are not empty, without those of the artifacts."""
        shown = self.output.partition("CUSTOM STATS")[0]
        return [line for line in shown.splitlines() if line.strip()]

    def expect(self, status: int = 0) -> Played:
        assert self.status == status, self.output
        return self

    def outcomes(self) -> dict[str, Outcome]:
        """Return what each case of CASES_PLAY came to."""
        self.expect()
        data = json.loads((self.directory / "outcomes.json").read_text(encoding="utf-8"))
        return {
            name: Outcome(name, content["result"], content["refusal"])
            for name, content in data.items()
        }


@dataclass(frozen=True)
class Outcome:
    """What the role reported for one case."""

    name: str
    result: list[dict[str, Any]]
    refusal: str

    def failure_of(self, vm: str) -> tuple[str, str]:
        """Return category and message of a VM that failed."""
        (row,) = [row for row in self.result if row["name"] == vm]
        assert row["failed"], row
        return row["error"]["category"], row["msg"]


class Player:
    """Plays playbooks in a directory of their own; `usual` is explained in commands.run."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], *, usual: bool = True
    ) -> None:
        self.directory = directory
        self.usual = usual
        self.environment = {
            **os.environ,
            "PWD": str(directory),  # as a shell sets it
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            **environment,
        }

    def play(self, playbook: str, *arguments: str, **variables: Any) -> Played:
        """Run `ansible-playbook PLAYBOOK ARGUMENTS`, with extra variables from a file."""
        command = ["ansible-playbook", playbook, *arguments]
        if variables:
            (self.directory / "variables.yml").write_text(
                yaml.safe_dump(variables), encoding="utf-8"
            )
            command += ["-e", "@variables.yml"]
        done = run(command, self.directory, self.environment, usual=self.usual)
        return Played(
            done.returncode, done.stdout + done.stderr, self.directory, _recap(done.stdout)
        )

    def cases(
        self, *cases: Mapping[str, Any], arguments: tuple[str, ...] = ()
    ) -> dict[str, Outcome]:
        """Run the role once for each case, in one playbook, and return what each came to."""
        (self.directory / "cases.yml").write_text(CASES_PLAY, encoding="utf-8")
        (self.directory / "case.yml").write_text(CASE_TASKS, encoding="utf-8")
        return self.play("cases.yml", *arguments, cases=list(cases)).outcomes()


def _recap(text: str) -> dict[str, dict[str, int]]:
    lines = text.rpartition("PLAY RECAP")[2].splitlines()
    found = [re.match(r"(\S+)\s+: (ok=.*)", line) for line in lines]
    return {
        match[1]: {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", match[2])}
        for match in found
        if match
    }


def vm(name: str, **options: Any) -> dict[str, Any]:
    """Return a VM of an estate, a clone of the template unless the options say otherwise."""
    return {"name": name, "source": "debian-13", **options}


def machine(lab: Lab, name: str) -> Machine:
    (found,) = [one for one in lab.machines() if one.name == name]
    return found


def writes(lab: Lab, mark: int) -> list[str]:
    return [str(one) for one in lab.requests_since(mark) if one.is_write]


def diffs(output: str) -> list[str]:
    """Return the diffs that --diff printed, in order."""
    return re.findall(
        r"^--- before.*?(?=^(?:--- before|changed:|ok:|failed:|TASK|PLAY|\[WARNING))",
        output,
        re.M | re.S,
    )


def site_of(name: str, simulator: Simulator) -> dict[str, Any]:
    """Return a site as the connection options take it."""
    return {
        "name": name,
        "host": simulator.url,
        "ca_path": str(simulator.ca),
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }
