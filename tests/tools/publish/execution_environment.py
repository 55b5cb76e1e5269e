# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the execution environment of `extensions/execution_environment` with the collection of
this clone instead of a released one: ``make execution-environment``. It needs podman or docker.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.tools.publish.artifact import build_artifact
from tests.tools.stage import REPO

SOURCE = REPO / "extensions" / "execution_environment"
HOME = REPO / "build" / "execution-environment"
TAG = "pve-fleet-ee:clone"


def main() -> int:
    """Build the image; return the exit status of ansible-builder."""
    runtime = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if runtime is None:
        print("The image cannot be built: install podman or docker.", file=sys.stderr)
        return 2
    definition = write_definition(HOME)
    command = ["build", "--file", str(definition), "--context", str(HOME / "context")]
    return builder(*command, "--container-runtime", runtime, "--tag", TAG, "--verbosity", "2")


def write_definition(home: Path) -> Path:
    """Write the definition of the image, which installs an artifact of this clone; return it."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    artifact = build_artifact(home)
    requirements = _read(SOURCE / "requirements.yml")
    requirements["collections"] = [
        {"name": f"artifacts/{artifact.name}", "type": "file"}
        if one["name"] == "pve.fleet"
        else one
        for one in requirements["collections"]
    ]
    _write(home / "requirements.yml", requirements)
    definition = _read(SOURCE / "execution-environment.yml")
    definition["additional_build_files"] = [{"src": str(artifact), "dest": "artifacts"}]
    return _write(home / "execution-environment.yml", definition)


def builder(*arguments: str) -> int:
    """Run ansible-builder; return its exit status."""
    tool = Path(sys.executable).parent / "ansible-builder"
    return subprocess.run([str(tool), *arguments], check=False).returncode


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _write(path: Path, data: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
