"""Parts that measure many sites: a job for each, the job that merges, and the inventory of all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.bench.command import Ran, run
from tests.bench.environment import NotMeasured
from tests.bench.figures import Figure, Measured, Row
from tests.bench.parts import LATENCY_MS, NODES, Bench
from tests.bench.workloads.fleets import desired_made_up_vms
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

SITES = 100
GUESTS = 1000  # of each site
TEMPLATES = 1  # of each site
REPORTED = 10  # sites with the job of a report, too
SLOW_MS = 10 * LATENCY_MS
# The machines of AWX run all jobs at once; this one runs one on each core.
AT_ONCE = os.cpu_count() or 1
_COLLECTION = "pve.fleet"
_STATS = re.compile(r"^\s*RUN: (\{.*\})$", re.M)
_COUNT = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.debug": {"msg": "{{ groups.all | length }} hosts"}}],
    }
]
Sites = Mapping[str, Simulator]
Jobs = Mapping[str, tuple[Ran, dict[str, Any]]]
"""The job of each site, with the artifact that it hands over."""


def sites100(bench: Bench) -> Measured:
    """100 running sites: their inventory in one command, the drift of each, its merge, and reports.

    Each site has guests of its own; one in ten of them is stopped, and so differs from its estate.
    The last site is slow.
    """
    with _running() as sites:
        bench.say(f"{SITES} sites run; the inventory of all, {bench.few} times")
        inventories = [_inventory(bench, sites) for _turn in range(bench.few)]
        listing = _listing(bench, sites)
        bench.say(f"drift: {SITES} jobs, {AT_ONCE} at once; it takes a quarter of an hour")
        drifts = _of_each(bench, sites, _drift)
        merges = [_merge(bench, next(iter(sites.values())), drifts) for _turn in range(bench.few)]
        bench.say(f"reports: {REPORTED} jobs")
        some = [*list(sites)[: REPORTED - 1], list(sites)[-1]]
        reports = _of_each(bench, {name: sites[name] for name in some}, _report)
        shown = list(reports.values())
        all_reports = {name: shown[number % REPORTED] for number, name in enumerate(sites)}
        first = next(iter(sites.values()))
        joined = [_merge(bench, first, all_reports) for _turn in range(bench.few)]
    usual, late = _ran(drifts)[:-1], _ran(drifts)[-1:]
    everything = SITES * (GUESTS + TEMPLATES)
    measured = Measured(
        [
            _row(f"a playbook with the inventory of {SITES} sites", bench, inventories, everything),
            _row("`ansible-inventory --list` of these", bench, [listing], everything),
            _row(f"drift of one of {SITES} sites, {GUESTS:,} guests", bench, usual, GUESTS),
            _row(f"drift of a site that answers after {SLOW_MS} ms", bench, late, GUESTS),
            _row(f"the results of {SITES} sites merged", bench, merges, SITES),
            _row(f"report on one of {SITES} sites", bench, _ran(reports), GUESTS),
            _row(f"the reports of {SITES} sites merged", bench, joined, SITES),
        ]
    )
    slowest = max(job.seconds for job in _ran(drifts))
    jobs_peak = _peak(_ran(drifts))
    measured.key("sites100_inventory_peak_mib", *(one.peak_mib for one in inventories))
    measured.key("sites100_drift_peak_mib", *(max(jobs_peak, one.peak_mib) for one in merges))
    measured.key("sites100_merge_peak_mib", *(one.peak_mib for one in (*merges, *joined)))
    measured.key("sites100_report_peak_mib", _peak(_ran(reports)))
    measured.key(
        "sites100_drift_over_slowest", *((slowest + one.seconds) / slowest for one in merges)
    )
    measured.notes.append(
        f"All {SITES} sites are simulators that run at the same time, each with guests of its own."
        f" The comparison is a job of its own for each of them, {AT_ONCE} at once here; in AWX, all"
        f" start at once, so the time is that of the slowest site and of the merge. {REPORTED} of"
        " the sites have the job of a report; the job that merges gets the artifact of each of them for"
        f" {SITES // REPORTED} names. `ansible-inventory --list` holds its whole answer as"
        " a text, too."
    )
    return measured


@contextmanager
def _running() -> Iterator[Sites]:
    """Serve the sites, by name."""
    sites = {}
    for number in range(SITES):
        latency = SLOW_MS if number == SITES - 1 else LATENCY_MS
        sites[f"site{number:03}"] = Simulator(
            "--nodes", NODES, "--vms", GUESTS, "--seed", number + 1, "--latency-ms", latency
        )
    with ExitStack() as running:
        for site in sites.values():
            running.callback(site.stop)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Simulator.start, sites.values()))
        yield sites


def _connection(site: Simulator) -> dict[str, Any]:
    return {
        "host": site.url,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
        "ca_path": site.ca,
    }


def _inventory(bench: Bench, sites: Sites) -> Ran:
    """Run a playbook that needs no guest, with the inventory of all sites."""
    place = bench.ours.place
    (place / "count.json").write_text(json.dumps(_COUNT))
    command = ["ansible-playbook", "-i", _source(place, sites), "count.json"]
    ran = _command(bench, next(iter(sites.values())), place, command, 0)
    if f"{SITES * (GUESTS + TEMPLATES)} hosts" not in ran.output.read_text(encoding="utf-8"):
        raise NotMeasured("the inventory has other hosts")
    return ran


def _listing(bench: Bench, sites: Sites) -> Ran:
    place = bench.ours.place
    command = ["ansible-inventory", "-i", _source(place, sites), "--list"]
    return _command(bench, next(iter(sites.values())), place, command, 0)


def _source(place: Path, sites: Sites) -> str:
    """Write the inventory source of all sites; return its path."""
    rows = [{"name": name, **_connection(site)} for name, site in sites.items()]
    source = place / "all.proxmox.yml"
    source.write_text(json.dumps({"plugin": "pve.fleet.proxmox", "sites": rows}))
    return str(source)


def _of_each(bench: Bench, sites: Sites, job: Any) -> Jobs:
    """Run a job for each site, several at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = list(sites)
        return dict(
            zip(names, pool.map(lambda name: job(bench, name, sites[name]), names), strict=True)
        )


