# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall that a task leaves."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._firewall.model import (
    DesiredFirewall,
    Firewall,
    IpSet,
)
from ansible_collections.pve.fleet.plugins.module_utils._firewall.plan import after_plan

MARK = "[pve.fleet: tenant=tenant_acme]"


def test_exact_names_keep_the_names_of_tenants() -> None:
    subnet = {"10.2.0.0/24": (False, MARK)}
    actual = Firewall(
        aliases={"office": ("192.0.2.0/24", ""), "tfront": ("10.2.0.0/24", f"front {MARK}")},
        ip_sets={
            "admins": IpSet(),
            "fleet-tenants": IpSet("subnets of all tenants", subnet),
            "tenant_acme": IpSet(MARK, subnet),
        },
    )
    after = after_plan(actual, DesiredFirewall({}, None, {}, {}, exact=True))
    assert set(after.aliases) == {"tfront"}
    assert set(after.ip_sets) == {"fleet-tenants", "tenant_acme"}
    assert after.ip_sets["tenant_acme"].members == subnet
