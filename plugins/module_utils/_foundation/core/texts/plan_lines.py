# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines that show a plan or the result of a run: one for each change, then the counts (pure)."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..formatting import counted, printable
from ..quantities import MIB, read_size, render_size

CREATED, CHANGED, REMOVED = "created", "changed", "removed"
UNCHANGED, FAILED, KEPT = "unchanged", "failed", "kept"
ACTIONS = (CREATED, CHANGED, REMOVED, UNCHANGED, FAILED, KEPT)
SIGNS = {CREATED: "+", CHANGED: "~", REMOVED: "-", FAILED: "!", KEPT: "!"}
_PLANNED = {
    CREATED: "to create",
    CHANGED: "to change",
    REMOVED: "to remove",
    FAILED: "refused",
    KEPT: "not to remove",
}
_DONE = {KEPT: "not removed"}
_IN_MIB = ("memory", "balloon", "swap")
# Options that never need a reboot.
_AT_ONCE = frozenset(("tags", "description", "onboot", "startup", "pool", "protection", "node"))
_SINGULAR = {"tags": "tag", "sshkeys": "SSH key", "privileges": "privilege", "vms": "VM"}
# Keys of a dictionary whose value stands for it, the first one that it has.
_TELLING = ("size", "name", "cidr", "role")
_LONGEST_VALUE = 40
_LONGEST_LABEL = 40
_SHOWN, _SHOWN_BEFORE = 34, 8  # of a longer value, and before its difference
_GUEST = re.compile(r"(?: of)? (?:VM|container|guest) '[^']*' \(\d+\)(?: on node [\w.-]+)?")


@dataclass(frozen=True)
class PlanLine:
    """One guest or resource of a plan: the action, the label, and the reason in the user's words.

    `details` are more lines about it, such as the end of a task's log.
    """

    action: str
    label: str
    reason: str = ""
    details: tuple[str, ...] = ()
    reboots: bool = False


def plan_lines(
    rows: Sequence[PlanLine],
    *,
    check_mode: bool,
    more: Sequence[str] = (),
    unlisted_failures: int = 0,
) -> list[str]:
    """Return a line for each row that is not unchanged, then `more`, then the line with the counts.

    `unlisted_failures` are counted only.
    """
    number_of = Counter(row.action for row in rows)
    number_of[FAILED] += unlisted_failures
    words = _PLANNED if check_mode else _DONE
    counts = [f"{number_of[one]} {words.get(one, one)}" for one in ACTIONS if number_of[one]]
    text = ", ".join(counts) or "nothing to do"
    reboots = sum(row.reboots for row in rows)
    if reboots:
        text = f"{text}; {counted(reboots, 'reboot')}"
    return [
        *change_lines(rows),
        *map(printable, more),
        f"Plan: {text}" if check_mode else f"Done: {text}",
    ]


def change_lines(rows: Sequence[PlanLine]) -> list[str]:
    """Return a line for each row that is not unchanged."""
    shown = [row for row in rows if row.action in SIGNS]
    width = max((len(row.label) for row in shown if len(row.label) <= _LONGEST_LABEL), default=0)
    lines: list[str] = []
    for row in shown:
        text = f"{SIGNS[row.action]} {printable(row.label):<{width}}  {_one_line(row.reason)}"
        lines.append(text.rstrip())
        lines += [f"    {_one_line(detail)}" for detail in row.details]
    return lines


def guest_lines(
    rows: Iterable[Mapping[str, Any]], *, check_mode: bool, more: Sequence[str] = ()
) -> list[str]:
    """Return the lines of guests from rows with their steps: C(plan) in check mode, else C(done)."""
    lines: list[PlanLine] = []
    for row in rows:
        label = f"{row['tenant']}/{row['name']}" if row.get("tenant") else str(row["name"])
        steps = [_without_guest(step) for step in row["plan" if check_mode else "done"]]
        if row.get("volume"):
            steps[:1] = [f"{steps[0]}: {row['volume']}"] if steps else []
        if row["failed"]:
            done = f", after: {'; '.join(steps)}" if steps else ""
            lines.append(PlanLine(FAILED, label, f"{row['msg']}{done}"))
        else:
            action = CHANGED if row["changed"] else UNCHANGED
            lines.append(PlanLine(action, label, "; ".join(steps)))
    return plan_lines(lines, check_mode=check_mode, more=more)


