# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report and drift show a tenant over three sites as one: its use, its quotas, and what exceeds
them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
from tests.labs.sites import SITES, Labs, sites_of
from tests.modules.module_runner import run_module
from tests.modules.report_lab import risks, validated
from tests.modules.test_drift_info import VALIDATOR as DRIFT
from tests.modules.test_total_quota import guest, run

PRICES = {"core": "1.50"}


def reported(labs: Labs, dark: str = "", **more: Any) -> dict[str, Any]:
    """Return the report about three guests of acme; the site `dark` does not answer."""
    vms = [guest(name, site) for name, site in zip("abc", SITES, strict=True)]
    assert not run(labs, *vms, tenant_settings={}).get("failed")
    acme = {"sites": list(SITES), "quota": {"vms": 2}, "site_quotas": {"paris": {"vms": 0}}}
    given = {"sites": sites_of(labs, dark), "tenants": {"acme": acme}, "prices": PRICES}
    result = run_module("report_info", {**given, "retries": 1, **more})
    report: dict[str, Any] = validated(result)["report"]
    return report


def cards(report: dict[str, Any]) -> list[str]:
    """Return the text of each card of a tenant on the page."""
    page = page_of(report, "Fleet")
    found = re.findall(r'<article class="card" id="tenant-.*?</article>', page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", card).split()) for card in found]


def test_the_report_shows_a_tenant_over_sites_as_one(labs: Labs) -> None:
    report = reported(labs)
    (total,) = report["totals"]
    assert (total["tenant"], total["sites"], total["vms"]) == ("acme", list(SITES), 3)
    assert (total["cores"], total["memory"]) == (6, 768 << 20)
    assert total["quotas"] == [{"kind": "vms", "used": 3, "limit": 2, "exceeded": True}]
    assert total["reason"] is None
    assert [(row["site"], row["vms"]) for row in report["tenants"]] == [(one, 1) for one in SITES]
    assert risks(report)["quota"] == [
        "acme: vms 3 of 2 over the sites berlin, munich, paris",
        "acme: vms 1 of 0",
    ]
    (card,) = cards(report)
    assert card.startswith("acme over berlin, munich, paris VMs 3 Cores 6 Memory 768 MiB")
    assert "Month 9.00" in card
    assert "Quota over its sites vms" in card
    assert "3 of 2" in card
    assert "berlin 1 2 256 MiB 0 B munich 1 2 256 MiB 0 B paris 1 of 0 2 256 MiB 0 B" in card
    page = page_of(report, "Fleet")
    assert page.count('<a href="#tenant-0">acme: vms') == 2


def test_the_report_about_a_dark_site_has_the_use_that_is_known(labs: Labs) -> None:
    """Two known guests do not exceed a quota of two, and the third is unknown."""
    report = reported(labs, "munich")
    (total,) = report["totals"]
    assert total["vms"] == 2
    assert total["quotas"] == [{"kind": "vms", "used": 2, "limit": 2, "exceeded": None}]
    assert total["reason"].startswith("site munich: ")
    (card,) = cards(report)
    assert "at least 2 of 2" in card
    assert "Incomplete: site munich: " in card
    assert "munich Unknown: " in card


def test_a_report_about_one_site_names_the_others(labs: Labs) -> None:
    """A job for each site has the use at its own site only."""
    report = reported(labs, of_sites=["berlin"])
    (total,) = report["totals"]
    assert (total["vms"], total["quotas"][0]["exceeded"]) == (1, None)
    missing = "site munich is not in this report; site paris is not in this report"
    assert total["reason"] == missing
    assert "quota" not in risks(report)


def compared(labs: Labs, dark: str = "", **quota: Any) -> dict[str, Any]:
    """Return the drift of an estate that has no guest of the tenant at paris, but paris has one."""
    vms = [guest(name, site) for name, site in zip("abc", SITES, strict=True)]
    assert not run(labs, *vms, tenant_settings={}).get("failed")
    settings = {"acme": {"sites": list(SITES), "quota": quota}}
    given = {"sites": sites_of(labs, dark), "tenant_settings": settings, "retries": 1}
    result = run_module("drift_info", {**given, "vms": vms[:2]})
    DRIFT.validate(result["drift"])
    return result


def test_drift_has_the_quota_over_sites_once(labs: Labs) -> None:
    """Also if a guest of the use is not in the estate."""
    result = compared(labs, vms=2, memory="1G")
    head = {"tenant": "acme", "site": "", "sites": list(SITES)}
    assert result["drift"]["quotas"] == [
        {**head, "kind": "vms", "used": 3, "limit": 2, "exceeded": True},
        {**head, "kind": "memory", "used": 768 << 20, "limit": 1 << 30, "exceeded": False},
    ]
    text = "quota of acme: vms 3 of 2 over the sites berlin, munich, paris, exceeded"
    assert text in result["report"]


@pytest.mark.parametrize(("limit", "shown"), [(2, []), (1, [(2, 1, True)])])
def test_drift_does_not_guess_the_use_of_a_dark_site(
    labs: Labs, limit: int, shown: list[tuple[int, int, bool]]
) -> None:
    quotas = compared(labs, "munich", vms=limit)["drift"]["quotas"]
    assert [(row["used"], row["limit"], row["exceeded"]) for row in quotas] == shown
