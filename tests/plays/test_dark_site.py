# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks that read all sites, while one site does not answer: what they have of the other sites is
written, and they fail. All playbooks at a site that is misspelt, dark, closed or draining.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.labs.sites import DARK
from tests.plays.provision_helpers import Played, Player, site_of, writes

REASON = "127.0.0.1:9 refused"
# The playbook, its variables, and the file that it writes nevertheless.
READING = {
    "report": (["report_directory={place}"], "report.html"),
    "status": ([], ""),
    "metrics": (["metrics_path={place}/proxmox.prom"], "proxmox.prom"),
    "usage": (["usage_path={place}/usage"], "usage/berlin/last.json"),
    "audit": (["audit_json={place}/findings.json"], "findings.json"),
    "drift": (["provision_drift_file={place}/drift.json", "@estate.yml"], "drift.json"),
}
# Variables with which each of the others has something to do.
GUEST = {"provision_vms": [{"name": "db9", "tenant": "acme", "source": "debian-13"}]}
WRITING: dict[str, dict[str, Any]] = {
    "backup": {"backup_tenant": "acme", "backup_storage": "local"},
    "cluster": {"cluster_pools": [{"name": "acme"}]},
    "deprovision": {**GUEST, "provision_tenants": ["acme"]},
    "drill": {
        "drill_directory": "{place}",
        "drill_vms": ["web9"],
        "drill_storage": "local",
        "drill_tenant": "acme",
    },
    "export": {"export_directory": "{place}/estate"},
    "failover": {
        "failover_directory": "{place}",
        "failover_from_site": "berlin",
        "failover_storages": ["local"],
        "failover_tenant": "acme",
    },
    "image": {"image_name": "debian", "image_url": "http://127.0.0.1:9/x.qcow2"},
    "power": {"power_state": "started", "power_tenants": ["acme"]},
    "preflight": {},
    "provision": GUEST,
    "rebalance": {},
    "relocate": {"relocate_to_site": "berlin", "relocate_vms": ["db9"], "relocate_tenant": "acme"},
    "replace_images": GUEST,
    "rollback": {"snapshot_policy_name": "before", "snapshot_policy_tenant": "acme"},
    "rotate": {"tenant_name": "acme", "tenants": {"acme": None}},
    "snapshot": {"snapshot_policy_name": "before", "snapshot_policy_tenant": "acme"},
    "tenant": {"tenant_name": "acme", "tenants": {"acme": None}},
    "tidy": {"tidy_tenant": "acme"},
}
# A file is compared with another, AWX is asked, or the inventory has the nodes: it fails first.
WITHOUT_SITES = {
    "maintenance",
    "plan",
    "awx_failed",
    "awx_setup",
    "awx_site",
    "awx_sites",
    "awx_undo",
}
# A comparison and an audit of a part of the sites never pass.
COMPARING = ("audit", "drift")


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    lab.make_vm("web9", tags="tenant_acme")
    guests = [{"name": "db9", "tenant": "acme", "site": site} for site in ("berlin", "munich")]
    (tmp_path / "estate.yml").write_text(yaml.safe_dump({"provision_vms": guests}))
    sites = [site_of("berlin", lab.simulator), {"name": "munich", **DARK}]
    file = tmp_path / "sites.yml"
    file.write_text(yaml.safe_dump({"sites": sites}))
    file.chmod(0o600)
    own = {name: value for name, value in lab.environment.items() if "PROXMOX" not in name}
    more = {"PROXMOX_SITES_FILE": str(file), "PROXMOX_RETRIES": "1"}
    return Player(tmp_path, {**own, **more})


@pytest.mark.parametrize("playbook", READING)
def test_a_playbook_that_lacks_a_site_fails_after_it_wrote_the_others(
    lab: Lab, player: Player, playbook: str
) -> None:
    given, written = READING[playbook]
    options = [part for one in given for part in ("-e", one.format(place=player.directory))]
    mark = lab.mark()
    failed = player.play(f"pve.fleet.{playbook}", *options).expect(2)
    assert "munich" in failed.output
    assert REASON in failed.output
    assert "Traceback" not in failed.output
    assert (player.directory / written).exists()
    wanted = 2 if playbook in COMPARING else 0
    allowed = player.play(
        f"pve.fleet.{playbook}", *options, "-e", "pve_fleet_dead_site=report"
    ).expect(wanted)
    assert "munich" in allowed.output
    assert writes(lab, mark) == []


