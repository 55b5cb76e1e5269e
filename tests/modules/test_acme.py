# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plugins, domains and certificates of ACME against the simulator, which follows pve-manager
(API2/ACMEPlugin.pm, API2/ACME.pm, NodeConfig.pm).
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.modules.access_lab import refused
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done

NODE: dict[str, Any] = {"node": "pve1"}
PLUGIN: dict[str, Any] = {"name": "cloudflare", "type": "dns", "api": "cf"}
DOMAINS = [{"domain": "PVE1.lab.example.com"}, {"domain": "web.example.com"}]


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_a_plugin_is_created_changed_and_deleted(lab: Lab) -> None:
    made = done(lab, "acme_plugin", **PLUGIN, data={"CF_Token": "first"})
    assert made["acme_plugin"] == {**PLUGIN, "validation_delay": 30, "nodes": [], "disable": False}
    assert "first" not in str(made)
    kept = lab.client.get("cluster", "acme", "plugins", "cloudflare")
    assert base64.b64decode(kept["data"]).decode() == "CF_Token=first\n"
    done(lab, "acme_plugin", name="cloudflare", nodes=["pve2", "pve1"], validation_delay=60)
    again = {**PLUGIN, "data": {"CF_Token": "second"}}
    assert not lab.run("acme_plugin", **again)["changed"]
    assert lab.run("acme_plugin", **again, update_secrets="always")["changed"]
    done(lab, "acme_plugin", name="cloudflare", nodes=[], validation_delay=30)
    listed = lab.run("acme_plugin_info")["acme_plugins"]
    assert [one["name"] for one in listed] == ["cloudflare", "standalone"]
    assert not lab.run("acme_plugin", **listed[0])["changed"]
    done(lab, "acme_plugin", name="cloudflare", state="absent")


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("acme_plugin", {"name": "a1"}, "type", "type is required"),
    ("acme_plugin", {"name": "a1", "type": "dns"}, "api", "api is required"),
    ("acme_plugin", {**PLUGIN, "data": {"a b": "secret"}}, "data", "a b is not a variable"),
    ("acme_plugin", {"name": "standalone", "api": "cf"}, "api", "option of type dns"),
    ("node", {**NODE, "acme": {"domains": [{"domain": "pve1"}]}}, "acme.domains[0].domain", "pve1"),
    ("node", {**NODE, "acme": {"domains": DOMAINS[:1] * 2}}, "acme.domains[1].domain", "twice"),
    (
        "node",
        {**NODE, "acme": {"domains": [{"domain": "a.example.com", "plugin": "none"}]}},
        "unknown ACME plugin",
        "none",
    ),
    ("acme_certificate", NODE, "no domains", "pve.fleet.node"),
]


@pytest.mark.parametrize(("module", "options", "reason", "word"), REFUSED, ids=str)
def test_bad_input_is_refused(
    lab: Lab, module: str, options: dict[str, Any], reason: str, word: str
) -> None:
    result = refused(lab, module, **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]
    assert "secret" not in str(result["msg"])


def test_domains_of_a_node_are_set_as_a_whole(lab: Lab) -> None:
    """Proxmox VE keeps domains in `acme` and in `acmedomain0` to `acmedomain5`."""
    path = ("nodes", "pve1", "config")
    lab.client.write("PUT", *path, data={"acme": "account=default,domains=a.example.com"})
    acme = {"domains": [{"domain": "a.example.com"}]}
    assert not lab.run("node", **NODE, acme=acme)["changed"]
    lab.run("acme_plugin", **PLUGIN)
    item = {"domain": "b.example.com", "plugin": "cloudflare", "alias": "_acme.example.net"}
    acme = {"domains": [{"domain": "a.example.com"}, item]}
    made = lab.run("node", **NODE, acme=acme)
    assert not made.get("failed"), made
    assert made["node"]["acme"] == {
        "account": "default",
        "domains": [{"domain": "a.example.com", "plugin": "standalone"}, item],
    }
    found = lab.run("node_settings_info", **NODE)["settings"]
    assert not lab.run("node", **NODE, acme=found["acme"])["changed"]
    assert lab.run("node", **NODE, acme={})["node"]["acme"] is None
    assert lab.client.get(*path) == {}


def test_a_certificate_is_ordered_if_it_is_needed(lab: Lab) -> None:
    lab.run("node", **NODE, acme={"domains": DOMAINS})
    foreseen = lab.run("acme_certificate", check=True, **NODE)
    assert (foreseen["changed"], lab.run("node_certificate_info", **NODE)["certificates"]) == (
        True,
        [],
    )
    made = lab.run("acme_certificate", **NODE)
    assert not made.get("failed"), made
    assert made["plan"] == foreseen["plan"]
    assert made["acme_certificate"]["domains"] == ["pve1.lab.example.com", "web.example.com"]
    lab.simulator.reset_log()
    assert not lab.run("acme_certificate", **NODE)["changed"]
    assert (len(lab.simulator.log()), lab.simulator.writes()) == (2, [])
    assert lab.run("acme_certificate", **NODE, renew_days=100)["failed"]  # valid for 90 days
    lab.run("node", **NODE, acme={"domains": DOMAINS[:1]})
    changed = lab.run("acme_certificate", **NODE)
    assert changed["acme_certificate"]["domains"] == ["pve1.lab.example.com"]
    gone = lab.run("acme_certificate", **NODE, state="absent")
    assert not gone.get("failed"), gone
    assert not lab.run("acme_certificate", **NODE, state="absent")["changed"]


def test_a_missing_account_is_reported(lab: Lab) -> None:
    """The account is removed after the settings of the node name it."""
    result = refused(lab, "node", **NODE, acme={"account": "other", "domains": DOMAINS})
    assert "no ACME account 'other'" in result["msg"]
    data = {"acme": "account=other,domains=a.example.com"}
    lab.client.write("PUT", "nodes", "pve1", "config", data=data)
    failed = lab.run("acme_certificate", **NODE)
    assert "ACME account config file 'other' does not exist" in failed["msg"]
