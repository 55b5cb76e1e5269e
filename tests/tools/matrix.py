# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs tests and sanity on every supported ansible-core whose Python exists here.

``python -m tests.tools.matrix [WORD...]``: words choose pairs, for example ``2.16`` or ``py3.12``.
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

SUITES = ("tests/unit", "tests/modules", "tests/plays")


@dataclass(frozen=True)
class Pair:
    """One ansible-core release on one Python."""

    core: str
    python: str

    @property
    def name(self) -> str:
        return f"core{self.core}-py{self.python}"


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
        Requirements("tests/requirements-test.txt", (f"ansible-core=={pair.core}",)),
        # Only data: its dependencies and the Pythons for its code do not matter.
        Requirements("tests/requirements-data.txt", ("--no-deps", "--ignore-requires-python")),
    )
    return build(REPO / ".venvs" / pair.name, wanted, python)


def run_pair(pair: Pair) -> str:
    """Run the tests on this pair and return the outcome in a word."""
    python = find_python(pair.python)
    if python is None:
        return f"skipped: no Python {pair.python} here"
    print(f"\n===== {pair.name} =====", flush=True)
    try:
        interpreter = build_environment(pair, python)
    except NotBuilt as error:
        return f"FAILED: its environment cannot be built: {error}"
    suites = [suite for suite in SUITES if (REPO / suite).is_dir()]
    parts = {
        "pytest": [
            "pytest",
            "-q",
            *("-n", os.environ.get("JOBS", "2")),
            *("--dist", "worksteal"),
            *("-m", "not long"),
            *suites,
        ],
        "sanity": ["tests.tools.ansible_test", "sanity"],
    }
    failed = [
        name
        for name, words in parts.items()
        if subprocess.run([str(interpreter), "-m", *words], cwd=REPO, check=False).returncode
    ]
    return f"FAILED: {' and '.join(failed)}" if failed else "passed"


def main(words: list[str]) -> int:
    pairs = [pair for pair in PAIRS if all(word in pair.name for word in words)]
    if not pairs:
        print(
            f"no pair matches {' '.join(words)}; there are: {', '.join(p.name for p in PAIRS)}",
            file=sys.stderr,
        )
        return 2
    outcomes = {pair.name: run_pair(pair) for pair in pairs}
    print("\n===== matrix =====")
    for name, outcome in outcomes.items():
        print(f"{name:24} {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
