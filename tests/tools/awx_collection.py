# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetches the collection awx.awx for tests. The collection pve.fleet does not depend on it.

It is part of the PyPI package `ansible`, whose wheel is downloaded once (54 MB) and checked against
its hash. Only awx.awx is kept, in `.cache`. ``python -m tests.tools.awx_collection`` fetches it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "ansible==12.3.0"  # 14.x does not contain awx.awx any more
HASH = "sha256:cd156f82fa87f7a899212b0efa9f7ca3a24d609212de9f78428a572eb01e5414"
VERSION = "24.6.1"
HOME = Path(__file__).resolve().parents[2] / ".cache" / f"awx.awx-{VERSION}"
_WANTED = "ansible_collections/awx/awx/"


class Unavailable(Exception):
    """The package index cannot be reached, or does not have the package."""


def fetch(home: Path = HOME) -> Path:
    """Return the directory to add to ANSIBLE_COLLECTIONS_PATH. Raises Unavailable."""
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        wheel = _download(Path(scratch))
        new = Path(scratch) / "new"
        extract(wheel, new)
        try:
            os.rename(new, home)
        except OSError:
            if not home.is_dir():  # another process was first
                raise
    return home


def extract(wheel: Path, directory: Path) -> None:
    """Unpack awx.awx out of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(_WANTED)]
        archive.extractall(directory, names)
    if not (directory / _WANTED / "plugins").is_dir():
        raise Unavailable(f"{wheel.name} does not contain awx.awx")


def _download(directory: Path) -> Path:
    requirement = directory / "requirement.txt"
    requirement.write_text(f"{PACKAGE} --hash={HASH}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--ignore-requires-python"]
    command += ["--dest", str(directory), "--requirement", str(requirement)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(directory.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        cause = done.stderr.strip().splitlines() or ["pip did not say why"]
        raise Unavailable(f"{PACKAGE} cannot be downloaded: {cause[-1]}")
    return wheels[0]


def main() -> int:
    try:
        print(fetch())
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if "--clean" in sys.argv[1:]:
        shutil.rmtree(HOME, ignore_errors=True)
    sys.exit(main())
