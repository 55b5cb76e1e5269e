# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of tenants are never templates, through `ansible-inventory` and `ansible-playbook`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.plays.inventory_helpers import Lister, configure, run
from tests.simulator.process import Simulator


def test_texts_of_tenants_are_never_templates(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, tags="{{7*6}};x", name="web", description="{{ lookup('pipe', 'id') }}")
    found = listed(fetch=["config"], compose={"copy": "proxmox_tags"})
    assert "{{7*6}}" in json.dumps(found.by_vmid(10000)["proxmox_tags"])
    play = tmp_path / "play.yml"
    play.write_text(
        json.dumps(
            [
                {
                    "hosts": "web",
                    "gather_facts": False,
                    "tasks": [
                        {
                            "ansible.builtin.debug": {
                                "msg": "{{ proxmox_tags }} {{ copy }} {{ proxmox_config.description }}"
                            }
                        }
                    ],
                }
            ]
        )
    )
    done = run("ansible-playbook", "-i", str(tmp_path / "fleet.proxmox.yml"), str(play), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "{{7*6}}" in done.stdout
    assert "42" not in done.stdout.replace("10042", "")
    assert "uid=" not in done.stdout
