# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module firewall refuses rules that cut the caller or the nodes off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_firewall import converge, refused

OFFICE = "192.0.2.10"
CLUSTER: dict[str, Any] = {"scope": "cluster", "caller_address": OFFICE}
API = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8006", "source": "192.0.2.0/24"}
ON = {"enable": True}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """A cluster whose firewall is off."""
    return unused


def test_switching_on_without_a_rule_for_the_caller_is_refused(lab: Lab) -> None:
    """Policy DROP is the default, and only management and the local network are accepted."""
    result = refused(lab, **CLUSTER, options=ON)
    assert result["error"]["reason"] == "lockout"
    assert "the API of pve1 from 192.0.2.10 (DROP by policy_in: in DROP)" in result["msg"]
    assert "SSH" not in result["msg"]
    assert "corosync" not in result["msg"]
    converge(lab, **CLUSTER, options=ON, rules=[API])
    result = refused(lab, **CLUSTER, rules=[])
    assert "the API of pve3" in result["msg"]
    done = do(lab, "firewall", **CLUSTER, rules=[], allow_lockout=True)
    assert any("cut the API of pve2" in line for line in done["warnings"])


def test_the_management_set_accepts_the_caller(lab: Lab) -> None:
    sets = [{"name": "management", "members": [{"cidr": "192.0.2.0/24"}]}]
    converge(lab, **CLUSTER, ip_sets=sets)
    converge(lab, **CLUSTER, options=ON)
    excluded = {"name": "management", "members": [{"cidr": OFFICE, "nomatch": True}]}
    assert "the API of pve1" in refused(lab, **CLUSTER, ip_sets=[excluded])["msg"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            {"type": "in", "action": "DROP", "macro": "SSH"},
            "SSH from pve1 to pve2 (DROP by cluster",
        ),
        ({"type": "out", "action": "DROP", "macro": "SSH"}, "SSH from pve2 to pve1"),
        (
            {"type": "in", "action": "REJECT", "proto": "udp", "dport": "5404:5412"},
            "corosync from pve1 to pve2 (ring 0)",
        ),
    ],
)
def test_rules_before_those_of_pve_are_refused(lab: Lab, rule: dict[str, Any], said: str) -> None:
    converge(lab, **CLUSTER, options=ON, rules=[API])
    assert said in refused(lab, **CLUSTER, rules=[rule, API])["msg"]


def test_rules_of_a_node_are_checked(lab: Lab) -> None:
    converge(lab, **CLUSTER, options=ON, rules=[API])
    node: dict[str, Any] = {"scope": "node", "node": "pve2", "caller_address": OFFICE}
    closed = {"type": "in", "action": "DROP", "source": "192.0.2.0/24"}
    result = refused(lab, **node, rules=[closed])
    assert "the API of pve2 from 192.0.2.10 (DROP by node rule 0" in result["msg"]
    assert "pve1" not in result["msg"]
    converge(
        lab, **node, rules=[{**closed, "iface": "vmbr2"}, {**closed, "dport": "80", "proto": "tcp"}]
    )


def test_connections_that_are_cut_already_do_not_hinder_a_change(lab: Lab) -> None:
    do(lab, "firewall", **CLUSTER, options=ON, allow_lockout=True)
    converge(lab, **CLUSTER, rules=[{"type": "in", "action": "ACCEPT", "macro": "HTTP"}])


def test_a_text_that_is_not_an_address_is_refused(lab: Lab) -> None:
    result = refused(lab, scope="cluster", caller_address="office", options=ON)
    assert "'office' is not an address" in result["msg"]


def test_a_firewall_that_is_off_is_not_evaluated(lab: Lab) -> None:
    lab.simulator.reset_log()
    do(lab, "firewall", **CLUSTER, check=True, options={"policy_in": "DROP"})
    # Check mode reads the privileges of the login, too.
    assert len(lab.simulator.log()) == 2 + 1 + 1


def test_this_computer_on_the_node_itself_is_not_cut(lab: Lab) -> None:
    """The tests reach the simulator by 127.0.0.1, which Proxmox VE accepts on interface lo."""
    converge(lab, scope="cluster", options=ON)


def test_a_group_that_lets_the_caller_in_is_checked(lab: Lab) -> None:
    """Rules of a group count if the cluster uses the group, and only then."""
    group: dict[str, Any] = {"scope": "group", "caller_address": OFFICE}
    do(lab, "firewall", **group, group="office", rules=[API])
    do(lab, "firewall", **group, group="unused", rules=[API])
    used = {"type": "group", "action": "office"}
    converge(lab, **CLUSTER, options=ON, rules=[used])
    changes: list[dict[str, Any]] = [{"rules": []}, {"state": "absent"}]
    for change in changes:
        result = refused(lab, **group, group="office", **change)
        assert result["error"]["reason"] == "lockout"
        assert "the API of pve1 from 192.0.2.10" in result["msg"]
    do(lab, "firewall", **group, group="unused", state="absent")
    done = do(lab, "firewall", **group, group="office", rules=[], allow_lockout=True)
    assert any("cut the API of pve2" in line for line in done["warnings"])
