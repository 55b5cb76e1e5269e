# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong around the inventory, and where its options come from, through `ansible-inventory`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plays.inventory_helpers import LISTING, Lister, one_line
from tests.simulator.process import Simulator


class TestFailures:
    @pytest.mark.parametrize(
        ("options", "category"),
        [
            ({"token_id": "", "token_secret": "", "user": "root@pam", "password": "wrong-one"}, "AuthenticationError"),
            ({"token_secret": "11111111-0000-4000-8000-000000000000"}, "AuthenticationError"),
            ({"host": "http://127.0.0.1"}, "ConfigurationError"),
            ({"host": ""}, "ConfigurationError"),
            ({"token_id": "", "token_secret": ""}, "ConfigurationError"),
            ({"host": "127.0.0.1:1", "retries": 1}, "NetworkError"),
            ({"ca_path": "/nowhere/ca.pem"}, "ConfigurationError"),
            ({"ca_path": ""}, "NetworkError"),
            ({"site": "west"}, "ConfigurationError"),
        ],
    )
    def test_one_line_with_a_category(self, listed: Lister, options: dict[str, Any], category: str) -> None:
        found = listed(**options)
        assert found.code != 0
        assert f"({category})" in one_line(found.errors)
        assert "Traceback" not in found.errors
        assert "wrong-one" not in found.errors
        assert "11111111-0000" not in found.errors

    def test_a_listing_that_fails_once(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", status=596)
        assert len(listed().hosts) == 13

    def test_a_dropped_connection(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", drop="after")
        assert len(listed().hosts) == 13

    def test_a_listing_that_keeps_failing(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", status=596, times=None)
        found = listed(retries=2)
        assert found.code != 0
        assert "(NetworkError)" in one_line(found.errors)
        assert simulator.counts() == {LISTING: 2}

    def test_nothing_in_the_environment_that_is_empty_counts(self, listed: Lister) -> None:
        empty = dict.fromkeys(("PROXMOX_HOST", "PROXMOX_PORT", "PROXMOX_TOKEN_ID", "PROXMOX_TIMEOUT"), "")
        assert len(listed(environ=empty).hosts) == 13

    def test_everything_from_the_environment(self, listed: Lister) -> None:
        of = listed.connection
        environ = {
            "PROXMOX_HOST": of["host"],
            "PROXMOX_TOKEN_ID": of["token_id"],
            "PROXMOX_TOKEN_SECRET": of["token_secret"],
            "PROXMOX_CA_PATH": of["ca_path"],
            "PROXMOX_INVENTORY_TEMPLATES": "no",
        }
        assert len(listed(connect=False, environ=environ).hosts) == 12

    def test_everything_from_ansible_cfg(self, listed: Lister, tmp_path: Path) -> None:
        lines = [f"{key} = {value}" for key, value in {**listed.connection, "templates": "no"}.items()]
        (tmp_path / "own.cfg").write_text("[inventory_proxmox]\n" + "\n".join(lines) + "\n")
        found = listed(connect=False, environ={"ANSIBLE_CONFIG": str(tmp_path / "own.cfg")})
        assert len(found.hosts) == 12

    def test_no_secret_is_in_the_variables(self, listed: Lister) -> None:
        found = listed(fetch=["config"])
        assert listed.connection["token_secret"] not in json.dumps(found.data)


class TestSites:
    @pytest.fixture
    def sites(self, listed: Lister) -> list[dict[str, Any]]:
        """Two sites that are the same cluster, so that every VM is there twice."""
        return [{"name": name, **listed.connection} for name in ("north", "south")]

    def test_both_are_read(self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]) -> None:
        found = listed(connect=False, sites=sites)
        assert simulator.counts() == {LISTING: 2}
        assert len(found.hosts) == 26
        assert len(found.group("site_north")) == len(found.group("site_south")) == 13
        assert all(name.endswith(("_north", "_south")) for name in found.hosts)

    def test_one_is_named(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        found = listed(connect=False, sites=sites, site="south")
        assert len(found.hosts) == 13
        assert {one["proxmox_site"] for one in found.hosts.values()} == {"south"}
        assert len(listed(connect=False, sites=sites, environ={"PROXMOX_SITE": "north"}).hosts) == 13

    def test_from_a_file(self, listed: Lister, sites: list[dict[str, Any]], tmp_path: Path) -> None:
        (tmp_path / "sites.yml").write_text(json.dumps(sites))
        assert len(listed(connect=False, sites_file=str(tmp_path / "sites.yml")).hosts) == 26

    def test_a_dead_site(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        sites[1].update(host="127.0.0.1:1", retries=1)
        found = listed(connect=False, sites=sites)
        assert found.code != 0
        assert "site south" in one_line(found.errors)
        found = listed(connect=False, sites=sites, dead_site="report")
        assert found.code == 0
        assert len(found.hosts) == 13
        assert "site south cannot be read" in one_line(found.errors)

    def test_no_site_can_be_read(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        for site in sites:
            site.update(host="127.0.0.1:1", retries=1)
        assert listed(connect=False, sites=sites, dead_site="report").code != 0
