# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the artifact of the collection, with its checksum and its software bill of materials in the
JSON of CycloneDX: the collection, and the packages that it needs.

``python -m tests.tools.publish.artifact DIRECTORY``, or ``make sbom``.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

from tests.tools.stage import REPO

REQUIREMENTS = REPO / "meta" / "ee-requirements.txt"


def build_artifact(target: Path) -> Path:
    """Build the artifact in a directory; return it."""
    tool = Path(sys.executable).parent / "ansible-galaxy"
    command = [str(tool), "collection", "build", "--force", "--output-path", str(target)]
    built = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout
    return target / Path(built.split()[-1]).name


def write_sbom(artifact: Path) -> Path:
    """Write the bill of materials beside an artifact; return its path."""
    bom = Bom()
    root = _collection(artifact)
    packages = [_package(line) for line in _requirements()]
    bom.metadata.component = root
    bom.components.update(packages)
    bom.register_dependency(root, packages)
    target = artifact.with_name(f"{artifact.name}.cdx.json")
    target.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")
    return target


def write_checksum(artifact: Path) -> Path:
    """Write the checksum beside an artifact, in the form of sha256sum; return its path."""
    target = artifact.with_name(f"{artifact.name}.sha256")
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    target.write_text(f"{digest}  {artifact.name}\n", encoding="utf-8")
    return target


def _collection(artifact: Path) -> Component:
    with tarfile.open(artifact) as archive:
        manifest = archive.extractfile("MANIFEST.json")
        assert manifest is not None, f"{artifact.name} is not a collection"
        described = json.load(manifest)["collection_info"]
    name = f"{described['namespace']}.{described['name']}"
    digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
    return Component(
        name=name,
        version=described["version"],
        type=ComponentType.LIBRARY,
        bom_ref=name,
        licenses=[LicenseFactory().make_from_string(text) for text in described["license"]],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )


def _package(requirement: Requirement) -> Component:
    """Return a package without a version: the environment of the user chooses it."""
    return Component(
        name=requirement.name,
        type=ComponentType.LIBRARY,
        bom_ref=requirement.name,
        description=f"{requirement.name} {requirement.specifier}",
        purl=PackageURL("pypi", None, requirement.name.lower()),
    )


def _requirements() -> list[Requirement]:
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


if __name__ == "__main__":
    built = build_artifact(Path(sys.argv[1]).resolve())
    print(built, write_checksum(built), write_sbom(built), sep="\n")
