"""`python -m tests.bench`: measures, writes tests/bench/results/latest.json and docs/benchmarks.md
with its plot.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import report, results
from tests.bench.command import other_work
from tests.bench.environment import NotMeasured, bench_python, stage_ours, versions
from tests.bench.parts import LATENCY_MS, PART, TASK_MS, Bench
from tests.bench.sides import both
from tests.bench.workloads import (
    backups,
    containers,
    evacuations,
    fleets,
    infrastructure,
    inventories,
    networks,
    plans,
    relocations,
    single_tasks,
    sites,
    slices,
    soak,
)
from tests.simulator.process import SimulatorError
from tests.tools import tables
from tests.tools.stage import REPO

PARTS: dict[str, PART] = {
    "noop_loop": single_tasks.noop_loop,
    "process_loop": single_tasks.process_loop,
    "noop_forks": single_tasks.noop_forks,
    "operations": single_tasks.operations,
    "create": single_tasks.create,
    "clone_start": single_tasks.clone_start,
    "snapshot": single_tasks.snapshot,
    "fleet20": fleets.fleet20,
    "fleet100": fleets.fleet100,
    "evacuate60": evacuations.evacuate60,
    "relocate40": relocations.relocate40,
    "local_images": fleets.local_images,
    "fleet1000": fleets.fleet1000,
    "drift1000": fleets.drift1000,
    "export1000": fleets.export1000,
    "report1000": fleets.report1000,
    "plan1000": plans.plan1000,
    "container_loop": containers.container_loop,
    "container_create": containers.container_create,
    "mixed1000": containers.mixed1000,
    "slices": slices.slices,
    "sites100": sites.sites100,
    "inv1000": inventories.inv1000,
    "inv5000_tags": inventories.inv5000_tags,
    "inv1000_addr": inventories.inv1000_addr,
    "inv5000_addr": inventories.inv5000_addr,
    "inv5000_incremental": inventories.inv5000_incremental,
    "inv10000": inventories.inv10000,
    "cluster120": infrastructure.cluster120,
    "upload1g": infrastructure.upload1g,
    "backup100": backups.backup100,
    "restore20": backups.restore20,
    "backup_info20000": backups.backup_info20000,
    "firewall300": networks.firewall300,
    "sdn50": networks.sdn50,
    "isolation1000": networks.isolation1000,
    "soak": soak.part,
}


def machine() -> dict[str, Any]:
    """Return when and where a figure was measured."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
        "commit": _commit(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
    }


def conditions(runs: int, peer: Path) -> dict[str, Any]:
    """Return what a reader must know to judge the figures."""
    return {
        **machine(),
        "runs": runs,
        "latency_ms": LATENCY_MS,
        "task_ms": TASK_MS,
        "ours": versions(Path(sys.executable)),
        "peer": versions(peer),
    }


def _commit() -> str:
    """Return the commit, with a mark where files differ from it, other than what a measurement
    writes.
    """
    written = (":!docs/benchmarks.*", ":!tests/bench/results")
    commit, changes = (
        subprocess.run(
            ["git", *words], cwd=REPO, capture_output=True, text=True, check=False
        ).stdout.strip()
        for words in (
            ["rev-parse", "--short", "HEAD"],
            ["status", "--porcelain", "--", ".", *written],
        )
    )
    return f"{commit}-dirty" if changes else commit


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def measure(chosen: list[str], runs: int, file: Path) -> list[str]:
    """Measure the chosen parts and note in the file what each found.

    Return those that could not be measured.
    """
    peer = bench_python()
    around = conditions(runs, peer)
    missing = []
    with tempfile.TemporaryDirectory(prefix="pve-fleet-bench-") as directory:
        sides = both((Path(sys.executable), stage_ours()), peer, Path(directory))
        for name in chosen:
            print(f"{name} ...", flush=True)
            began = time.monotonic()
            others = other_work()
            try:
                measured = PARTS[name](Bench(*sides, runs))
            except (NotMeasured, SimulatorError) as problem:
                print(f"  NOT MEASURED: {problem}", flush=True)
                missing.append(name)
                continue
            disturbed = round(others(), 2)
            latest = results.merged(
                results.load(file), name, measured, {**around, "other_cores": disturbed}
            )
            results.save(latest, file)
            for line in report.lines_of(name, latest):
                print(f"  {line}", flush=True)
            seconds = time.monotonic() - began
            print(f"  {seconds:.0f} s, in which others used {disturbed:.2f} cores", flush=True)
    return missing


def write_docs(file: Path, docs: Path, python: Path) -> None:
    """Write the page and its plot from what was measured, now or before."""
    (docs / "benchmarks.md").write_text(report.page(results.load(file)), encoding="utf-8")
    if docs == REPO / "docs":
        tables.main()
    plot = Path(__file__).resolve().parent / "plot.py"
    subprocess.run([str(python), str(plot), str(file), str(docs / "benchmarks.svg")], check=True)


def main(argv: list[str] | None = None) -> int:
    """Measure; the exit status is 1 when a part could not be measured, and 2 for a wrong option."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="PART", help=f"parts: {', '.join(PARTS)}"
    )
    parser.add_argument(
        "--runs", type=int, default=5, help="runs of each side (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write latest.json, page and plot there"
    )
    parser.add_argument("--report", action="store_true", help="only rewrite the page and the plot")
    options = parser.parse_args(argv)
    if options.runs < 1:
        parser.error("--runs: at least 1")
    file, docs = (
        (options.out / "latest.json", options.out)
        if options.out
        else (results.LATEST, REPO / "docs")
    )
    try:
        missing = [] if options.report else measure(options.only or list(PARTS), options.runs, file)
        write_docs(file, docs, bench_python())
    except NotMeasured as problem:
        print(f"cannot measure: {problem}", file=sys.stderr)
        return 1
    if missing:
        print(
            f"not measured, older figures of these are kept: {', '.join(missing)}", file=sys.stderr
        )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
