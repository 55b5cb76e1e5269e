# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tenant over sites in the report and in drift."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._operation.drift.tenants import (
    read_networked,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.model import ReportTenant
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.tenants import (
    read_report_tenants,
    read_totals,
)

ACME = {
    "sites": ["berlin", "munich"],
    "quota": {"vms": 10},
    "site_quotas": {"munich": {"vms": 4}},
    "networks": {"front": {"zone": "teams", "tag_range": [100, 199], "subnet": "10.1.0.0/24"}},
}


def test_the_report_compares_a_site_with_the_quota_of_the_site() -> None:
    """The quota over sites would hide that the sum exceeds it."""
    given = {"Acme": ACME, "globex": {"site": "berlin", "quota": {"vms": 2}}}
    assert read_report_tenants(given, "tenant_") == [
        ReportTenant("acme", "berlin", {}),
        ReportTenant("acme", "munich", {"vms": 4}),
        ReportTenant("globex", "berlin", {"vms": 2}),
    ]
    assert read_totals(given, "tenant_") == {"acme": {"vms": 10}}


def test_networks_are_compared_at_each_site() -> None:
    found = read_networked({"tenant_settings": {"acme": ACME}}, None)
    names = {site: [one.name for one in tenants] for site, tenants in found.items()}
    assert names == {"berlin": ["acme"], "munich": ["acme"]}