def _without_guest(step: str) -> str:
    """Return a step without its guest, which the label of the line names."""
    text = _GUEST.sub("", step, count=1)
    return text[:1].lower() + text[1:]


def with_lines(report: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the lines of a report with more lines before the last one, which has the counts."""
    return [*report[:-1], *lines, *report[-1:]]


def lines_of_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[PlanLine]:
    """Return the rows of resources by their label, from their values before and after.

    A resource that has no values is there if its label is.
    """
    rows: list[PlanLine] = []
    for label in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(label) or {}, after.get(label) or {}
        action = CHANGED
        if label in before and not new:
            action = REMOVED
        elif not old:
            action = CREATED
        reason = ", ".join(describe_change(old, new)) if action == CHANGED else ""
        rows.append(PlanLine(action, label, reason))
    return rows


def describe_change(before: Any, after: Any, waiting: Iterable[str] = ()) -> list[str]:
    """Return the differences of two sets of values, such as C(memory 2G -> 3G (reboot)).

    `waiting` are the options that wait for a stop or reboot.
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return [f"{short_value('', before)} -> {short_value('', after)}"]
    restarts = bool(after.get("restarted"))
    waits = frozenset(waiting)
    texts: list[str] = []
    for key in [*before, *(key for key in after if key not in before)]:
        if key == "restarted" or before.get(key) == after.get(key):
            continue
        suffix = ""
        if key in waits:
            suffix = " (waits for a reboot)"
        elif restarts and key not in _AT_ONCE and key != "status":
            suffix = " (reboot)"
        texts += [f"{text}{suffix}" for text in _difference(key, before.get(key), after.get(key))]
    if restarts and not any(text.endswith("(reboot)") for text in texts):
        texts.append("reboot")
    return texts


def describe_difference(before: Any, after: Any) -> list[str]:
    """Return the differences like `describe_change`, and of a long text the part that differs, such
    as C(archive ...11_30_05.vma -> ...11_31_06.vma).
    """
    return describe_change(*_differing_parts(before, after))


def _differing_parts(before: Any, after: Any) -> tuple[Any, Any]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        pairs = {
            key: _differing_parts(before.get(key), after.get(key)) for key in {**before, **after}
        }
        old, new = ({key: pair[side] for key, pair in pairs.items()} for side in (0, 1))
        return {key: old[key] for key in before}, {key: new[key] for key in after}
    texts = [_one_line(side) for side in (before, after) if isinstance(side, str)]
    longest = max(map(len, texts), default=0)
    if before == after or longest <= _LONGEST_VALUE:
        return before, after
    same = len(os.path.commonprefix(texts)) if len(texts) > 1 else 0
    begin = max(0, min(same - _SHOWN_BEFORE, longest - _SHOWN))
    first, last = (
        _part(side, begin) if isinstance(side, str) else side for side in (before, after)
    )
    return first, last


def _part(text: str, begin: int) -> str:
    """Return the part of a text that is shown, with an ellipsis for what is left out."""
    line, end = _one_line(text), begin + _SHOWN
    return f"{_LONG if begin else ''}{line[begin:end]}{_LONG if len(line) > end else ''}"


def _difference(key: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, list) and isinstance(new, list):
        yield from _list_difference(key, old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for part in [*old, *(part for part in new if part not in old)]:
            if old.get(part) != new.get(part):
                yield from _difference(f"{key} {part}", old.get(part), new.get(part))
    elif key == "status":
        yield "start" if new == "running" else str(new)
    elif isinstance(old, list) or isinstance(new, list):
        yield from _list_difference(key, old or [], new or [])
    elif old in _UNSET:
        yield f"{key} {short_value(key, new)} added".replace("  ", " ")
    elif new in _UNSET:
        yield f"{key} removed"
    else:
        yield f"{key} {short_value(key, old)} -> {short_value(key, new)}"


def _list_difference(key: str, old: Any, new: Any) -> Iterator[str]:
    before = old if isinstance(old, list) else [old]
    after = new if isinstance(new, list) else [new]
    noun = _SINGULAR.get(key, key)
    added = [one for one in after if one not in before]
    removed = [one for one in before if one not in after]
    if not (added or removed):
        yield f"order of {key}"
    changed = _names(added) & _names(removed)
    yield from (f"{noun} {name} changed" for name in sorted(changed))
    for word, items in (("added", added), ("removed", removed)):
        texts = [short_value(key, one) for one in items if not _names([one]) & changed]
        if len(texts) > 2 or any(text == _LONG for text in texts):
            yield f"{counted(len(texts), noun)} {word}"
        else:
            yield from (f"{noun} {text} {word}".replace("  ", " ") for text in texts)


def _names(items: Iterable[Any]) -> set[str]:
    return {str(one["name"]) for one in items if isinstance(one, Mapping) and one.get("name")}


_LONG = "..."
_UNSET: tuple[Any, ...] = (None, "", [], {})


def short_value(key: str, value: Any) -> str:
    """Return a value in a few characters: sizes with their unit, a long text as an ellipsis."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if key in _IN_MIB and isinstance(value, int):
        return render_size(value * MIB)
    if isinstance(value, Mapping):
        return str(next((value[key] for key in _TELLING if value.get(key)), ""))
    text = _one_line(str(value))
    return text if len(text) <= _LONGEST_VALUE else _LONG


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def without_unset(diff: Any) -> Any:
    """Return a diff, or a list of them, without the keys that are unset before and after."""
    if isinstance(diff, list):
        return [without_unset(one) for one in diff]
    if not (isinstance(diff, Mapping) and "before" in diff and "after" in diff):
        return diff
    before, after = _both_set(diff["before"], diff["after"])
    return {**diff, "before": before, "after": after}


def _both_set(before: Any, after: Any) -> tuple[Any, Any]:
    sides = [{} if side is None else side for side in (before, after)]
    if not all(isinstance(side, Mapping) for side in sides):
        return before, after
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    for key in [*sides[0], *(key for key in sides[1] if key not in sides[0])]:
        values = _both_set(sides[0].get(key), sides[1].get(key))
        if all(value in _UNSET for value in values):
            continue
        for side, value, kept in zip(sides, values, (old, new), strict=True):
            if key in side:
                kept[key] = value
    return old, new


def describe_new(values: Mapping[str, Any]) -> str:
    """Return a new guest in a few words: C(2 cores, 4G, 70G on pve3)."""
    parts: list[str] = []
    cores = values.get("cores")
    if isinstance(cores, int):
        parts.append(counted(cores * (values.get("sockets") or 1), "core"))
    memory = values.get("memory")
    if isinstance(memory, int):
        parts.append(render_size(memory * MIB))
    sizes = disk_sizes(values)
    if sizes:
        parts.append(render_size(sum(sizes)))
    text = ", ".join(parts)
    node = values.get("node")
    return f"{text} on {node}".strip() if node else text


def disk_sizes(values: Mapping[str, Any]) -> list[int]:
    """Return the sizes of the disks in the values of a guest, in bytes."""
    sizes: list[int] = []
    for value in values.values():
        size = (
            read_size(str(value["size"]))
            if isinstance(value, Mapping) and value.get("size")
            else None
        )
        if size:
            sizes.append(size)
    return sizes
