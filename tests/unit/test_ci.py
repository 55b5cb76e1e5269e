# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What continuous integration, pre-commit and the development container call exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.tools.matrix import PAIRS, UPCOMING, chosen_pairs


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


def workflow(repo: Path, name: str = "ci") -> dict[str, Any]:
    text = (repo / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_each_job_calls_targets_that_exist(repo: Path) -> None:
    existing = targets(repo)
    for name, job in workflow(repo)["jobs"].items():
        found = [target for step in job["steps"] for target in called(step.get("run", ""))]
        assert found, f"{name} calls no target"
        assert set(found) <= existing, name


def test_a_release_is_drafted_after_ci_with_what_make_builds(repo: Path) -> None:
    jobs = workflow(repo, "release")["jobs"]
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    assert "workflow_call" in workflow(repo)["on"]
    assert jobs["draft"]["needs"] == "ci"
    found = [target for step in jobs["draft"]["steps"] for target in called(step.get("run", ""))]
    assert found
    assert set(found) <= targets(repo)


def test_the_matrix_has_each_ansible_core_that_is_supported(repo: Path) -> None:
    rows = workflow(repo)["jobs"]["matrix"]["strategy"]["matrix"]["include"]
    known = {(pair.core.rpartition(".")[0], pair.python) for pair in PAIRS}
    assert {(row["core"], row["python"]) for row in rows} <= known
    assert {row["core"] for row in rows} == {core for core, _python in known}


def parts(job: dict[str, Any]) -> list[str]:
    """Return the arguments of the parts of a job."""
    return [word for part in job["strategy"]["matrix"]["part"] for word in part.split()]


def files(repo: Path, words: list[str]) -> set[Path]:
    """Return the files of tests below directories, or of patterns."""
    found = {path for word in words for path in repo.glob(word)}
    return {
        file for path in found for file in (path.rglob("test_*.py") if path.is_dir() else (path,))
    }


def test_a_job_takes_twenty_minutes_at_most(repo: Path) -> None:
    for name, job in workflow(repo)["jobs"].items():
        assert job["timeout-minutes"] <= 20, name


def test_a_pull_request_runs_everything_but_branches_and_long_tests(repo: Path) -> None:
    jobs = workflow(repo)["jobs"]
    weekly = {name: job["if"] for name, job in jobs.items() if "if" in job}
    assert weekly == dict.fromkeys(("test-long", "upcoming"), "github.event_name == 'schedule'")
    found = jobs["upcoming"]["strategy"]["matrix"]["core"]
    assert found == [pair.core for pair in UPCOMING]
    assert workflow(repo)["on"]["schedule"]


def test_the_parts_of_a_job_have_each_test(repo: Path) -> None:
    jobs = workflow(repo)["jobs"]
    suites = ["tests/unit", "tests/modules", "tests/plays"]
    for name in ("matrix", "upcoming"):
        assert "sanity" in parts(jobs[name])
        assert files(repo, parts(jobs[name])) == files(repo, suites), name
    for name in ("test-slow", "test-long"):
        assert files(repo, parts(jobs[name])) == files(repo, [*suites, "tests/simulator_tests"])
    words = parts(jobs["test-long"])
    for word in words:
        if word.startswith("--ignore-glob="):
            ignored = word.partition("=")[2].strip("*")
            assert any(one.endswith(f"{ignored}.py") for one in words), f"no part runs {ignored}"


def test_the_words_of_a_job_choose_its_pair(repo: Path) -> None:
    rows = workflow(repo)["jobs"]["matrix"]["strategy"]["matrix"]
    assert sorted(rows["core"]) == sorted(row["core"] for row in rows["include"])
    for row in rows["include"]:
        assert len(chosen_pairs([row["core"], f"py{row['python']}"])) == 1, row
    assert [pair.core for pair in chosen_pairs(["devel"])] == ["devel"]
    assert not set(UPCOMING) & set(chosen_pairs(["py3.14"]))


def test_ci_run_ends_with_the_time_of_each_part(repo: Path, tmp_path: Path) -> None:
    """A stand-in for make runs each target."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(repo / ".ci" / "run", tmp_path / ".ci" / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "chromedriver").write_text("#!/bin/sh\n", encoding="utf-8")
    lines = r"1.50s call     a.py::test_b\n12.00s setup    a.py::test_c\n=== 2 passed in 14 s ==="
    (programs / "make").write_text(
        f"#!/bin/sh\necho \"$@\" >>targets\nprintf '{lines}\n'\n[ $1 != lint ]\n", encoding="utf-8"
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    done = subprocess.run(
        [tmp_path / ".ci" / "run"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    end = done.stdout.partition("===== minutes of each part =====")[2]
    calls = (tmp_path / "targets").read_text(encoding="utf-8").splitlines()
    made = ["-".join(word for word in call.split() if word[0] != "-") for call in calls]
    made = [name.partition("-ARGS=")[0] for name in made]
    assert re.findall(r"^ +\d+:\d\d  (\S+)$", end, re.MULTILINE) == made
    assert made[0] == "env"
    assert {*made} - {"fidelity-integration"} <= targets(repo)
    slowest = end.partition("===== slowest tests =====\n")[2].splitlines()
    assert slowest[0].startswith("12.00s setup")
    assert "failed: lint" in end


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
