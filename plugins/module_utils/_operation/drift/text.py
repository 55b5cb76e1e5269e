# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on drift as lines for people (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..._foundation.cluster.quota import format_figures
from ..._foundation.core.quantities import MIB, read_size, readable_sizes
from ..._guests.guest.plan.origin import origins
from ..._guests.kinds.words import CT
from .model import IN_SYNC, SOURCE

Row = Mapping[str, Any]
# Options that are a number of MiB.
_IN_MIB = ("memory", "balloon", "swap")


def lines_of(document: Row) -> list[str]:
    """Return the lines of a report; VMs in sync without a reason are only counted."""
    lines = [_headline(document)]
    for row in document["sites"]:
        if row["reason"]:
            lines.append(f"unknown: {_place(row)}: {_one_line(row['reason'])}")
    for row in document["nodes"]:
        lines.append(f"unknown: {_place(row)}: {_one_line(row['reason'])}")
    for row in document["vms"]:
        if row["status"] != IN_SYNC or row["reason"]:
            lines += _difference(_label(row), row)
    for row in document["unlisted"]:
        lines.append(f"{_label(row)}: not in the estate{_who(row)}")
    lines += map(_quota, document["quotas"])
    for row in document["cluster"]:
        if row["status"] != IN_SYNC:
            lines += _difference(_label_of_resource(row), row)
    lines += map(_login, document["logins"])
    return lines


def _headline(document: Row) -> str:
    """Return the finding of the run, with the number of VMs by status."""
    word = "No drift"
    if not document["complete"]:
        word = "Unknown"
    if document["drift"]:
        word = "Drift"
    counts = [f"{name} {number}" for name, number in document["summary"].items() if number]
    nothing = "there is no VM to compare"
    if document["cluster"]:
        nothing = "as in the cluster file"
    return f"{word}: {', '.join(counts) or nothing}"


def _place(row: Row) -> str:
    names = [f"{key} {row[key]}" for key in ("node", "site") if row.get(key)]
    return ", ".join(names) or "the cluster"


def _difference(label: str, row: Row) -> list[str]:
    """Return the lines about a VM or a resource: its differences, or else the steps of a run."""
    lines = [f"{label}: {row['status']}{_who(row)}"]
    if row["reason"]:
        lines.append(f"    {_one_line(row['reason'])}")
    options = list(map(_option, row["options"]))
    return lines + (options or [f"    {_one_line(step)}" for step in row["steps"]])


def _label_of_resource(row: Row) -> str:
    label = f"{row['section']} {row['name']}".rstrip()
    return f"{label} ({row['site']})" if row["site"] else label


def _login(row: Row) -> str:
    place = f" at {row['site']}" if row["site"] else ""
    return f"logged in{place}: {row['user']} at {row['last']}"


def _label(row: Row) -> str:
    label = row["name"] or ("container" if row["kind"] == CT else "VM")
    if row["tenant"]:
        label = f"{row['tenant']}/{label}"
    places = [str(row[key]) for key in ("vmid", "node", "site") if row[key]]
    if not places:
        return label
    return f"{label} ({', '.join(places)})"


def _who(row: Row) -> str:
    """Return who started the last task of a VM, and when."""
    task = row["last_task"]
    if task is None:
        return ""
    who = task["user"]
    if task["token"]:
        who = f"{who}!{task['token']}"
    what = f"last task {task['type']} by {who}"
    return f"; {what} at {task['started']}, {task['status']}"


def _option(option: Row) -> str:
    name = option["option"]
    if name == SOURCE:
        actual, wanted = origins(option["actual"]), origins(option["wanted"])
        noun = "image" if "@" in actual else "template"
        fact = f"it was cloned from {noun} {actual}, and the source is {wanted} now"
        return f"    source: {fact}; a run does not replace the VM"
    words = ["wanted", "actual"]
    values = [option["wanted"], option["actual"]]
    if option["pending"] is not None:
        words.append("pending")
        values.append(option["pending"]["value"])
    pairs = [f"{word} {text}" for word, text in zip(words, _texts(name, values), strict=True)]
    return f"    {name}: {', '.join(pairs)}"


def _texts(option: str, values: list[Any]) -> list[str]:
    """Return the values of an option as readable texts; different sizes have different texts."""
    sizes = [_size(option, value) for value in values]
    readable = iter(readable_sizes(*(size for size in sizes if size is not None)))
    texts: list[str] = []
    for value, size in zip(values, sizes, strict=True):
        if size is None:
            texts.append(_in_one_line(value))
        elif isinstance(value, Mapping):
            texts.append(_in_one_line({**value, "size": next(readable)}))
        else:
            texts.append(next(readable))
    return texts


def _size(option: str, value: Any) -> int | None:
    """Return the bytes of a value: of memory in MiB, or of a volume with its size in PVE's form."""
    if option in _IN_MIB and isinstance(value, int):
        return value * MIB
    if isinstance(value, Mapping) and isinstance(value.get("size"), str):
        return read_size(value["size"])
    return None


def _in_one_line(value: Any) -> str:
    """Return a value on one line; a text of a tenant may contain line breaks."""
    if value is None:
        return "not set"
    return json.dumps(value, sort_keys=True)


def _quota(row: Row) -> str:
    used, limit = format_figures(row["kind"], row["used"], row["limit"])
    text = f"quota of {row['tenant']}: {row['kind']} {used} of {limit}"
    if row["site"]:
        text = f"{text} at {row['site']}"
    if row["exceeded"]:
        text = f"{text}, exceeded"
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
