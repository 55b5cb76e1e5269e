# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a copy of the working tree in the directory that Ansible's tools require:
``build/ansible_collections/pve/fleet``.

ansible-test refuses a linked directory, and it asks git for the files, so the copy is a git
repository of its own. Only changed files are copied, and files of the tools (caches, virtual
environments) stay in the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
COLLECTIONS = REPO / "build"
COPY = COLLECTIONS / "ansible_collections" / "pve" / "fleet"

# Left by tools inside the copy; they make the next run fast.
_KEPT = {".git", ".ansible", ".mypy_cache", ".ruff_cache", "tests/output"}


def source_files(repo: Path = REPO) -> list[str]:
    """Return the files of the working tree, relative: tracked files and new files that are not
    ignored.
    """
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repo,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    names = sorted(set(os.fsdecode(listing).split("\0")) - {""})
    return [name for name in names if os.path.lexists(repo / name)]


def _same(source: Path, target: Path) -> bool:
    if source.is_symlink() or target.is_symlink() or not target.is_file():
        return False
    old, new = target.stat(), source.stat()
    return (old.st_size, old.st_mtime_ns, old.st_mode) == (
        new.st_size,
        new.st_mtime_ns,
        new.st_mode,
    )


def _present(root: Path) -> Iterator[str]:
    """Yield the files below root that a former run may have put there."""
    for directory, subdirectories, files in os.walk(root):
        relative = Path(directory).relative_to(root)
        subdirectories[:] = [
            name for name in subdirectories if (relative / name).as_posix() not in _KEPT
        ]
        for name in files + [name for name in subdirectories if Path(directory, name).is_symlink()]:
            yield (relative / name).as_posix()


def _remove_stale(root: Path, wanted: Iterable[str]) -> None:
    for name in set(_present(root)) - set(wanted):
        (root / name).unlink()
        for parent in (root / name).parents:
            if parent == root or any(parent.iterdir()):
                break
            parent.rmdir()


def stage(repo: Path = REPO, copy: Path = COPY) -> Path:
    """Bring the copy up to date and return its path."""
    copy.mkdir(parents=True, exist_ok=True)
    wanted = source_files(repo)
    _remove_stale(copy, wanted)
    for name in wanted:
        source, target = repo / name, copy / name
        if not _same(source, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    if not (copy / ".git").is_dir():
        subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    return copy


def tool_environment(copy: Path = COPY, python: str = sys.executable) -> dict[str, str]:
    """Return the environment for tools of Ansible: those beside a Python come first, and they find
    the collection in its copy.
    """
    paths = [str(Path(python).parent), os.environ.get("PATH", os.defpath)]
    places = {"PATH": os.pathsep.join(paths), "ANSIBLE_COLLECTIONS_PATH": str(copy.parents[2])}
    return {**os.environ, **places}


if __name__ == "__main__":
    try:
        stage()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"cannot copy the working tree (a git checkout is needed): {error}")
