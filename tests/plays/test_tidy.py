# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook tidy, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player, diffs, writes

TIDY = "pve.fleet.tidy"
ACME = ("-e", "tidy_tenant=acme")


def marker(tenant: str) -> str:
    """Return the notes of a VM that a run has not finished making."""
    return f"<!-- pve.fleet: run=gone tenant=tenant_{tenant} -->"


def test_check_mode_lists_what_goes_and_the_run_removes_that_alone(
    lab: Lab, player: Player
) -> None:
    lab.make_vm("abandoned", description=marker("acme"), scsi0="ceph:1")
    lab.make_vm("whole", tags="tenant_acme")
    lab.make_vm("theirs", tags="tenant_globex", description=marker("globex"))
    lab.make_vm("untagged")
    locked = lab.make_vm("locked", tags="tenant_acme")
    lab.simulator.steer(f"/vms/{locked}", {"lock": "rollback"})
    before = {one.name for one in lab.machines()}
    mark = lab.mark()
    foreseen = player.play(TIDY, *ACME, "--check").expect()
    assert writes(lab, mark) == []
    assert {one.name for one in lab.machines()} == before
    tidied = player.play(TIDY, *ACME).expect()
    assert {one.name for one in lab.machines()} == before - {"abandoned"}
    assert (foreseen.changed, tidied.changed) == (1, 1)
    assert any("abandoned" in one for one in diffs(foreseen.output)), foreseen.output
    assert diffs(tidied.output) == diffs(foreseen.output)
    for said in (foreseen.output, tidied.output):
        assert "creation: remove" in said
        assert "rollback: by_hand" in said
        assert f"qm unlock {locked}" in said
        assert "theirs" not in said
    mark = lab.mark()
    assert player.play(TIDY, *ACME).expect().changed == 0
    assert writes(lab, mark) == []


def test_a_tenant_has_to_be_named(lab: Lab, player: Player) -> None:
    lab.make_vm("abandoned", description=marker("acme"))
    mark = lab.mark()
    player.play(TIDY).expect(2)
    assert writes(lab, mark) == []
