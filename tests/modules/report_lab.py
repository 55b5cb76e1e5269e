# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the report share: a report that must be as its schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check
from tests.modules.test_drift_info import VALIDATOR as DRIFT

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "report.schema.json").read_text("utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
DAY = 86400


def gathered(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return what module report_info returns, which must have cost no write."""
    return validated(check(lab, "report_info", **options))


def gathered_at(sites: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    """Return the same about several sites."""
    names = [site["name"] for site in sites]
    result = run_module("report_info", {"sites": sites, "of_sites": names, **options})
    assert not result.get("failed"), result
    return validated(result)


def validated(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose report is as its schema says."""
    VALIDATOR.validate(result["report"])
    if result["report"]["drift"] is not None:
        DRIFT.validate(result["report"]["drift"])
    assert result["changed"] is False
    return result


def vms(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {vm["name"]: vm for vm in report["vms"]}


def risks(report: dict[str, Any]) -> dict[str, list[str]]:
    """Return the texts of the items by kind of risk."""
    return {risk["kind"]: [item["text"] for item in risk["cases"]] for risk in report["attention"]}


def tenants(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {tenant["tenant"]: tenant for tenant in report["tenants"]}


def add_backup(lab: Lab, vm: dict[str, Any], age: float) -> None:
    """Put a backup of a VM on storage local of its node, `age` seconds old."""
    name = f"local:backup/vzdump-qemu-{vm['vmid']}-2026_01_02-03_04_{int(age) % 60:02}.vma.zst"
    made = int(lab.client.clock.time() - age)
    lab.simulator.steer(
        f"/volumes/{vm['node']}", {"volid": name, "new": True, "size": 1 << 30, "ctime": made}
    )
