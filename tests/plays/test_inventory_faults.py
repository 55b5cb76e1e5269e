# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong around the inventory, and several sites, through the real `ansible-inventory`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plays.inventory_helpers import LISTING, Lister, call, configure, most_at_once, one_line
from tests.simulator.process import Simulator


class TestFailures:
    @pytest.mark.parametrize(
        ("options", "category"),
        [
            (
                {"token_id": "", "token_secret": "", "user": "root@pam", "password": "wrong-one"},
                "AuthenticationError",
            ),
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
    def test_one_line_with_a_category(
        self, listed: Lister, options: dict[str, Any], category: str
    ) -> None:
        found = listed(**options)
        assert found.code != 0
        assert f"({category})" in one_line(found.errors)
        assert "Traceback" not in found.errors
        assert "wrong-one" not in found.errors
        assert "11111111-0000" not in found.errors

    def test_an_expired_token(self, listed: Lister, simulator: Simulator) -> None:
        call(simulator, "PUT", "/access/users/root@pam/token/fleet", expire=1)
        found = listed()
        assert found.code != 0
        assert "(AuthenticationError)" in one_line(found.errors)
        assert "root@pam!fleet" in one_line(found.errors)
        assert "Traceback" not in found.errors
        assert listed.connection["token_secret"] not in found.errors

    def test_a_listing_that_hangs(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", delay_ms=3000, times=None)
        found = listed(timeout=0.5, retries=1)
        assert found.code != 0
        assert "(NetworkError)" in one_line(found.errors)
        assert "Traceback" not in found.errors

    @pytest.mark.parametrize(
        "fault", [{"cut": 30}, {"status": 200}, {"status": 500, "message": "boom"}]
    )
    def test_an_answer_that_is_none(
        self, listed: Lister, simulator: Simulator, fault: dict[str, Any]
    ) -> None:
        simulator.fault(path="/cluster/resources", times=None, **fault)
        found = listed(retries=1)
        assert found.code != 0
        assert "Could not list the guests" in one_line(found.errors)
        assert "Traceback" not in found.errors

    def test_a_user_who_may_see_nothing(self, listed: Lister, simulator: Simulator) -> None:
        call(simulator, "POST", "/access/users", userid="blind@pve", password="blind-123")
        of = {key: value for key, value in listed.connection.items() if not key.startswith("token")}
        found = listed(connect=False, user="blind@pve", password="blind-123", **of)
        assert found.code == 0
        assert found.hosts == {}
        assert "lacks VM.Audit" in one_line(found.errors)

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

    def test_no_secret_is_in_the_variables(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, cipassword="cloud-secret-1", sshkeys="ssh-ed25519%20AAAA")
        details = ["config", "addresses", "snapshots"]
        by_token = listed(fetch=details)
        of = {key: value for key, value in listed.connection.items() if not key.startswith("token")}
        by_password = listed(
            connect=False, fetch=details, user="root@pam", password="fleetpw123", **of
        )
        by_site = listed(
            connect=False, fetch=details, sites=[{"name": "north", **listed.connection}]
        )
        for found in (by_token, by_password, by_site):
            assert len(found.hosts) == 13
            assert found.by_vmid(10000)["proxmox_config"]["sshkeys"]
            shown = json.dumps(found.data) + found.errors
            for secret in (
                listed.connection["token_secret"],
                "fleetpw123",
                "cloud-secret-1",
                "cipassword",
                "PVE:",
            ):
                assert secret not in shown


class TestSites:
    @pytest.fixture
    def sites(self, listed: Lister) -> list[dict[str, Any]]:
        """Two sites that are the same cluster, so that every VM is there twice."""
        return [{"name": name, **listed.connection} for name in ("north", "south")]

    def test_both_are_read(
        self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]
    ) -> None:
        found = listed(connect=False, sites=sites)
        assert simulator.counts() == {LISTING: 2}
        assert len(found.hosts) == 26
        assert len(found.group("site_north")) == len(found.group("site_south")) == 13
        assert all(name.endswith(("_north", "_south")) for name in found.hosts)

    def test_they_are_read_in_parallel(
        self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]
    ) -> None:
        simulator.fault(path="/cluster/resources", delay_ms=400, times=None)
        assert len(listed(connect=False, sites=sites).hosts) == 26
        assert most_at_once(simulator.log()) == 2

    def test_a_node_that_is_down_is_not_a_dead_site(
        self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]
    ) -> None:
        simulator.steer("/nodes/pve3", {"online": False})
        found = listed(connect=False, sites=sites, fetch=["addresses"], fetch_timeout=1)
        assert found.code == 0
        assert len(found.hosts) == 26
        assert len(found.group("node_pve3")) > 0
        for name in found.group("node_pve3"):
            one = found.hosts[name]
            assert one["proxmox_status"] != "running" or one["proxmox_errors"]["addresses"]

    def test_one_is_named(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        found = listed(connect=False, sites=sites, site="south")
        assert len(found.hosts) == 13
        assert {one["proxmox_site"] for one in found.hosts.values()} == {"south"}
        assert (
            len(listed(connect=False, sites=sites, environ={"PROXMOX_SITE": "north"}).hosts) == 13
        )

    def test_from_a_file(self, listed: Lister, sites: list[dict[str, Any]], tmp_path: Path) -> None:
        (tmp_path / "sites.yml").write_text(json.dumps(sites))
        assert len(listed(connect=False, sites_file=str(tmp_path / "sites.yml")).hosts) == 26
        # As a credential of AWX does it: a file of its own, and where it is.
        assert (
            len(
                listed(
                    connect=False, environ={"PROXMOX_SITES_FILE": str(tmp_path / "sites.yml")}
                ).hosts
            )
            == 26
        )

    def test_a_dead_site(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        sites[1].update(host="127.0.0.1:1", retries=1)
        found = listed(connect=False, sites=sites)
        assert found.code != 0
        assert "site south" in one_line(found.errors)
        found = listed(connect=False, sites=sites, dead_site="report")
        assert found.code == 0
        assert len(found.hosts) == 13
        assert "site south cannot be read" in one_line(found.errors)

    def test_a_site_without_credentials_is_as_a_dead_one(
        self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]
    ) -> None:
        """In AWX the secret of one site may be missing.

        The others are shown where that is the choice.
        """
        sites[1].update(token_id="", token_secret="")
        found = listed(connect=False, sites=sites)
        assert found.code != 0
        assert "(site south): no credentials are given" in one_line(found.errors)
        assert simulator.counts() == {}
        found = listed(
            connect=False, sites=sites, dead_site="report", stale="allow", fetch=["addresses"]
        )
        assert found.code == 0
        assert {one["proxmox_site"] for one in found.hosts.values()} == {"north"}
        assert "site south cannot be read" in one_line(found.errors)
        sites[0].update(sites[1], name="north")
        found = listed(connect=False, sites=sites, dead_site="report")
        assert found.code != 0
        assert "no credentials are given" in one_line(found.errors)

    def test_no_site_can_be_read(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        for site in sites:
            site.update(host="127.0.0.1:1", retries=1)
        assert listed(connect=False, sites=sites, dead_site="report").code != 0
