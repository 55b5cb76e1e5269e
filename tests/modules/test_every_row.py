# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows that roles pass to modules: check mode refuses every value that the run refuses.

The rows of a cluster file, the guests of an estate, its classes, defaults and settings of tenants
have no specification in the module that gets them. Each option of a row gets values of its type and
of others. A value that the run accepts changes nothing in the second run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused, writes_of
from tests.modules.test_every_option import (
    DECLARATIONS,
    NO_SERVER,
    NUMBERS,
    TEXTS,
    leaves,
    prepare,
    tasks_of,
    with_place,
    with_value,
)
from tests.tools.declarations import Options
from tests.tools.make_modules import declared_options
from tests.tools.sections import sections_of

OTHERS: tuple[Any, ...] = (None, True, "", 1.5, [], {}, [None], ["a", "a"], {"a": 1}, " 1 ")
CONNECTION = frozenset(("host", "user", "password", "token_id", "token_secret", "sites"))
SECTIONS = {one["name"]: one["module"] for one in sections_of(DECLARATIONS)}
# Where the option of a guest can stand.
PLACES = ("row", "class", "defaults", "tenant", "tenant defaults")
# Secrets that are sent again in each run.
AGAIN = ("update_password", "update_secrets")
# Names that no request of Proxmox VE lists for all nodes.
UNSEEN = {"ceph_pools": "erasure_coding.profile=", "storages": "thinpool="}


def values_of(number: int, is_number: bool) -> tuple[Any, ...]:
    """Return the values of an option: all, or one of its type and one of another type."""
    own: tuple[Any, ...] = NUMBERS if is_number else TEXTS
    one = (own[number % len(own)], OTHERS[number % len(OTHERS)])
    return cases(full=(*own, *OTHERS), short=one)


def difference(lab: Lab, module: str, before: str, task: dict[str, Any]) -> str:
    """Return the difference of check mode, run and second run of a task, or an empty text."""
    prepare(lab, before)
    foreseen = lab.run(module, check=True, **copy.deepcopy(task))
    if writes_of(lab):
        return "check mode writes"
    if foreseen.get("failed"):
        is_bug = "exception" in foreseen or foreseen["error"]["category"] == "InternalError"
        return f"a bug: {foreseen['msg']}" if is_bug else ""
    done = lab.run(module, **copy.deepcopy(task))
    if done.get("failed"):
        return "" if NO_SERVER in done["msg"] else f"the run fails: {done['msg']}"
    if foreseen["changed"] != done["changed"]:
        return f"check mode says changed={foreseen['changed']}"
    again = lab.run(module, check=True, **copy.deepcopy(task))
    if again.get("failed") or again["changed"]:
        return f"the second run: {again.get('msg') or again.get('plan') or again}"
    return ""


def changed_rows(
    options: Options, tasks: list[dict[str, Any]]
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield each option with a value, its number, and the row."""
    for number, (path, is_number) in enumerate(leaves(options)):
        if path[-1] in AGAIN:
            continue
        most = max(with_place(task, path) for task in tasks)
        with_option = [task for task in tasks if with_place(task, path) == most]
        base = {**with_option[number % len(with_option)]}
        for value in values_of(number, is_number):
            row = copy.deepcopy({key: one for key, one in base.items() if key not in CONNECTION})
            with_value(options, row, path, value)
            if value in ([], {}, [None], ["a", "a"]):
                _set(row, path, value)
            yield f"{'.'.join(path)}={str(value)[:20]!r}", number, row


def _set(row: Any, path: tuple[str, ...], value: Any) -> None:
    """Set the last part of a place to a value that `with_value` puts into a list."""
    for part in path[:-1]:
        row = row[part][0] if isinstance(row[part], list) else row[part]
    row[path[-1]] = value


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("section", SECTIONS)
def test_check_mode_foresees_the_rows_of_a_cluster_file(
    unused: Lab, section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = SECTIONS[section]
    is_list = declared_options("cluster", DECLARATIONS)[section]["type"] == "list"
    found: list[str] = []
    for label, _number, row in changed_rows(
        declared_options(module, DECLARATIONS), tasks_of(module)
    ):
        task = {section: [row] if is_list else row}
        fault = difference(unused, "cluster", module, task)
        is_unseen = label.startswith(UNSEEN.get(section, "-"))
        found += [f"{label}: {fault}"] if fault and not is_unseen else []
    assert not found, "\n".join(found)


CONTAINER: dict[str, Any] = {
    "name": "c1",
    "source": "debian-13-standard",
    "rootfs": {"size": 1, "storage": "local-lvm"},
}
BOOLEANS: dict[str, tuple[str, dict[str, Any]]] = {
    "a number": ("vm", {"name": "a1", "cores": True}),
    "a number of a row": ("vms", {"vms": [{"name": "a1", "cores": True}]}),
    "a number of a NIC": ("vm", {"name": "a1", "nics": [{"bridge": "vmbr0", "mtu": True}]}),
    "cores of a container": ("container", {**CONTAINER, "cores": True}),
    "a dictionary": ("vms", {"containers": [{**CONTAINER, "cores": {"a": 1}}]}),
    "an open option": ("vm", {"name": "a1", "options": {"cpuunits": True}}),
    "a number of a section": (
        "cluster",
        {"ha_resources": [{"sid": "vm:9000", "max_restart": True}]},
    ),
    "a number of an entry": ("sdn", {"vnets": [{"name": "v1", "zone": "z1", "tag": False}]}),
    "a number of a resource": ("ha_resource", {"sid": "vm:9000", "max_restart": True}),
}


@pytest.mark.parametrize("case", BOOLEANS)
def test_a_boolean_is_not_a_number(unused: Lab, case: str) -> None:
    """Ansible takes the word `yes` for 1 in the place of a number."""
    module, task = BOOLEANS[case]
    text = refused(unused, module, **task)["msg"]
    parts = ("is a boolean, not a number", "is not a whole number", "is not a number")
    assert any(part in text for part in parts), text


def estate(kind: str, place: str, row: dict[str, Any], option: str) -> dict[str, Any]:
    """Return the task of module vms with an option of a guest at a place."""
    row = {**row, "tenant": "acme"}
    task: dict[str, Any] = {f"{kind}s": [row], "tenant_settings": {"acme": {}}, "blank": True}
    if place == "row":
        return task
    moved = {option: row.pop(option)} if option in row else {}
    if place == "class":
        row["class"] = "some"
        return {**task, "classes": {"some": moved}}
    if place == "defaults":
        return {**task, "defaults": moved}
    settings = moved if place == "tenant" else {"defaults": moved}
    return {**task, "tenant_settings": {"acme": settings}}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["vm", "container"])
def test_check_mode_foresees_the_guests_of_an_estate(unused: Lab, kind: str, place: str) -> None:
    found: list[str] = []
    tasks = [one for one in tasks_of(kind) if "vmid" not in one and "token_id" not in one]
    for label, number, row in changed_rows(declared_options(kind, DECLARATIONS), tasks):
        if cases(full=False, short=PLACES[number % len(PLACES)] != place):
            continue
        option = label.partition("=")[0].partition(".")[0]
        task = estate(kind, place, row, option)
        fault = difference(unused, "vms", kind, task)
        found += [f"{label}: {fault}"] if fault else []
    assert not found, "\n".join(found)
