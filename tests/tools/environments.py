"""Environments of Python packages: `.venv`, which `make` fills, and those beside it.

``python -m tests.tools.environments PIP_ARGUMENT...`` installs packages beside the Python that runs
it, and shows the progress.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .stage import REPO

# The seconds between two lines that show what pip does.
_PACE = 3
_STEPS = (
    "Collecting",
    "Downloading",
    "Processing",
    "Building",
    "Installing",
    "Requirement",
    "WARNING: Retrying",
)


class NotBuilt(Exception):
    """An environment cannot be built here; the text says why, and names the next step."""


@dataclass(frozen=True)
class Requirements:
    """A file of requirements, and how pip installs it."""

    file: str
    options: tuple[str, ...] = ()


def build(home: Path, wanted: Sequence[Requirements], base: str = sys.executable) -> Path:
    """Return the Python of the environment at `home`, built first from the Python `base` if needed.

    Raises NotBuilt.
    """
    python, stamp = home / "bin" / "python", home / ".built"
    mark = hashlib.sha256(repr([base, sys.version, *map(_pins, wanted)]).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == mark:
        return python
    print(f"Building {home.relative_to(REPO)}; this takes a few minutes", flush=True)
    try:
        subprocess.run([base, "-m", "venv", "--clear", str(home)], check=True)
    except subprocess.CalledProcessError as error:
        raise NotBuilt(f"{base} cannot create it (exit status {error.returncode})") from None
    for one in wanted:
        install(python, [*one.options, "-r", one.file])
    stamp.write_text(mark, encoding="utf-8")
    return python


def _pins(wanted: Requirements) -> str:
    """Return the options and the text of a file of requirements with those that it includes."""
    file = REPO / wanted.file
    text = file.read_text(encoding="utf-8")
    included = re.findall(r"^-r (\S+)$", text, re.MULTILINE)
    others = [(file.parent / name).read_text(encoding="utf-8") for name in included]
    return "\n".join([*wanted.options, text, *others])


def install(python: str | Path, arguments: Sequence[str]) -> None:
    """Let pip install packages, with a line of progress every few seconds. Raises NotBuilt."""
    log = REPO / "build" / "pip.log"
    log.parent.mkdir(exist_ok=True)
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        pip = subprocess.Popen(
            [*command, "--progress-bar=off", *arguments], cwd=REPO, stdout=output, stderr=output
        )
        while pip.poll() is None:
            try:
                pip.wait(_PACE)
            except subprocess.TimeoutExpired:
                print(f"  {time.monotonic() - began:3.0f} s: {_progress(_lines(log))}", flush=True)
    if pip.returncode:
        raise NotBuilt(_cause(_lines(log)) + f". The output of pip is in {log}")


def _lines(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _progress(lines: list[str]) -> str:
    """Return the step that pip is at, in a short line."""
    steps = [line for line in lines if line.startswith(_STEPS)]
    return (steps or ["pip starts"])[-1][:70]


def _cause(lines: list[str]) -> str:
    """Return why pip failed, and the next step."""
    if any("connection broken" in line for line in lines):
        return (
            "pip cannot reach the package index. Check the network and the settings of pip (proxy,"
            " index-url), and run the command again"
        )
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines
    return (errors or ["pip did not start"])[0].removeprefix("ERROR: ")


if __name__ == "__main__":
    try:
        install(sys.executable, sys.argv[1:])
    except NotBuilt as error:
        sys.exit(f"The packages cannot be installed: {error}")
