# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks cluster, export and drift with a cluster file, run by ansible-playbook."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player, site_of, writes
from tests.simulator.process import Simulator

CLUSTER, EXPORT, DRIFT = "pve.fleet.cluster", "pve.fleet.export", "pve.fleet.drift"
GIVEN = ("-e", "@cluster.yml")
FILE: dict[str, Any] = {
    "cluster_groups": [{"name": "editors", "comment": "Editors"}],
    "cluster_storages": [
        {"name": "media", "type": "dir", "path": "/srv/media", "content": ["backup"]}
    ],
    "cluster_backup_jobs": [
        {"name": "nightly", "schedule": "02:30", "all": True, "storage": "media"}
    ],
}


def write(player: Player, content: dict[str, Any]) -> None:
    (player.directory / "cluster.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def test_a_file_is_previewed_applied_and_compared(lab: Lab, player: Player) -> None:
    write(player, FILE)
    mark = lab.mark()
    output = player.play(CLUSTER, *GIVEN, "--check", "--diff").expect().output
    assert "+ backup job nightly" in output
    output = player.play(DRIFT, *GIVEN).expect(2).output
    assert "differs from its file in 3 resources: groups editors, storages media" in output
    assert writes(lab, mark) == []
    output = player.play(CLUSTER, *GIVEN).expect().output
    assert "+ backup job nightly" in output
    mark = lab.mark()
    output = player.play(CLUSTER, *GIVEN).expect().output
    assert " unchanged" in output
    assert "changed=0" in output
    player.play(DRIFT, *GIVEN).expect()
    assert writes(lab, mark) == []


def test_an_exported_file_changes_nothing(lab: Lab, player: Player) -> None:
    write(player, FILE)
    player.play(CLUSTER, *GIVEN).expect()
    (player.directory / "cluster.yml").unlink()
    place = ("-e", "export_directory=.")
    player.play(EXPORT, *place).expect()
    assert not (player.directory / "cluster.yml").exists()
    player.play(EXPORT, *place, "-e", "export_cluster=true").expect()
    file = player.directory / "cluster.yml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    mark = lab.mark()
    player.play(DRIFT, *GIVEN, "-e", "@estate.yml").expect()
    assert " unchanged" in player.play(CLUSTER, *GIVEN).expect().output
    assert writes(lab, mark) == []
    edited = file.read_text(encoding="utf-8").replace("Editors", "Authors")
    file.write_text(edited, encoding="utf-8")
    output = player.play(EXPORT, *place, "-e", "export_cluster=true").expect(2).output
    assert "cluster.yml exists, and it was edited" in " ".join(output.split())
    assert file.read_text(encoding="utf-8") == edited


def test_a_misspelt_section_is_a_mistake(lab: Lab, player: Player) -> None:
    mark = lab.mark()
    output = player.play(CLUSTER, "-e", '{"cluster_storage": []}').expect(2).output
    assert "cluster_storages" in output
    assert writes(lab, mark) == []


@pytest.mark.slow
def test_the_same_file_for_several_sites(lab: Lab, player: Player) -> None:
    """Each site gets the file, and drift names the site that differs."""
    write(player, FILE)
    with Simulator() as other:
        sites = [site_of("vienna", lab.simulator), site_of("munich", other)]
        chosen = {"cluster_sites": ["vienna", "munich"], "cluster_connection": {"sites": sites}}
        arguments = (*GIVEN, "-e", json.dumps(chosen))
        mark = lab.mark()
        output = player.play(CLUSTER, *arguments, "--check").expect().output
        assert output.count("+ backup job nightly") == 2
        assert (writes(lab, mark), other.writes()) == ([], [])
        output = player.play(CLUSTER, *arguments).expect().output
        assert output.count("+ backup job nightly") == 2
        assert other.writes() != []
        player.play(DRIFT, *arguments).expect()
        changed = {"cluster_groups": [{"name": "editors", "comment": "Authors"}]}
        only = {**chosen, "cluster_sites": ["munich"], **changed}
        player.play(CLUSTER, "-e", json.dumps(only)).expect()
        output = player.play(DRIFT, *arguments).expect(2).output
        assert output.count("~ groups editors ") == 1
        assert "in 1 resources: groups editors" in output
