# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tests.mutants --sample 200 --seed 1``: the share of small faults in
plugins/module_utils that the unit tests and the tests of modules detect.

cosmic-ray makes the mutants. A sample of them is drawn by the seed; each is met by the tests that
execute its line. One process imports and collects all tests, and each mutant is a fork of it whose
functions have other code. A mutant in what an import executes (a table, a default), and one that
survived, is met in a copy of the working tree, by a process that imports the copy. A mutant whose
tests hang is killed as well.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import results
from tests.bench.figures import Figure, Measured
from tests.mutants import live
from tests.mutants.sample import Mutant, sample
from tests.mutants.session import SECONDS, Session, in_forks
from tests.tools.stage import REPO, stage
from tests.workers import HOME_VARIABLE

HOME = REPO / "build" / "mutants"
SOURCES = "plugins/module_utils"
SUITES = ("tests/unit", "tests/modules")
# Of the text of a generated file, whose functions need not be executed.
ABOUT_TEXTS = ("tests/unit/test_declared_options.py", "tests/unit/test_schema.py")
# The longest a test may take; a mutant can make a loop endless.
PATIENCE = 300
PYTEST = ("-q", "-p", "no:cacheprovider", "-m", "not slow and not long", f"--timeout={PATIENCE}")


def tree(number: int) -> Path:
    """Return a copy of the working tree, with the recordings beside it if they are here."""
    home = HOME / str(number)
    home.mkdir(parents=True, exist_ok=True)
    shared = REPO.parent / "shared"
    if shared.is_dir() and not (home / "shared").exists():
        (home / "shared").symlink_to(shared)
    return stage(copy=home / "fleet")


def own_home() -> dict[str, str]:
    """Return an environment in which tests import the collection from the copy that they lie in.

    The imports above lead this process, and what it starts, to the working tree.
    """
    return {name: value for name, value in os.environ.items() if name != HOME_VARIABLE}


def importers(file: str) -> list[str]:
    """Return the files of the collection that import from a file."""
    parts = Path(file).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    words = (f"from ansible_collections.pve.fleet.{name} import", f".{name} import")
    texts = ((one, one.read_text(encoding="utf-8")) for one in (REPO / SOURCES).rglob("*.py"))
    return [str(one.relative_to(REPO)) for one, text in texts if any(w in text for w in words)]


def covering(mutant: Mutant, session: Session) -> list[str]:
    """Return the tests of a mutant: those that execute its line, else those that execute its file,
    then those that execute a file that imports it. Without such a test it is met by all.
    """
    line, file = f"{mutant.file}:{mutant.line}", mutant.file
    tests = session.tests_of(line)
    if not tests:
        tests = session.tests_of(file)
        tests += sorted({*session.tests_of(*importers(file))} - {*tests})
    return tests or list(session.items)


def is_killed(mutant: Mutant, where: Path, tests: Sequence[str]) -> bool:
    """Run the tests with the mutant in a copy of the tree, until the first one fails."""
    file = where / mutant.file
    file.write_text(mutant.code, encoding="utf-8")
    # The functions of the tests, whose parameters may contain what no command line can.
    names = dict.fromkeys(test.partition("[")[0] for test in tests)
    try:
        command = [sys.executable, "-m", "pytest", *PYTEST, "-x", *names]
        done = subprocess.run(command, cwd=where, env=own_home(), capture_output=True, check=False)
    finally:
        file.write_text(mutant.original, encoding="utf-8")
    return done.returncode != 0


def difference(mutant: Mutant) -> str:
    before, after = mutant.original.splitlines(), mutant.code.splitlines()
    lines = difflib.unified_diff(before, after, mutant.file, mutant.name, n=1, lineterm="")
    return "\n".join(lines)


class Meeting:
    """Mutants that meet their tests."""

    def __init__(self, mutants: Sequence[Mutant], jobs: int) -> None:
        self.mutants, self.jobs = mutants, jobs
        self.tests: dict[Mutant, list[str]] = {}
        self.left: list[Mutant] = []
        self.survivors: list[Mutant] = []
        self.met = 0
        # The session has the streams of the tests.
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self.begin = time.monotonic()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self.begin:6.0f} s  {text}", file=self.out, flush=True)

    def in_session(self, session: Session) -> None:
        """Find the tests of each mutant, and meet those that forks can have."""
        self.tell(f"finding what each of {len(session.items)} tests executes")
        if failed := session.probe(self.mutants):
            self.tell(f"{len(failed)} tests fail without a mutant, and meet none: {failed[:9]}")
        self.tell("meeting")
        calls, met = [], []
        for mutant in self.mutants:
            self.tests[mutant] = tests = covering(mutant, session)
            pairs = live.replaced(live.compiled(mutant.original), live.compiled(mutant.code))
            if pairs is None or len(tests) == len(session.items):
                self.left.append(mutant)
            else:
                met.append(mutant)
                calls.append(lambda one=mutant, new=pairs: session.meet(one, new, self.tests[one]))
        for number, status in in_forks(calls, self.jobs, SECONDS):
            self.conclude(met[number], status != 0)
        self.met = len(self.tests)

    def conclude(self, mutant: Mutant, killed: bool) -> None:
        """Tell the outcome; a survivor is met once more by a process of its own."""
        outcome = "killed" if killed else f"survived {len(self.tests[mutant])} tests"
        self.tell(f"{mutant.file}:{mutant.line} {mutant.name}: {outcome}")
        if not killed:
            self.left.append(mutant)

    def in_copies(self, number: int) -> None:
        """Meet the mutants that are left, one of `jobs` parts of them."""
        where = tree(number)
        for mutant in self.left[number :: self.jobs]:
            about_texts = ABOUT_TEXTS if "/generated/" in mutant.file else ()
            killed = is_killed(mutant, where, [*about_texts, *self.tests[mutant]])
            outcome = "killed" if killed else f"SURVIVED {len(self.tests[mutant])} tests"
            self.tell(f"{mutant.file}:{mutant.line} {mutant.name}: {outcome}")
            if not killed:
                self.survivors.append(mutant)


def meet(mutants: Sequence[Mutant], jobs: int) -> list[Mutant]:
    """Return the mutants that survive."""
    meeting = Meeting(mutants, jobs)
    session = Session(REPO, SOURCES, jobs, meeting.in_session)
    pytest.main([*PYTEST, "-x", "-s", "-n", "0", *SUITES], plugins=[session])
    if meeting.met != len(mutants):
        raise SystemExit("The tests could not be run")
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(meeting.in_copies, range(jobs)))
    return meeting.survivors


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="mutants at once")
    options = parser.parse_args()
    mutants = sample(REPO, SOURCES, options.sample, options.seed)
    survivors = meet(mutants, options.jobs)
    for mutant in survivors:
        print(f"\n{difference(mutant)}")
    percent = 100 * (len(mutants) - len(survivors)) / len(mutants)
    print(f"\n{len(mutants) - len(survivors)} of {len(mutants)} mutants killed: {percent:.1f} %")
    measured = Measured(
        keys={"mutants_killed_percent": Figure((percent,))},
        notes=[f"{len(mutants)} mutants of {SOURCES}, drawn with the seed {options.seed}"],
    )
    latest = results.merged(results.load(), "mutants", measured, bench.machine())
    results.save(latest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
