# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.vm`, in playbooks."""

from __future__ import annotations

import json
from pathlib import Path

from tests.plays.inventory_helpers import LISTING, Lister, configure, run
from tests.simulator.process import Simulator


def test_lookup(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, name="web", tags="tenant_acme")
    configure(simulator, 10001, name="web", tags="tenant_globex")
    of = {**listed.connection}
    lookup = "lookup('pve.fleet.vm', {}, **of).{}"
    tasks = [
        {"ansible.builtin.debug": {"msg": "one={{ " + lookup.format("'10002'", "vmid") + " }}"}},
        {"ansible.builtin.debug": {"msg": "two={{ " + lookup.format("'web', tenant='globex'", "vmid") + " }}"}},
        {"ansible.builtin.debug": {"msg": "{{ " + lookup.format("'web'", "vmid") + " }}"}},
    ]
    play = tmp_path / "play.yml"
    play.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "vars": {"of": of}, "tasks": tasks}]))
    simulator.reset_log()
    done = run("ansible-playbook", str(play), cwd=tmp_path)
    assert "one=10002" in done.stdout
    assert "two=10001" in done.stdout
    assert done.returncode != 0
    assert "several VMs bear the name" in done.stdout + done.stderr
    assert "(Conflict)" in done.stdout + done.stderr
    assert simulator.counts() == {LISTING: 1}
