"""`python -m tests.simulator.fidelity`: how closely the simulator agrees with recordings of a real Proxmox VE.

The recordings lie beside the repository, in ../shared. Where they are absent, the project's own behaviour tests run
instead; they were written from the same facts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from .process import ROOT, Simulator

SHARED = ROOT.parent / "shared" / "pve"

# The lowest shares that pass, and what they are about.
GOALS = {
    "status": (0.99, "HTTP status"),
    "errors": (0.98, "texts of refusals"),
    "keys": (0.98, "keys of answers"),
    "values": (0.95, "values of answers"),
}


def shares(output: str) -> dict[str, tuple[int, int]]:
    """The scorer's figures, e.g. {"status": (1029, 1031)}."""
    found: dict[str, tuple[int, int]] = {}
    for line in output.splitlines():
        words = line.split()
        if words and words[0] in GOALS and len(words) == 4 and "/" in words[1]:
            good, _dummy, total = words[1].partition("/")
            found[words[0]] = (int(good), int(total))
    return found


def replay(show: int) -> bool:
    """Replay the recordings against a server and print the shares; False when one is too low."""
    recordings = sorted(str(path) for path in (SHARED / "recordings").glob("*.jsonl"))
    print(f"replaying {len(recordings)} recordings of a real Proxmox VE; this takes about a minute", flush=True)
    with Simulator("--cluster", SHARED / "cluster.yml", "--control") as sim:
        command = [sys.executable, str(SHARED / "replay.py"), "--url", sim.url, "--control", sim.control]
        run = subprocess.run([*command, "--show", str(show), *recordings], capture_output=True, text=True, check=False)
    figures = shares(run.stdout)
    if set(figures) != set(GOALS):
        print(run.stdout + run.stderr, file=sys.stderr)
        print("the scorer did not finish", file=sys.stderr)
        return False
    if show:
        print("\n".join(line for line in run.stdout.splitlines() if line.split()[:1][0] not in GOALS))
    passed = True
    for name, (goal, what) in GOALS.items():
        good, total = figures[name]
        share = good / total if total else 1.0
        passed = passed and share >= goal
        note = "" if share >= goal else "  TOO LOW"
        print(f"{name:7} {good:5}/{total:<5} {share:.3f}  (at least {goal:.2f})  {what}{note}")
    return passed


def vectors() -> bool:
    """Compare the verdicts on parameter sets."""
    from tests.simulator_tests.vectors import disagreements

    total, found = disagreements(SHARED / "vectors.json")
    for line in found:
        print(line)
    print(f"vectors {total - len(found):5}/{total:<5} verdicts on parameters")
    return not found


def own_tests() -> bool:
    """Run the behaviour tests."""
    print("there are no recordings in ../shared; running the simulator's own behaviour tests", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not long", "tests/simulator_tests"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when the simulator is true enough."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulator.fidelity", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("--show", type=int, default=0, metavar="N", help="also print the first N disagreements")
    parser.add_argument("--own", action="store_true", help="run the behaviour tests although there are recordings")
    options = parser.parse_args(argv)
    if options.own or not Path(SHARED / "replay.py").is_file():
        return 0 if own_tests() else 1
    good = replay(options.show)
    return 0 if vectors() and good else 1


if __name__ == "__main__":
    sys.exit(main())
