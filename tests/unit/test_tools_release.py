# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release is made in a clone, and what must not be released is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from tests import needs
from tests.tools.release import PLACES, SEMANTIC, current_version
from tests.tools.stage import source_files

ADDED = re.compile(r"^\s*version_added: [\"']?([^\s\"']+)", re.MULTILINE)


def git(where: Path, *words: str) -> str:
    author = ("-c", "user.name=A Maintainer", "-c", "user.email=maintainer@example.com")
    command = ["git", *author, *words]
    found = subprocess.run(command, cwd=where, check=True, capture_output=True, text=True)
    return found.stdout.strip()


@pytest.fixture
def clone(repo: Path, tmp_path: Path) -> Path:
    """A repository with the files of the working tree, committed."""
    where = tmp_path / "clone"
    for name in source_files(repo):
        target = where / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((repo / name).read_bytes())
    git(where, "init", "--quiet", "--initial-branch", "main")
    git(where, "config", "user.name", "A Maintainer")
    git(where, "config", "user.email", "maintainer@example.com")
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "--message", "Everything")
    return where


def release(where: Path, version: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "tests.tools.release", version]
    return subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True, check=False
    )


@needs.tool("antsibull-changelog")
@pytest.mark.long
def test_a_release_has_version_changelog_tag_artifact_and_checksum(clone: Path) -> None:
    done = release(clone, "1.0.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(clone, "tag", "--list") == "1.0.0"
    assert git(clone, "log", "-1", "--format=%s") == "Release 1.0.0"
    assert not git(clone, "status", "--porcelain")
    assert yaml.safe_load((clone / "galaxy.yml").read_text("utf-8"))["version"] == "1.0.0"
    for name, around in PLACES.items():
        assert around.format("1.0.0") in (clone / name).read_text("utf-8"), name
    changes = yaml.safe_load((clone / "changelogs" / "changelog.yaml").read_text("utf-8"))
    assert list(changes["releases"]) == ["1.0.0"]
    assert not list((clone / "changelogs" / "fragments").glob("*.yml"))
    assert "## v1\\.0\\.0" in (clone / "CHANGELOG.md").read_text("utf-8")

    artifact = clone / "build" / "release" / "pve-fleet-1.0.0.tar.gz"
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    checksum = artifact.with_name(f"{artifact.name}.sha256").read_text("utf-8")
    assert checksum == f"{digest}  {artifact.name}\n"
    with tarfile.open(artifact) as archive:
        manifest = archive.extractfile("MANIFEST.json")
        assert manifest is not None
        assert json.load(manifest)["collection_info"]["version"] == "1.0.0"
        names = archive.getnames()
    assert {"CHANGELOG.md", "docs/docsite/links.yml", "docs/docsite/rst/tenants.rst"} <= {*names}
    contents = json.loads(artifact.with_name(f"{artifact.name}.cdx.json").read_text("utf-8"))
    assert contents["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert [part["name"] for part in contents["components"]] == ["PyYAML", "proxmoxer", "requests"]
    for step in ("gpg --armor", "git push origin main 1.0.0", "collection publish"):
        assert step in done.stdout

    again = release(clone, "1.0.0")
    assert (again.returncode, "the tag exists" in again.stderr) == (2, True)
    older = release(clone, "0.9.0")
    assert (older.returncode, "1.0.0 was released" in older.stderr) == (2, True)
    empty = release(clone, "1.0.1")
    assert (empty.returncode, "no changelog fragment" in empty.stderr) == (2, True)


def test_fragments_describe_changes_between_releases(repo: Path) -> None:
    """Software that was never released has no corrections and no deprecations."""
    changes = yaml.safe_load((repo / "changelogs" / "changelog.yaml").read_text("utf-8"))
    if changes["releases"]:
        return
    files = (repo / "changelogs" / "fragments").glob("*.yml")
    fragments = [yaml.safe_load(file.read_text("utf-8")) for file in files]
    sections = set[str]().union(*fragments)
    assert "release_summary" in sections
    assert sections <= {"release_summary", "major_changes", "minor_changes", "known_issues"}
    assert (
        sum(
            len(entries)
            for one in fragments
            for entries in one.values()
            if isinstance(entries, list)
        )
        <= 30
    )


def test_a_clone_with_changes_is_not_released(clone: Path) -> None:
    (clone / "README.md").write_text("changed", encoding="utf-8")
    refused = release(clone, "1.0.0")
    assert refused.returncode == 2
    assert "changes that are not committed" in refused.stderr
    assert not git(clone, "tag", "--list")


@pytest.mark.parametrize("version", ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0+build", ""])
def test_only_semantic_versions_are_releases(version: str) -> None:
    assert not SEMANTIC.fullmatch(version)


def test_the_version_stands_in_each_place(repo: Path) -> None:
    for name, around in PLACES.items():
        assert around.format(current_version()) in (repo / name).read_text("utf-8"), name


def test_everything_came_with_a_release_or_comes_with_the_next_one(repo: Path) -> None:
    """A number that was never released would send a reader to a changelog without an entry."""
    changes = yaml.safe_load((repo / "changelogs" / "changelog.yaml").read_text("utf-8"))
    versions = {*changes["releases"], current_version()}
    added = {
        (name, version)
        for name in source_files(repo)
        if name.startswith(("plugins/", "roles/", "extensions/"))
        for version in ADDED.findall((repo / name).read_text("utf-8"))
    }
    assert len(added) > 100
    assert [row for row in sorted(added) if row[1] not in versions] == []
