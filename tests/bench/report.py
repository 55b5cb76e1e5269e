"""The page with the figures, from latest.json (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.figures import OURS, Figure
from tests.bench.keys import KEYS

Environment = tuple[tuple[str, str], ...]

HEAD = """\
# Benchmarks

`make bench` measures this collection and its peer, community.proxmox, in turns on one machine,
against the same state of the same [simulated Proxmox VE](simulator.md). It writes this page, its
plot and `tests/bench/results/latest.json`. The peer comes from the PyPI package `ansible`. Its
separate environment has the same ansible-core and libraries as pve.fleet, so only the collections
differ.

- `make bench ARGS="--only noop_loop fleet20"` measures these parts and keeps the other figures.
- `make bench ARGS="--runs 9"` measures more often; `--report` only rewrites this page.

![Times of both collections](benchmarks.svg)
"""

MEANING = """\
Every figure is a median, followed by the lowest and the highest run. Ansible's callbacks measure
the time of a task, from its announcement to its last result. The column "play" is the time of the
whole play: our plugins are imported once, before the first task; the peer's modules are imported in
each task. The column "command" includes the start of `ansible-playbook`. For an inventory, the
whole command is measured. A ratio divides two medians of task times; its range comes from pairs of
consecutive runs. A bound is the shortest possible time: the time of the server's tasks, divided by
the number of tasks that run at once.
"""


def page(results: Mapping[str, Any]) -> str:
    """Return the page."""
    parts: Mapping[str, Any] = results.get("parts", {})
    text = [
        HEAD,
        MEANING,
        "## Goals\n",
        *_reach(results, parts),
        "\n## Single operations\n",
        *_operations(parts),
        "\n## All figures\n",
        *_rows(parts),
    ]
    served = {name: part for name, part in parts.items() if "latency_ms" in part["conditions"]}
    text += ["\n## Notes\n", *_notes(served), "\n## Conditions\n", *_conditions(served)]
    return "\n".join(text) + "\n"


def _operations(parts: Mapping[str, Any]) -> list[str]:
    """Return the percentiles of the time of each operation on one VM."""
    if "operations" not in parts:
        return ["Not measured yet."]
    lines = [
        "| operation | side | P50 | P95 | slowest | requests |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in parts["operations"]["rows"]:
        times = Figure(tuple(row["seconds"]["values"]))
        shown = (times.percentile(50), times.percentile(95), times.high)
        cells = " | ".join(f"{_short(value)} s" for value in shown)
        lines.append(f"| {row['what']} | {row['side']} | {cells} | {row['requests']} |")
    return lines


def slices(results: Mapping[str, Any]) -> str:
    """Return the table of the ways to work on the VMs of an estate in AWX.

    The rows of the part contain each way twice: created, then unchanged. The first way is a list.
    """
    if "slices" not in results.get("parts", {}):
        return "Not measured yet."
    rows = results["parts"]["slices"]["rows"]
    half = len(rows) // 2
    lines = ["| | created | requests | unchanged | requests |", "|---|---|---|---|---|"]
    for created, unchanged in zip(rows[:half], rows[half:], strict=True):
        way = unchanged["what"].partition(", ")[2]
        cells = [
            cell
            for row, first in ((created, rows[0]), (unchanged, rows[half]))
            for cell in (_multiple(row, first), _short(row["requests"]))
        ]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _multiple(row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """Return the time of a row divided by the time of the first row."""
    if row is first:
        return f"1 ({_short(row['seconds']['median'])} s)"
    return f"{row['seconds']['median'] / first['seconds']['median']:.1f}"


def lines_of(part: str, results: Mapping[str, Any]) -> list[str]:
    """Return the figures of a part, for a terminal."""
    found = results["parts"][part]
    lines = [
        f"{row['what']}, {row['side']}: {_seconds(row['seconds'])}, {row['requests']} requests"
        for row in found["rows"]
    ]
    for name, figure in found["keys"].items():
        lines.append(f"{name} {_range(figure)}, {KEYS[name].reach}: {_verdict(name, results)}")
    return lines


def _reach(results: Mapping[str, Any], parts: Mapping[str, Any]) -> list[str]:
    lines = ["| figure | measured | range | goal | |", "| --- | --- | --- | --- | --- |"]
    for name, key in KEYS.items():
        if name not in results:
            lines.append(f"| {key.meaning} (`{name}`) | not measured | | {key.reach} | |")
            continue
        figure = parts[key.part]["keys"][name]
        unit = f" {key.unit}" if key.unit else ""
        span = f"{_short(figure['low'])} to {_short(figure['high'])}"
        verdict = _verdict(name, results)
        lines.append(
            f"| {key.meaning} (`{name}`) | {_short(results[name])}{unit} | {span} | {key.reach} |"
            f" {verdict} |"
        )
    return lines


def _verdict(name: str, results: Mapping[str, Any]) -> str:
    verdict = KEYS[name].reached(results[name])
    if verdict is None:
        return ""
    return "reached" if verdict else "**missed**"


def _rows(parts: Mapping[str, Any]) -> list[str]:
    lines = [
        "| what | side | time | play | command | a second | requests | processor | memory | runs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in _ordered(parts):
        for row in parts[name]["rows"]:
            play, command, cpu = (
                _column(row, name) for name in ("play_seconds", "command_seconds", "cpu_seconds")
            )
            memory = f"{row['peak_mib']['median']:.0f} MiB" if "peak_mib" in row else ""
            what = f"{row['what']} ({row['note']})" if row.get("note") else row["what"]
            runs = f"**{row['runs']}**" if row["runs"] < 5 else str(row["runs"])
            times = f"{_seconds(row['seconds'])} | {play} | {command} | {_short(row['per_second'])}"
            requests = row["requests"] or ""  # none were counted
            lines.append(
                f"| {what} | {row['side']} | {times} | {requests} | {cpu} | {memory} | {runs} |"
            )
    lines += [
        "",
        (
            'Fewer than five runs are in bold. "A second" is the number of tasks, VMs or hosts'
            " divided by the time. Processor time is"
        ),
        (
            "measured for the whole command, without the server. Memory is measured for the largest"
            " process; for fleets, for all processes."
        ),
    ]
    return lines


def _column(row: Mapping[str, Any], name: str) -> str:
    return _seconds(row[name], short=True) if name in row else ""


def _notes(parts: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in _ordered(parts):
        if not parts[name]["notes"]:
            continue
        what = parts[name]["rows"][0]["what"]
        lines += [f"- {what[0].upper()}{what[1:]}: {note}" for note in parts[name]["notes"]]
    return lines


def _conditions(parts: Mapping[str, Any]) -> list[str]:
    """Return the conditions, once for all parts that were measured under the same conditions."""
    places: dict[Environment, list[str]] = {}
    moments: dict[str, list[str]] = {}
    for name in _ordered(parts):
        around = parts[name]["conditions"]
        times = ", ".join(
            f"{kind} {milliseconds} ms" for kind, milliseconds in around["task_ms"].items()
        )
        environment: Environment = (
            (
                "machine",
                (
                    f"{around['cores']} cores, {around['processor']}, {around['system']}; the"
                    " server runs on it too"
                ),
            ),
            ("server", f"answers after {around['latency_ms']} ms; tasks take {times}"),
            (OURS, _versions(around["ours"])),
            ("the peer", _versions(around["peer"])),
        )
        places.setdefault(environment, []).append(name)
        moments.setdefault(f"{around['date'][:10]} at commit {around['commit']}", []).append(name)
    lines = []
    for environment, names in places.items():
        lines += [f"- {what}: {text}" for what, text in (*environment, *_of(names, places))]
    for moment, names in moments.items():
        lines += [
            f"- {what}: {text}" for what, text in (("measured", moment), *_of(names, moments))
        ]
    taken = [
        part["conditions"]["other_cores"]
        for part in parts.values()
        if "other_cores" in part["conditions"]
    ]
    if taken:
        lines.append(
            f"- other work on the machine took {min(taken):.2f} to {max(taken):.2f} cores during"
            " the measurements"
        )
    return lines


def _of(names: list[str], groups: Mapping[Any, list[str]]) -> tuple[tuple[str, str], ...]:
    """Return a line with the names of the parts, if not all parts belong to one group."""
    return (("parts", ", ".join(f"`{name}`" for name in names)),) if len(groups) > 1 else ()


def _versions(found: Mapping[str, str]) -> str:
    names = ("community.proxmox", "python", "ansible-core", "proxmoxer", "requests")
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


def _ordered(parts: Mapping[str, Any]) -> list[str]:
    known = list(dict.fromkeys(key.part for key in KEYS.values()))
    order = ["noop_loop", "process_loop", "noop_forks", "operations"]
    order += ["create", "clone_start", "snapshot"]
    order += [name for name in known if name not in order]
    return [name for name in order if name in parts] + [name for name in parts if name not in order]


def _seconds(figure: Mapping[str, Any], short: bool = False) -> str:
    middle = f"{_short(figure['median'])} s"
    return (
        middle
        if short or len(figure["values"]) == 1
        else f"{middle} ({_short(figure['low'])} to {_short(figure['high'])})"
    )


def _range(figure: Mapping[str, Any]) -> str:
    return f"{_short(figure['median'])} ({_short(figure['low'])} to {_short(figure['high'])})"


def _short(value: float) -> str:
    """Return a number with three significant digits; from 100 on, without decimals."""
    if value >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
