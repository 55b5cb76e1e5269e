# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m tests.mutants --sample 200 --seed 1``: the share of small faults in
plugins/module_utils that the unit tests and the tests of modules detect.

cosmic-ray makes the mutants. A sample of them is drawn by the seed; each is met by the tests that
execute its line, in a copy of the working tree. A mutant whose tests hang is killed as well.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import queue
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

from tests.bench import __main__ as bench
from tests.bench import results
from tests.bench.figures import Figure, Measured
from tests.mutants.sample import Mutant, sample
from tests.tools.stage import REPO, source_files, stage
from tests.workers import HOME_VARIABLE

HOME = REPO / "build" / "mutants"
SOURCES = "plugins/module_utils"
SUITES = ("tests/unit", "tests/modules")
# The longest a test may take; a mutant can make a loop endless.
PATIENCE = 300
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long")


def tree(number: int) -> Path:
    """Return a copy of the working tree, with the recordings beside it if they are here."""
    home = HOME / str(number)
    home.mkdir(parents=True, exist_ok=True)
    shared = REPO.parent / "shared"
    if shared.is_dir() and not (home / "shared").exists():
        (home / "shared").symlink_to(shared)
    return stage(copy=home / "fleet")


def coverage(jobs: int) -> CoverageData:
    """Return the tests that execute each line; they are found once for each state of the tree."""
    content = b"".join((REPO / name).read_bytes() for name in source_files() if _counts(name))
    file = HOME / f"{hashlib.sha256(content).hexdigest()[:16]}.coverage"
    if not file.exists():
        print(f"finding the tests that execute each line: {' '.join(SUITES)}", flush=True)
        where = tree(0)
        options = (f"--cov={SOURCES}", "--cov-context=test", "--cov-report=", "--dist=worksteal")
        command = [sys.executable, *PYTEST, "-n", str(jobs), *options, *SUITES]
        environment = {**own_home(), "COVERAGE_FILE": str(file)}
        done = subprocess.run(command, cwd=where, env=environment, check=False)
        if done.returncode:
            file.unlink(missing_ok=True)
            raise SystemExit("The tests fail without a mutant: repair them first.")
    data = CoverageData(str(file))
    data.read()
    return data


def own_home() -> dict[str, str]:
    """Return an environment in which tests import the collection from the copy that they lie in.

    The imports above lead this process, and what it starts, to the working tree.
    """
    return {name: value for name, value in os.environ.items() if name != HOME_VARIABLE}


def _counts(name: str) -> bool:
    return name.startswith((f"{SOURCES}/", *SUITES)) and name.endswith(".py")


def covering(mutant: Mutant, data: CoverageData) -> list[str]:
    """Return the tests that execute the line of a mutant, unit tests first.

    A line that runs only at the import of its file, or in no test, is met by the tests that execute
    anything of the file; without such a test, by all tests.
    """
    by_line: dict[int, list[str]] = {}
    for measured in data.measured_files():
        if measured.endswith(f"/{mutant.file}"):
            by_line = data.contexts_by_lineno(measured)
    contexts = set(by_line.get(mutant.line, ()))
    if contexts <= {""}:
        contexts = set().union(*by_line.values())
    contexts.discard("")
    names = {context.partition("|")[0].partition("[")[0] for context in contexts}
    return sorted(names, key=lambda name: (not name.startswith(SUITES[0]), name)) or [*SUITES]


def is_killed(mutant: Mutant, where: Path, tests: list[str]) -> bool:
    """Run the tests with the mutant, until the first one fails."""
    file = where / mutant.file
    file.write_text(mutant.code, encoding="utf-8")
    try:
        command = [sys.executable, *PYTEST, "-x", f"--timeout={PATIENCE}", *tests]
        done = subprocess.run(command, cwd=where, env=own_home(), capture_output=True, check=False)
    finally:
        file.write_text(mutant.original, encoding="utf-8")
    return done.returncode != 0


def difference(mutant: Mutant) -> str:
    before, after = mutant.original.splitlines(), mutant.code.splitlines()
    lines = difflib.unified_diff(before, after, mutant.file, mutant.name, n=1, lineterm="")
    return "\n".join(lines)


def meet(mutants: list[Mutant], data: CoverageData, jobs: int) -> list[Mutant]:
    """Run the tests of each mutant, some mutants at once; return those that survived."""
    free: queue.Queue[Path] = queue.Queue()
    for number in range(jobs):
        free.put(tree(number))

    def met(mutant: Mutant) -> bool:
        tests = covering(mutant, data)
        where = free.get()
        try:
            killed = is_killed(mutant, where, tests)
        finally:
            free.put(where)
        outcome = "killed" if killed else f"SURVIVED {len(tests)} tests"
        print(f"{mutant.file}:{mutant.line} {mutant.name}: {outcome}", flush=True)
        return killed

    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(met, mutants))
    return [one for one, killed in zip(mutants, outcomes, strict=True) if not killed]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="mutants at once")
    options = parser.parse_args()
    data = coverage(4 * options.jobs)
    mutants = sample(REPO, SOURCES, options.sample, options.seed)
    survivors = meet(mutants, data, options.jobs)
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