def test_a_playbook_without_any_site_fails_whatever_is_allowed(player: Player) -> None:
    (player.directory / "sites.yml").write_text(
        yaml.safe_dump({"sites": [{"name": "munich", **DARK}]})
    )
    for playbook in ("report", "status", "usage"):
        given, _written = READING[playbook]
        options = [part for one in given for part in ("-e", one.format(place=player.directory))]
        allowed = ("-e", "pve_fleet_dead_site=report")
        assert REASON in player.play(f"pve.fleet.{playbook}", *options, *allowed).expect(2).output


def test_a_misspelt_choice_is_refused(player: Player) -> None:
    output = player.play("pve.fleet.status", "-e", "pve_fleet_dead_site=reprot").expect(2).output
    assert "pve_fleet_dead_site" in output
    assert "did you mean 'report'?" in output
    output = player.play("pve.fleet.status", "-e", "pve_fleet_dead_sites=report").expect(2).output
    assert "did you mean 'pve_fleet_dead_site'?" in output


def test_every_playbook_is_tried() -> None:
    playbooks = {path.stem for path in (Path(__file__).parents[2] / "playbooks").glob("*.yml")}
    assert playbooks - WITHOUT_SITES == {*READING, *WRITING}


def played_at(player: Player, playbook: str, site: str) -> Played:
    """Run a playbook at a site."""
    options = [one for one in READING.get(playbook, ([], ""))[0] if not one.startswith("@")]
    if playbook == "drift":
        options.append(json.dumps(GUEST))
    given = [json.dumps(WRITING[playbook])] if playbook in WRITING else options
    own = [part for one in given for part in ("-e", one.replace("{place}", str(player.directory)))]
    player.environment["PROXMOX_SITE"] = site
    return player.play(f"pve.fleet.{playbook}", *own)


@pytest.mark.slow
@pytest.mark.parametrize("site", ["munich", "berlni"])
@pytest.mark.parametrize("playbook", [*READING, *WRITING])
def test_a_playbook_at_a_dark_or_misspelt_site_names_it(
    lab: Lab, player: Player, playbook: str, site: str
) -> None:
    mark = lab.mark()
    output = played_at(player, playbook, site).expect(2).output
    assert {"munich": "(site munich)", "berlni": "there is no site 'berlni'"}[site] in output, (
        output
    )
    assert "Traceback" not in output
    assert writes(lab, mark) == []


# They only read, or have nothing to do after their readings; a drill finds no archive.
WRITES_NOTHING = {"export", "preflight", "replace_images", "drill"}
CREATING = ("provision", "failover", "image")
# In all runs of the tests: a playbook with a role of each module family, and one that reads.
FAST = ("provision", "power", "tenant", "status")


def sampled(playbooks: Iterable[str]) -> list[Any]:
    return [one if one in FAST else pytest.param(one, marks=pytest.mark.slow) for one in playbooks]


def with_state(lab: Lab, player: Player, state: str) -> None:
    """Give the site that answers a state."""
    berlin = {**site_of("berlin", lab.simulator), "state": state}
    (player.directory / "sites.yml").write_text(yaml.safe_dump({"sites": [berlin]}))


@pytest.mark.parametrize("playbook", sampled([*READING, *WRITING]))
def test_a_playbook_writes_nothing_at_a_closed_site(
    lab: Lab, player: Player, playbook: str
) -> None:
    """It is refused if it would write there; a task that names the site may read it."""
    with_state(lab, player, "closed")
    mark = lab.mark()
    played = played_at(player, playbook, "berlin")
    assert "Traceback" not in played.output
    assert writes(lab, mark) == []
    if playbook in WRITING and playbook not in WRITES_NOTHING:
        assert "site berlin is closed, so nothing is written there" in played.expect(2).output
    elif playbook not in (*COMPARING, "drill"):
        played.expect(0)
    if playbook == "drift":
        assert "site berlin is closed, so it gets no new guest" in played.output


@pytest.mark.parametrize("playbook", sampled(CREATING))
def test_a_playbook_creates_no_guest_at_a_draining_site(
    lab: Lab, player: Player, playbook: str
) -> None:
    with_state(lab, player, "draining")
    mark = lab.mark()
    output = played_at(player, playbook, "berlin").expect(2).output
    assert "site berlin is draining, so it gets no new guest" in output
    assert writes(lab, mark) == []


@pytest.mark.slow
@pytest.mark.parametrize("playbook", [one for one in (*READING, *WRITING) if one not in CREATING])
def test_any_other_playbook_treats_a_draining_site_as_an_active_one(
    lab: Lab, player: Player, playbook: str
) -> None:
    ends: list[int] = []
    for state in ("active", "draining"):
        with_state(lab, player, state)
        played = played_at(player, playbook, "berlin")
        assert playbook == "drift" or "is draining" not in played.output  # its guest is missing
        ends.append(played.status)
    assert ends[0] == ends[1]
