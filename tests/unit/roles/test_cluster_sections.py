# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each section of a cluster file is complete: in the role, the playbook, export and fault table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file import run_export
from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file.generated import (
    sections,
)
from tests.faults.scenarios import SCENARIOS
from tests.tools.declarations import load
from tests.tools.sections import sections_of

REPO = Path(__file__).parents[3]
SECTIONS = sections.SECTIONS
NAMES = [section.name for section in SECTIONS]


def read(name: str) -> Any:
    return yaml.safe_load((REPO / name).read_text(encoding="utf-8"))


def test_the_role_passes_each_section_on() -> None:
    tasks = read("roles/cluster/tasks/apply.yml")
    (options,) = [task["pve.fleet.cluster"] for task in tasks if "pve.fleet.cluster" in task]
    assert [name for name in options if name not in ("exact", "site")] == NAMES
    assert read("roles/cluster/vars/main.yml")["_cluster_names"] == NAMES


def test_the_playbook_for_drift_looks_for_each_section() -> None:
    assert read("playbooks/drift.yml")[0]["vars"]["_drift_names"] == NAMES


def test_an_export_reads_each_section() -> None:
    without_table = {one.name for one in SECTIONS if one.table is None} - {"options"}
    assert without_table == set(run_export._READERS)


def test_the_option_exact_accepts_the_sections_that_can_be_exact() -> None:
    options = load()["cluster"]["sections"]["cluster"]["options"]
    assert options["exact"]["choices"] == [one.name for one in SECTIONS if one.can_be_exact]


# The cluster of the table has neither the groups of Proxmox VE 8 nor guests on ZFS.
WITHOUT_SCENARIOS = {"ha_group", "replication"}


def test_each_section_has_scenarios_of_the_fault_table() -> None:
    tested = {scenario.module for scenario in SCENARIOS}
    missing = {one["module"] for one in sections_of(load())} - tested
    assert missing == WITHOUT_SCENARIOS
