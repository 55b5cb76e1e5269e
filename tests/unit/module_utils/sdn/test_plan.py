# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of SDN that a task leaves."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.model import DesiredSdn
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.plan import after_plan

RUNNING = {
    "zones": {"teams": {"type": "vlan"}},
    "vnets": {
        "blue": {"zone": "teams", "tag": "1"},
        "tfront": {"zone": "teams", "tag": "2", "alias": "front [pve.fleet: tenant=tenant_acme]"},
    },
    "subnets": {"teams-10.1.0.0-24": {"vnet": "blue"}, "teams-10.2.0.0-24": {"vnet": "tfront"}},
    "controllers": {},
}


def test_exact_sections_keep_the_networks_of_tenants() -> None:
    sections = frozenset(("vnets", "subnets"))
    after = after_plan(RUNNING, DesiredSdn({"vnets": {}, "subnets": {}}, sections))
    assert list(after["vnets"]) == ["tfront"]
    assert list(after["subnets"]) == ["teams-10.2.0.0-24"]


def test_a_vnet_of_a_tenant_is_removed_if_it_is_listed_as_absent() -> None:
    after = after_plan(RUNNING, DesiredSdn({"vnets": {"tfront": None}}))
    assert list(after["vnets"]) == ["blue"]
