"""The command `python -m tests.faults`: the whole table, or the scenarios with a word."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from .table import SCENARIOS, Report, open_table, run_scenario, total


def _run(keys: list[str]) -> Report:
    """Run some scenarios on a cluster of their own."""
    with open_table() as lab:
        chosen = [scenario for scenario in SCENARIOS if scenario.key in keys]
        return total([_printed(run_scenario(lab, scenario), scenario.key) for scenario in chosen])


def _printed(report: Report, key: str) -> Report:
    """Print the findings of a scenario at once."""
    for finding in report.findings:
        print(finding)
    print(f"{key}: {report.combinations} combinations", flush=True)
    return report


def main() -> int:
    """Print each finding and the counts; the exit status says whether there is a finding."""
    parser = argparse.ArgumentParser(description="Meet every write with every fault.")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    parser.add_argument("words", nargs="*", help="only scenarios whose name has one of these")
    given = parser.parse_args()
    keys = [
        scenario.key
        for scenario in SCENARIOS
        if not given.words or any(word in scenario.key for word in given.words)
    ]
    if not keys:
        print("no scenario has such a name", file=sys.stderr)
        return 2
    shares = [keys[start :: 4 * given.jobs] for start in range(4 * given.jobs)]
    with ProcessPoolExecutor(given.jobs) as workers:
        report = total(list(workers.map(_run, filter(None, shares))))
    print(report.line())
    return 1 if report.findings else 0