def _drift(bench: Bench, name: str, site: Simulator) -> tuple[Ran, dict[str, Any]]:
    """Compare a site with its estate; return the artifact that the job hands over, too."""
    place = _place(bench, name)
    variables = {
        "provision_connection": _connection(site),
        "provision_vms": desired_made_up_vms(GUESTS, int(name[-3:]) + 1),
        "provision_drift_fail": False,
        "provision_drift_file": str(place / "drift.json"),
        "fleet_site": name,
    }
    ran = _play(bench, site, place, ("drift", "awx_site"), variables, 2)
    artifact = _artifact(ran)
    if (artifact["guests"], artifact["differs"]) != (GUESTS, True):
        raise NotMeasured(f"the job compared something else: {artifact['summary']}")
    return ran, artifact


def _report(bench: Bench, name: str, site: Simulator) -> tuple[Ran, dict[str, Any]]:
    """Report on a site; return the artifact that the job hands over, too."""
    place = _place(bench, name)
    variables = {
        "report_connection": _connection(site),
        "report_directory": str(place),
        "fleet_site": name,
    }
    ran = _play(bench, site, place, ("report", "awx_site"), variables, 0)
    artifact = _artifact(ran)
    if not artifact["complete"]:
        raise NotMeasured(f"the report is not complete: {artifact['reason']}")
    return ran, artifact


def _merge(bench: Bench, site: Simulator, jobs: Jobs) -> Ran:
    """Merge the results of all sites. The job fails if the sites differ from their estates."""
    place = bench.ours.place
    names = list(jobs)
    results = {
        f"fleet_site_{sha256(name.encode()).hexdigest()[:12]}": artifact
        for name, (_ran_one, artifact) in jobs.items()
    }
    wanted = {"fleet_sites": names, "fleet_sites_file": str(place / "merged.json")}
    differing = [name for name in names if jobs[name][1]["differs"]]
    ran = _play(bench, site, place, ("awx_sites",), {**results, **wanted}, 2 if differing else 0)
    stats = _stats(ran)
    if (stats["fleet_sites_read"], stats["fleet_sites_differing"]) != (names, differing):
        raise NotMeasured(f"the results of {len(stats['fleet_sites_read'])} sites were merged")
    return ran


def _play(
    bench: Bench,
    site: Simulator,
    place: Path,
    playbooks: tuple[str, ...],
    variables: Mapping[str, Any],
    status: int,
) -> Ran:
    """Run playbooks of the collection, which end with this status."""
    (place / "variables.json").write_text(json.dumps(variables))
    command = ["ansible-playbook", "-e", "@variables.json"]
    command += [f"{_COLLECTION}.{playbook}" for playbook in playbooks]
    return _command(bench, site, place, command, status)


def _command(
    bench: Bench, site: Simulator, place: Path, command: Sequence[str], status: int
) -> Ran:
    seen = bench.ours.environment(site, ANSIBLE_SHOW_CUSTOM_STATS="true")
    tool = str(bench.ours.python.parent / command[0])
    return run([tool, *command[1:]], place, seen, watch_memory=True, status=status)


def _place(bench: Bench, name: str) -> Path:
    """Return the directory of a site's job: jobs run at the same time."""
    place = bench.ours.place / name
    place.mkdir(exist_ok=True)
    return place


def _artifact(ran: Ran) -> dict[str, Any]:
    """Return what the job of a site hands over to the job that merges."""
    (found,) = (one for key, one in _stats(ran).items() if key.startswith("fleet_site_"))
    artifact: dict[str, Any] = found
    return artifact


def _stats(ran: Ran) -> dict[str, Any]:
    """Return the artifacts that the last playbook of a job printed as its custom statistics."""
    found = _STATS.findall(ran.output.read_text(encoding="utf-8"))
    if not found:
        raise NotMeasured("the job has no artifacts")
    stats: dict[str, Any] = json.loads(found[-1])
    return stats


def _ran(jobs: Jobs) -> list[Ran]:
    return [ran for ran, _artifact_of_it in jobs.values()]


def _peak(jobs: Sequence[Ran]) -> float:
    return max(job.peak_mib for job in jobs)


def _row(what: str, bench: Bench, jobs: Sequence[Ran], units: int) -> Row:
    return Row(
        what,
        bench.ours.name,
        Figure(tuple(job.seconds for job in jobs)),
        0,
        units=units,
        cpu=Figure(tuple(job.cpu_seconds for job in jobs)),
        peak_mib=Figure(tuple(job.peak_mib for job in jobs)),
    )
