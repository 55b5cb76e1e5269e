"""Environments beside `.venv`, each built when it is missing or its pins changed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .stage import REPO


class NotBuilt(Exception):
    """An environment cannot be built here; the text says why."""


@dataclass(frozen=True)
class Requirements:
    """A file of requirements, and how pip installs it."""

    file: str
    options: tuple[str, ...] = ()


def build(home: Path, wanted: Sequence[Requirements]) -> Path:
    """Return the Python of the environment at `home`, built first if needed. Raises NotBuilt."""
    python, stamp = home / "bin" / "python", home / ".built"
    pins = b"".join((REPO / one.file).read_bytes() for one in wanted)
    mark = hashlib.sha256(pins + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == mark:
        return python
    print(f"Building {home.relative_to(REPO)}; this takes a few minutes", flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        for one in wanted:
            subprocess.run([*install, *one.options, "-r", one.file], cwd=REPO, check=True)
    except subprocess.CalledProcessError as error:
        raise NotBuilt(f"it cannot be built (exit status {error.returncode})") from None
    stamp.write_text(mark, encoding="utf-8")
    return python
