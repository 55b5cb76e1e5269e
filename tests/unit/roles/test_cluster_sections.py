# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Role cluster and the playbook for drift know each section of a cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file.sections import (
    SECTIONS,
)

REPO = Path(__file__).parents[3]
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
