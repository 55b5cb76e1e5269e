# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall that a task leaves."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.isolation import (
    OPTIONS,
    goal_of,
    without_isolation,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.model import (
    DesiredFirewall,
    Firewall,
    IpSet,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.plan import after_plan
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.rules.model import Rule

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


SSH, GROUP = Rule("in", "ACCEPT", proto="tcp", dport="22"), Rule("group", "tenant_acme")


def test_the_group_that_isolates_a_guest_stays_in_front() -> None:
    desired = DesiredFirewall({}, (SSH,), kept_groups=frozenset(("tenant_acme",)))
    assert after_plan(Firewall(rules=(GROUP,)), desired).rules == (GROUP, SSH)
    assert after_plan(Firewall(rules=(SSH, GROUP)), desired).rules == (SSH,)
    listed = DesiredFirewall({}, (SSH, GROUP), kept_groups=desired.kept_groups)
    assert after_plan(Firewall(rules=(GROUP,)), listed).rules == (SSH, GROUP)


def test_a_firewall_without_its_isolation_has_the_rest() -> None:
    own = Firewall({"dhcp": "1"}, (SSH,), {}, {"ipfilter-net1": IpSet("by hand")})
    goal = goal_of(own, "tenant_acme", {"net0": ("10.2.0.5",)})
    isolated = after_plan(own, goal)
    assert isolated.options == {"dhcp": "1", **OPTIONS}
    left = without_isolation(isolated, ("tenant_acme",))
    assert (left.options, left.rules) == (own.options, own.rules)
    assert "ipfilter-net0" not in left.ip_sets
    assert without_isolation(isolated, ("tenant_globex",)) == isolated
