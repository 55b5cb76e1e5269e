# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a release: version, changelog, guides, commit, tag, artifact, checksum and bill of materials.
It publishes nothing.

``python -m tests.tools.release 1.0.0``, or ``make release VERSION=1.0.0``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from packaging.version import Version

from tests.tools.docs_site.guides import write_guides
from tests.tools.publish.artifact import build_artifact, write_checksum, write_sbom
from tests.tools.stage import COPY, REPO, stage, tool_environment

# https://semver.org, without build metadata, which Galaxy does not compare.
SEMANTIC = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
# The places of the version's number, with the text around it.
PLACES = {
    "galaxy.yml": "version: {}\n",
    "README.md": "pve-fleet-{}.tar.gz",
    "extensions/execution_environment/requirements.yml": "- name: pve.fleet\n    version: {}\n",
    "playbooks/awx/project/collections/requirements.yml": "- name: pve.fleet\n    version: {}\n",
}
# Files that antsibull-changelog writes.
CHANGELOGS = ("changelogs", "CHANGELOG.md", "CHANGELOG.rst")
# Its guides are generated at a release.
DOCSITE = "docs/docsite"

NEXT_STEPS = """\
Release {version} is committed and tagged in this clone. Nothing was published.

  artifact   {artifact}
  checksum   {artifact}.sha256
  contents   {artifact}.cdx.json

Next steps, by a maintainer:

  1. Look at it:        git show --stat {version}
  2. Sign it:           tar -xzf {artifact} -O MANIFEST.json > {directory}/MANIFEST.json
                        gpg --armor --detach-sign {directory}/MANIFEST.json
                        gpg --armor --detach-sign {artifact}
  3. Publish the tag:   git push origin main {version}
                        The workflow "Release" builds the same artifact, attests where it came from,
                        and drafts a release with it.
  4. Attach both signatures to the draft, and publish it.
  5. Publish it:        ansible-galaxy collection publish {artifact}

To take it back before step 3: git tag -d {version} && git reset --hard HEAD^
"""


class Refused(Exception):
    """The release is not possible; the text is the cause and the next step."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the release; return the exit status."""
    parser = argparse.ArgumentParser(prog="make release VERSION=", description=__doc__)
    parser.add_argument("version", help="a semantic version, such as 1.0.0")
    version = parser.parse_args(words).version
    try:
        check(version)
    except Refused as refused:
        print(f"Release {version} was not made: {refused}", file=sys.stderr)
        return 2
    write_version(version)
    write_changelog(version)
    write_guides(REPO)
    commit_and_tag(version)
    artifact = build()
    shown = artifact.relative_to(REPO)
    print(NEXT_STEPS.format(version=version, artifact=shown, directory=shown.parent))
    return 0


def check(version: str) -> None:
    """Raise Refused if this version cannot be released from this clone."""
    if not SEMANTIC.fullmatch(version):
        raise Refused("it is not a semantic version, such as 1.0.0 or 1.1.0-beta.1")
    if _git("status", "--porcelain"):
        raise Refused("there are changes that are not committed. Commit or remove them")
    if _git("tag", "--list", version):
        raise Refused("the tag exists. Choose the next version")
    released = _released()
    newest = max(released, default=None, key=Version)
    if newest is not None and Version(version) <= Version(newest):
        raise Refused(f"{newest} was released. Choose a newer version")
    if not any((REPO / "changelogs" / "fragments").glob("*.yml")):
        raise Refused("no changelog fragment says what has changed")


def write_version(version: str) -> None:
    """Write the version in all its places."""
    old = current_version()
    for name, around in PLACES.items():
        path = REPO / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(around.format(old), around.format(version)), "utf-8")


def current_version() -> str:
    """Return the version in galaxy.yml."""
    return str(yaml.safe_load((REPO / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def write_changelog(version: str) -> None:
    """Create the changelog from the fragments, in the copy in which Ansible finds the
    collection.
    """
    stage()
    tool = Path(sys.executable).parent / "antsibull-changelog"
    command = [str(tool), "release", "--version", version]
    subprocess.run(command, cwd=COPY, env=tool_environment(), check=True)
    shutil.rmtree(REPO / "changelogs" / "fragments")
    for name in CHANGELOGS:
        _copy_back(COPY / name, REPO / name)
    (REPO / "changelogs" / "fragments").mkdir(exist_ok=True)
    (REPO / "changelogs" / "fragments" / ".keep").touch()


def commit_and_tag(version: str) -> None:
    """Commit the written files, and tag the commit."""
    _git("add", "--", *PLACES, *CHANGELOGS, DOCSITE)
    _git("commit", "--quiet", "--message", f"Release {version}")
    _git("tag", "--annotate", "--message", f"pve.fleet {version}", version)


def build() -> Path:
    """Build the artifact, its checksum and its bill of materials; return the artifact."""
    target = REPO / "build" / "release"
    target.mkdir(parents=True, exist_ok=True)
    artifact = build_artifact(target)
    write_checksum(artifact)
    write_sbom(artifact)
    return artifact


def _released() -> list[str]:
    """Return the versions in the changelog."""
    text = (REPO / "changelogs" / "changelog.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)["releases"])


def _copy_back(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns(".plugin-cache.yaml")
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        return
    shutil.copy2(source, target)


def _git(*words: str) -> str:
    """Return the output of git."""
    found = subprocess.run(["git", *words], cwd=REPO, check=True, capture_output=True, text=True)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
