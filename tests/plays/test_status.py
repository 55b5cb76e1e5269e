# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of guests that pve.fleet.status prints."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.demo.lab import Lab
from tests.labs.sites import DARK
from tests.plays.provision_helpers import PROVISION, Player, site_of, vm, writes

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
    assert shown.output.count("TASK [") == 3
    wrong = player.play(STATUS, *options[:2], "-e", "status_states=runing").expect(2).output
    assert "The guests cannot be selected: there is no state 'runing'" in wrong
    assert "(did you mean 'running'?)" in wrong
    assert "filter plugin" not in wrong


def test_sites_without_a_default_and_a_site_that_does_not_answer(
    player: Player, lab: Lab, tmp_path: Path
) -> None:
    lab.make_vm("web9", tags="tenant_acme")
    sites = [site_of(name, lab.simulator) for name in ("north", "south")]
    file = tmp_path / "sites.yml"
    for more in ({}, {"default": True}):
        file.write_text(yaml.safe_dump({"sites": [*sites, {"name": "west", **DARK, **more}]}))
        own = {name: value for name, value in player.environment.items() if "PROXMOX" not in name}
        several = Player(
            player.directory, {**own, "PROXMOX_SITES_FILE": str(file), "PROXMOX_RETRIES": "1"}
        )
        several.environment.pop("PROXMOX_HOST", None)
        shown = several.play(STATUS)
        assert [row[0] for row in table(shown.output) if row[1] == "web9"] == ["north", "south"]
        shown.expect(2)
        missing = "The guests of west are missing: Could not read the cluster: 127.0.0.1:9 refused"
        assert missing in shown.output
    file.write_text(yaml.safe_dump({"sites": [{"name": "west", **DARK}]}))
    assert missing in several.play(STATUS).expect(2).output
