"""`python -m tests.simulator.fidelity`: the agreement of the simulator with recordings of a real
Proxmox VE.

The recordings lie beside the repository, in ../shared; if they are absent, tests/simulator/data is
used, which holds the same exchanges without details of the recorded hosts. Without any, the
comparison fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..process import Simulator
from .replay import Figures, Line, Replay, Verdict, figures_of
from .sets import RecordedSet, load_packed, load_shared
from .vectors import disagreements

# The lowest shares that pass, and their meaning.
Goals = dict[str, tuple[float, str]]
GOALS: Goals = {
    "status": (0.99, "HTTP status"),
    "errors": (0.98, "texts of refusals"),
    "keys": (0.98, "keys of answers"),
    "values": (0.95, "values of answers"),
}
# The same for the stories around virtual machines, in this order. The lower ones are about paths
# that the simulator does not have yet: their shares must not fall. A story that is not listed
# passes.
AROUND: dict[str, tuple[float, float, float, float]] = {
    "access": (0.98, 0.97, 0.97, 0.93),
    "backup": (0.96, 0.95, 0.95, 0.93),
    "cluster-misc": (0.97, 0.95, 0.97, 0.93),
    "containers-1": (0.97, 0.93, 0.95, 0.92),
    "containers-2": (0.95, 0.90, 0.93, 0.90),
    "datacenter": (0.96, 0.92, 0.93, 0.90),
    "firewall": (0.97, 0.95, 0.95, 0.94),
    "nodes": (0.96, 0.93, 0.94, 0.90),
    "sdn": (0.95, 0.94, 0.93, 0.92),
    "storage": (0.96, 0.93, 0.93, 0.90),
}
# Refusals of a login are held back for 3 s otherwise, and those about a dead node as well.
QUICK = ("--auth-delay-s", "0", "--proxy-delay-s", "0")


def replay(cluster: str, stories: list[list[Line]]) -> list[Verdict]:
    """The verdicts on recordings that are replayed one after another on a server of their own."""
    with tempfile.TemporaryDirectory(prefix="pve-simulator-") as directory:
        file = Path(directory) / "cluster.yml"
        file.write_text(cluster, encoding="utf-8")
        with Simulator("--cluster", file, *QUICK) as simulator:
            session = Replay(simulator)
            return [verdict for story in stories for verdict in session.run(story)]


def goals_of(story: str) -> Goals:
    """Return the lowest shares that pass of a story around virtual machines."""
    shares = AROUND.get(story, (0.0, 0.0, 0.0, 0.0))
    return {
        name: (share, what)
        for (name, (_goal, what)), share in zip(GOALS.items(), shares, strict=True)
    }


def passes(figures: Figures, goals: Goals) -> bool:
    """Print the shares; False when one is too low, or is about nothing."""
    passed = True
    for name, (goal, what) in goals.items():
        good, total = figures[name]
        share = good / total if total else 0.0
        note = ""
        if share < goal:
            note = "  TOO LOW"
            passed = False
        print(f"{name:7} {good:5}/{total:<5} {share:.3f}  (at least {goal:.2f})  {what}{note}")
    return passed


def print_disagreements(verdicts: list[Verdict], limit: int) -> None:
    """Print the first requests that were answered otherwise."""
    different = [verdict for verdict in verdicts if verdict.why]
    for verdict in different[:limit]:
        print(verdict.request[:160])
        for line in verdict.why[:4]:
            print(f"     {line[:300]}")


def score(recorded: RecordedSet, show: int) -> bool:
    """Print how closely the simulator agrees with a set; False when it is not true enough."""
    total = len(recorded.machines) + len(recorded.around)
    print(f"replaying {recorded.name}: {total} stories of a real Proxmox VE", flush=True)
    # Each replay and its server use one core in turn.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        machines = pool.submit(replay, recorded.cluster, recorded.machines)
        around = {
            name: pool.submit(replay, recorded.cluster_of(name), [lines])
            for name, lines in recorded.around.items()
        }
        print_disagreements(machines.result(), show)
        good = passes(figures_of(machines.result()), GOALS)
        for name, replayed in around.items():
            print(f"{name}:", flush=True)
            print_disagreements(replayed.result(), show)
            good = passes(figures_of(replayed.result()), goals_of(name)) and good
    return vectors_agree(recorded) and good


def vectors_agree(recorded: RecordedSet) -> bool:
    """Compare the verdicts on parameter sets; False when one differs, or there are none."""
    found = disagreements(recorded.vectors)
    for line in found:
        print(line)
    total = len(recorded.vectors)
    print(f"vectors {total - len(found):5}/{total:<5} verdicts on parameters")
    return total > 0 and not found


def choose(which: str | None) -> RecordedSet | None:
    """The set of that name; without a name the one beside the repository, or else the one in it."""
    if which == "packed":
        return load_packed()
    if which == "shared":
        return load_shared()
    return load_shared() or load_packed()


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when the simulator is true enough.

    1 when it is not, or there is nothing to compare it with.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulator.fidelity", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="also print the first N disagreements"
    )
    parser.add_argument(
        "--set",
        choices=("shared", "packed"),
        help="the recordings in ../shared or those of this repository",
    )
    options = parser.parse_args(argv)
    recorded = choose(options.set)
    if recorded is None:
        print("fidelity: there are no recordings to compare with", file=sys.stderr)
        return 1
    return 0 if score(recorded, options.show) else 1
