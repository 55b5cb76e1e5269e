# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook report, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Played, Player, writes

REPORT = "pve.fleet.report"
ESTATE: dict[str, Any] = {
    "tenants": {
        "acme": {"quota": {"vms": 5}, "defaults": {"blank": True, "cores": 1, "memory": 256}}
    },
    "provision_state": "stopped",
    "provision_vms": [{"name": "web", "tenant": "acme"}, {"name": "db", "tenant": "acme"}],
}
PRICES = '{"report_prices": {"core": 4.5, "memory": "2.00", "currency": "EUR"}}'


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    return Player(tmp_path, lab.environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "report"


def play(player: Player, folder: Path | str, *arguments: str, status: int = 0) -> Played:
    place = json.dumps({"report_directory": str(folder)})
    played = player.play(REPORT, "-e", place, *arguments).expect(status)
    assert "Traceback" not in played.output
    return played


def history(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "history.json").read_text(encoding="utf-8")
    reports: list[dict[str, Any]] = json.loads(text)["reports"]
    return reports


@pytest.mark.slow
def test_from_the_first_report_to_the_next(lab: Lab, player: Player, folder: Path) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    mark = lab.mark()
    played = play(player, folder, "--check")
    assert not folder.exists()
    assert "\nThe page is not written, in check mode\n" in played.output

    played = play(player, folder)
    assert sorted(os.listdir(folder)) == ["history.json", "report.html"]
    assert str(folder / "report.html") in played.output
    assert "\nwarning: Guests without a backup: 2\n" in played.output
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "This is the first report" in page
    assert 'id="drift"' not in page
    assert (folder / "report.html").stat().st_mode & 0o777 == 0o640

    before = (folder / "report.html").read_bytes()
    play(player, folder, "--check", "-e", PRICES)
    assert (folder / "report.html").read_bytes() == before
    assert len(history(folder)) == 1

    lab.make_vm("<i>more</i>"[3:7], tags="tenant_globex")
    arguments = (
        "-e",
        "@estate.yml",
        "-e",
        PRICES,
        "-e",
        "report_title='<b>Berlin</b> {{ 1 + 1 }}'",
    )
    play(player, folder, *arguments)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Changes are those since" in page
    assert 'id="drift"' in page
    assert "1 not in the estate" in page
    assert "&lt;b&gt;Berlin&lt;/b&gt;" in page
    assert "vms: 2 of 5" in page
    assert [sorted(one["sites"][""]) for one in history(folder)] == [["acme"], ["acme", "globex"]]
    with (folder / "costs.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["tenant"], line["cost"]) for line in lines] == [
        ("acme", "10.00"),
        ("globex", "4.75"),
    ]
    assert (folder / "costs.csv").read_bytes().endswith(b"\r\n")
    made = [str(one) for one in writes(lab, mark)]
    assert made == ["POST /nodes/pve1/qemu"]


def test_texts_of_tenants_are_neither_markup_nor_templates(
    lab: Lab, player: Player, folder: Path
) -> None:
    names = ("<script>alert(1)</script>", "{{ 1 + 1 }}", "{% raw %}")
    for name in names:
        vmid = lab.make_vm("plain", tags="tenant_acme")
        lab.simulator.steer(f"/vms/{vmid}", {"config": {"name": name}})
    play(player, folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    for name in names:
        escaped = name.replace("<", "&lt;").replace(">", "&gt;")
        assert f" {escaped} " in page
    assert "<script" not in page


def test_a_history_that_cannot_be_used_is_kept(lab: Lab, player: Player, folder: Path) -> None:
    content = '{"version": 7, "reports": []}'
    folder.mkdir()
    (folder / "history.json").write_text(content, encoding="utf-8")
    played = play(player, folder)
    assert (folder / "history.json").read_text(encoding="utf-8") == content
    reason = "Growth is unknown, because of the history of reports"
    assert reason in played.output
    assert reason in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_found_before_anything_is_read(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "taken" / "report.html").mkdir(parents=True)
    mark = lab.mark()
    for place, cause in (
        ("report", "report_directory must be an absolute path"),
        (tmp_path / "file", "exists and is not a directory"),
        (tmp_path / "file" / "below", "Not a directory"),
        (tmp_path / "taken", "cannot be written, because it is a directory"),
    ):
        assert cause in play(player, place, status=2).output
    assert lab.requests_since(mark) == []


def test_a_directory_of_others(lab: Lab, player: Player, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user can write to every directory")
    mark = lab.mark()
    output = play(player, locked, status=2).output
    assert f"This user cannot write to {locked}. Nothing was read." in output
    assert lab.requests_since(mark) == []


def test_prices_of_a_wrong_type(lab: Lab, player: Player, folder: Path) -> None:
    for prices, cause in (
        ('{"core": true}', "prices.core was refused: 'True' is not a price"),
        ('["core"]', "report_prices"),
    ):
        output = play(player, folder, "-e", f'{{"report_prices": {prices}}}', status=2).output
        assert cause in output
    assert not (folder / "report.html").exists()


def test_a_site_that_is_down(lab: Lab, player: Player, folder: Path) -> None:
    """The page is written, and the exit status says that it has nothing to say."""
    connection = {**lab.connection, "host": "127.0.0.1:1", "retries": 1}
    arguments = ("-e", json.dumps({"report_connection": connection}))
    played = play(player, folder, *arguments, status=2)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "This site could not be read." in page
    assert "critical: Sites that could not be read: 1" in played.output
    assert history(folder)[0]["sites"] == {"": None}


@pytest.mark.slow
def test_a_dead_node(lab: Lab, player: Player, folder: Path) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    lab.simulator.steer("/nodes/pve3", {"online": False})
    output = play(player, folder, "-e", "@estate.yml").output
    lab.simulator.steer("/nodes/pve3", {"online": True})
    assert "critical: Nodes in trouble: 1" in output
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Its load and its room are unknown" in page
    assert "Incomplete" in page


@pytest.mark.slow
def test_a_report_with_a_cluster_file(lab: Lab, player: Player, folder: Path) -> None:
    given = ("-e", '{"cluster_groups": [{"name": "editors", "comment": "Editors"}]}')
    played = play(player, folder, *given)
    assert "warning: Differences from the cluster file: 1" in played.output
    assert "groups editors" in (folder / "report.html").read_text(encoding="utf-8")
    play(player, folder, "-e", '{"cluster_group": []}', status=2)
