# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What continuous integration, pre-commit and the development container call exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.tools.matrix import PAIRS


def targets(repo: Path) -> set[str]:
    """Return the targets of the Makefile."""
    text = (repo / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def called(command: str) -> list[str]:
    """Return the target of each call of make in a command."""
    return re.findall(r"\bmake ([a-z-]+)", command)


def test_each_target_is_made_in_one_way(repo: Path) -> None:
    text = (repo / "Makefile").read_text(encoding="utf-8")
    found = re.findall(r"^([a-z][a-z-]*):.*##", text, re.MULTILINE)
    assert sorted(found) == sorted(set(found))
    linters = re.search(r"^LINTERS := (.*)$", text, re.MULTILINE)
    assert linters is not None
    assert set(linters[1].split()) <= set(found)


def workflow(repo: Path) -> dict[str, Any]:
    text = (repo / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_each_job_calls_targets_that_exist(repo: Path) -> None:
    existing = targets(repo)
    for name, job in workflow(repo)["jobs"].items():
        found = [target for step in job["steps"] for target in called(step.get("run", ""))]
        assert found, f"{name} calls no target"
        assert set(found) <= existing, name


def test_the_matrix_has_each_ansible_core_that_is_supported(repo: Path) -> None:
    rows = workflow(repo)["jobs"]["matrix"]["strategy"]["matrix"]["include"]
    known = {(pair.core.rpartition(".")[0], pair.python) for pair in PAIRS}
    assert {(row["core"], row["python"]) for row in rows} <= known
    assert {row["core"] for row in rows} == {core for core, _python in known}


def test_pre_commit_and_the_container_call_targets_that_exist(repo: Path) -> None:
    hooks = yaml.safe_load((repo / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for source in hooks["repos"] for hook in source["hooks"]]
    container = json.loads((repo / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    entries.append(container["postCreateCommand"])
    found = [target for entry in entries for target in called(entry)]
    assert len(found) == len(entries)
    assert set(found) <= targets(repo)


def test_the_addresses_of_the_project_are_stated(repo: Path) -> None:
    galaxy = yaml.safe_load((repo / "galaxy.yml").read_text(encoding="utf-8"))
    for key in ("repository", "documentation", "homepage", "issues"):
        assert galaxy[key].startswith(galaxy["repository"]), key
    assert galaxy["issues"] in (repo / "README.md").read_text(encoding="utf-8")
