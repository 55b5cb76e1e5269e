# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of tenants are never templates, through `ansible-inventory` and `ansible-playbook`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import repeated
from tests.plays.inventory_helpers import Lister, call, configure, run
from tests.simulator.process import Simulator

TAG = "{{1+1}}"
SUM = "{{ 40000 + 2 }}"  # 40002 anywhere tells that it was evaluated
PIPE = "{{ lookup('pipe', 'echo pi; echo ped') }}"
STATEMENT = "{% for i in [1] %}40002{% endfor %}"
# What a playbook may do with a value, by a name for it.
USES = {
    "plain": "{{ %s }}",
    "joined": "{{ 'x ' ~ %s }}",
    "as_json": "{{ %s | to_json }}",
    "by_vars": "{{ vars['%s'] }}",
    "by_hostvars": "{{ hostvars[inventory_hostname]['%s'] }}",
}
VALUES = (
    "proxmox_name",
    "proxmox_tags",
    "proxmox_config",
    "proxmox_snapshots",
    "copied",
    "first_tag",
    "glued",
    "nested",
)


@pytest.fixture
def evil(listed: Lister, simulator: Simulator) -> dict[str, Any]:
    """A VM with templates wherever a tenant can write, and the options that show everything
    of it.
    """
    node = listed().by_vmid(10000)["proxmox_node"]
    configure(
        simulator,
        10000,
        name=SUM,
        tags=f"{TAG};x",
        description=f"{PIPE} {STATEMENT}",
        smbios1=f"serial={SUM}",
    )
    call(
        simulator,
        "POST",
        f"/nodes/{node}/qemu/10000/snapshot",
        snapname="one",
        description=f"{SUM} {PIPE}",
    )
    return {
        "fetch": ["config", "snapshots"],
        "filters": ["proxmox_vmid == 10000"],
        "compose": {
            "copied": "proxmox_tags",
            "first_tag": "proxmox_tags[0]",
            "glued": "proxmox_name ~ '/' ~ proxmox_tags[0]",
            "nested": "{'a': proxmox_tags, 'b': proxmox_name}",
        },
        "keyed_groups": [{"key": "proxmox_tags", "prefix": "by"}],
    }


def test_the_inventory_shows_them_as_they_are(listed: Lister, evil: dict[str, Any]) -> None:
    found = listed(**evil)
    (name,) = found.hosts
    shown = json.dumps(found.hosts[name])
    assert name == "vm-10000"
    for text in (TAG, SUM, PIPE, STATEMENT):
        assert text in shown
    assert "pi\\nped" not in shown


@pytest.mark.parametrize("cached", repeated([True, False]))
def test_a_playbook_reads_them_as_text(
    listed: Lister, evil: dict[str, Any], simulator: Simulator, tmp_path: Path, cached: bool
) -> None:
    if cached:
        store = {
            "cache": True,
            "cache_plugin": "ansible.builtin.jsonfile",
            "cache_connection": str(tmp_path / "cache"),
        }
        evil.update(store)
    listed(**evil)
    tasks: list[dict[str, Any]] = []
    for value in VALUES:
        for use, template in USES.items():
            tasks.append({"ansible.builtin.debug": {"msg": f"{value} {use}: {template % value}"}})
        # A fact made of it, read in a later task, must not come alive there.
        tasks.append(
            {
                "ansible.builtin.set_fact": {
                    "kept": f"{{{{ {value} }}}}",
                    "glued_again": f"{{{{ {value} }}}}!",
                }
            }
        )
        tasks.append({"ansible.builtin.debug": {"msg": "{{ kept }} {{ glued_again }}"}})
        tasks.append({"ansible.builtin.debug": {"var": value}})
    tasks.append({"ansible.builtin.debug": {"msg": "groups {{ group_names }}"}})
    tasks.append(
        {
            "ansible.builtin.copy": {
                "content": "{{ proxmox_config.description }}",
                "dest": str(tmp_path / "out"),
            }
        }
    )
    play = tmp_path / "play.yml"
    own = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    }
    play.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "vars": own, "tasks": tasks}])
    )
    simulator.reset_log()
    done = run(
        "ansible-playbook", "-i", str(tmp_path / "fleet.proxmox.yml"), str(play), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert bool(simulator.counts()) is not cached
    said = done.stdout.replace(STATEMENT, "")
    assert "40002" not in said
    assert "piped" not in said.replace("\\n", "").replace("\n", "")
    assert f"first_tag plain: {TAG}" in said
    assert f"glued plain: {SUM}/{TAG}" in said
    written = (tmp_path / "out").read_text()
    assert PIPE in written
    assert STATEMENT in written


def test_the_lookup_returns_text(listed: Lister, evil: dict[str, Any], tmp_path: Path) -> None:
    tasks = [
        {"ansible.builtin.set_fact": {"found": "{{ lookup('pve.fleet.vm', '10000', **of) }}"}},
        {"ansible.builtin.debug": {"msg": "{{ found.name }} {{ found.tags[-1] }}"}},
        {"ansible.builtin.debug": {"msg": "{{ lookup('pve.fleet.vm', '10000', **of).tags }}"}},
    ]
    play = tmp_path / "play.yml"
    hosts = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"of": listed.connection},
        "tasks": tasks,
    }
    play.write_text(json.dumps([hosts]))
    done = run("ansible-playbook", str(play), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SUM} {TAG}" in done.stdout, done.stdout
    assert "40002" not in done.stdout
