# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tests and sanity on every supported ansible-core whose Python exists here.

``python -m tests.tools.matrix [WORD...]``: words choose pairs, for example ``2.16`` or ``py3.12``,
and parts: ``sanity``, or paths of tests. ``devel`` and ``milestone`` are branches of ansible-core.
Each pair gets an environment of its own under ``.venvs``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.tools.environments import NotBuilt, Requirements, build
from tests.tools.stage import REPO

SANITY = "sanity"
SUITES = ("tests/unit", "tests/modules", "tests/plays")


@dataclass(frozen=True)
class Pair:
    """One ansible-core release on one Python."""

    core: str
    python: str

    @property
    def name(self) -> str:
        return f"core{self.core}-py{self.python}"

    @property
    def requirement(self) -> str:
        """The argument of pip; a branch is installed from its sources."""
        if self not in UPCOMING:
            return f"ansible-core=={self.core}"
        return f"{SOURCES}/{self.core}.tar.gz"


# AWX and Automation Platform still run 2.16 to 2.18. Each release is tried once, and with them each
# Python that one of them supports; the tests here are run with 2.19 on 3.11.
PAIRS = (
    Pair("2.16.19", "3.10"),
    Pair("2.17.14", "3.10"),
    Pair("2.18.19", "3.11"),
    Pair("2.19.14", "3.13"),
    Pair("2.20.10", "3.12"),
    Pair("2.21.5", "3.13"),
    Pair("2.21.5", "3.14"),
)
# What the next releases will be; run only if a word names them.
UPCOMING = (Pair("devel", "3.14"), Pair("milestone", "3.14"))
SOURCES = "https://github.com/ansible/ansible/archive/refs/heads"


def find_python(version: str) -> str | None:
    """Return an interpreter of this version that can build environments.

    Pyenv's are found without being chosen.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    candidates = [f"python{version}", *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    check = f"import ensurepip, sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for candidate in candidates:
        try:
            found = (
                subprocess.run(
                    [candidate, "-c", check], capture_output=True, check=False
                ).returncode
                == 0
            )
        except OSError:
            continue
        if found:
            return candidate
    return None


def build_environment(pair: Pair, python: str) -> Path:
    """Return the interpreter of the pair's environment, built if needed. Raises NotBuilt."""
    wanted = (
        Requirements("tests/requirements-test.txt", (pair.requirement,)),
        # Only data: its dependencies and the Pythons for its code do not matter.
        Requirements("tests/requirements-data.txt", ("--no-deps", "--ignore-requires-python")),
    )
    home = REPO / ".venvs" / pair.name
    if pair in UPCOMING:  # a branch has moved on
        (home / ".built").unlink(missing_ok=True)
    return build(home, wanted, python)


def run_pair(pair: Pair, chosen: list[str]) -> str:
    """Run the parts, or all parts if none is chosen, on this pair; return the outcome in a word."""
    python = find_python(pair.python)
    if python is None:
        return f"skipped: no Python {pair.python} here"
    print(f"\n===== {pair.name} =====", flush=True)
    try:
        interpreter = build_environment(pair, python)
    except NotBuilt as error:
        return f"FAILED: its environment cannot be built: {error}"
    chosen = chosen or [SANITY, *SUITES]
    suites = [word for word in chosen if word != SANITY]
    parts = {}
    if suites:
        workers = os.environ.get("JOBS", "2")
        options = ["-q", "-n", workers, "--dist", "worksteal", "-m", "not long"]
        parts["pytest"] = ["pytest", *options, *suites]
    if SANITY in chosen:
        parts[SANITY] = ["tests.tools.ansible_test", "sanity"]
    failed = [
        name
        for name, words in parts.items()
        if subprocess.run([str(interpreter), "-m", *words], cwd=REPO, check=False).returncode
    ]
    return f"FAILED: {' and '.join(failed)}" if failed else "passed"


def chosen_pairs(words: list[str]) -> list[Pair]:
    """Return the pairs whose names contain all words."""
    known = (*PAIRS, *(pair for pair in UPCOMING if pair.core in words))
    return [pair for pair in known if all(word in pair.name for word in words)]


def main(words: list[str]) -> int:
    parts = [word for word in words if word == SANITY or word.startswith("tests/")]
    words = [word for word in words if word not in parts]
    pairs = chosen_pairs(words)
    if not pairs:
        print(
            f"no pair matches {' '.join(words)}; there are: {', '.join(p.name for p in PAIRS)}",
            file=sys.stderr,
        )
        return 2
    outcomes = {pair.name: run_pair(pair, parts) for pair in pairs}
    print("\n===== matrix =====")
    for name, outcome in outcomes.items():
        print(f"{name:24} {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
