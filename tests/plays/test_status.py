# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of guests that pve.fleet.status prints."""

from __future__ import annotations

from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Player, vm, writes

STATUS = "pve.fleet.status"


def table(output: str) -> list[list[str]]:
    """Return the cells of the printed table, without its head."""
    lines = output.partition("NAME ")[2].splitlines()[1:]
    rows = [line.split() for line in lines]
    return rows[: next(at for at, row in enumerate(rows) if row[1:] in (["guests"], ["guest"]))]


def test_the_guests_of_an_estate_are_a_table(player: Player, lab: Lab) -> None:
    estate = [vm("web1", tenant="acme", node="pve2"), vm("db1", tenant="globex", node="pve1")]
    player.play(PROVISION, provision_vms=estate).expect()
    lab.make_vm("other", tags="tenant_acme")
    mark = lab.mark()
    changed = [{**estate[0], "cores": 4}, estate[1]]
    shown = player.play(STATUS, "-e", "status_sort=node", provision_vms=changed).expect()
    assert writes(lab, mark) == []
    assert shown.changed == 0
    rows = {row[0]: row[1:5] + row[7:] for row in table(shown.output)}
    assert rows["web1"] == ["acme", "vm", "pve2", "running", "drifted"]
    assert rows["db1"] == ["globex", "vm", "pve1", "running", "in", "sync"]
    assert rows["other"][-2:] == ["not", "listed"]
    assert [row[3] for row in table(shown.output)] == sorted(row[2] for row in rows.values())
    options = ("-e", "status_tenants=acme", "-e", "status_states=running")
    some = player.play(STATUS, *options, "-e", "status_addresses=false").expect()
    assert [row[0] for row in table(some.output)] == ["web1"]
    refused = player.play(STATUS, "-e", "status_tenant=acme").expect(2)
    assert "did you mean 'status_tenants'?" in refused.output
