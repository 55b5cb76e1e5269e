# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option of every module that writes: check mode and server refuse the same values.

Each test takes a task that works, and sets each option of a module in turn to texts or numbers. If
check mode accepts a value, the run may not be refused by the server's check of its parameters. The
simulator checks requests with the API schema and the formats of Proxmox VE.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.declared import MODULES, minimal_tasks
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import writes_of
from tests.modules.test_values_foreseen import BASES, ROOT
from tests.tools.declarations import Options, load
from tests.tools.make_modules import declared_options

DECLARATIONS = load()
TEXTS = ("no such value!", "-", "a,b", "Größe", "x" * 3000, "0")
NUMBERS = (-5, 0, 10**9)
UNFORESEEN = ("ApiError", "ValidationFailed", "InternalError")
WRITING = [name for name in MODULES if not name.endswith("_info")]
NO_SERVER = "Connection refused"  # Proxmox VE asks an IPAM when it is declared
# The options of the task itself.
OF_TASK = frozenset(("tenant", "tenant_prefix", "wait", "timeout", "task_timeout"))
# Tasks of modules that have other options with another type.
MORE_TASKS: dict[str, list[dict[str, Any]]] = {
    "vm": [
        {
            "name": "both",
            "node": "pve1",
            "memory": 1024,
            "disks": [{"name": "scsi0", "size": 1, "storage": "local-lvm"}],
            "nics": [{"bridge": "vmbr0"}],
        }
    ],
    "container": [
        {
            "name": "both-container",
            "node": "pve1",
            "source": "debian-13-standard",
            "rootfs": {"storage": "local-lvm", "size": 4},
            "nics": [{"bridge": "vmbr0"}],
            "mounts": [{"size": 1, "path": "/data", "storage": "local-lvm"}],
        }
    ],
    "backup": [
        {"vmid": 9000, "storage": "local", "keep": {"keep_last": 3}},
        {"vmid": 9000, "storage": "local", "fleecing": {"enabled": True, "storage": "local"}},
    ],
    "ceph_osd": [{"node": "pve1", "dev": "/dev/sdb", **ROOT}],
    "ceph_pool": [{"name": "fast"}, {"name": "coded", "erasure_coding": {"k": 2, "m": 1}}],
    "firewall_check": [
        {"source": {"address": "192.0.2.1"}, "dest": {"node": "pve1"}, "dport": 22},
        {
            "source": {"address": "192.0.2.1"},
            "dest": {"vmid": 9000, "address": "192.0.2.7"},
            "dport": 22,
        },
    ],
    "node": [
        {"node": "pve1", "description": "Rack 4"},
        {"node": "pve1", "acme": {"domains": [{"domain": "a.example.com"}]}},
        {"node": "pve1", "hosts": [{"address": "192.0.2.9", "names": ["nas"]}]},
    ],
    "sdn": [
        {"ipams": [{"name": "nb", "type": "netbox", "url": "https://nb.test", "token": "s3cret"}]},
        {
            "ipams": [
                {
                    "name": "ip",
                    "type": "phpipam",
                    "url": "https://ip.test",
                    "section": 1,
                    "token": "s3cret",
                }
            ]
        },
        {"dns": [{"name": "pdns", "type": "powerdns", "url": "https://d.test", "key": "s3cret"}]},
        {"controllers": [{"name": "ctl", "type": "evpn", "asn": 65000, "peers": ["192.0.2.1"]}]},
        {
            "fabrics": [{"name": "fab", "protocol": "openfabric", "ip_prefix": "10.8.0.0/24"}],
            "fabric_nodes": [
                {
                    "fabric": "fab",
                    "node": "pve1",
                    "ip": "10.8.0.1",
                    "interfaces": [{"name": "vmbr0", "hello_multiplier": 3}],
                }
            ],
        },
    ],
}
DISKS = [{"size": 1, "storage": "local-lvm"}]
MORE_TASKS |= {
    "storage": [
        {
            "name": "more",
            "type": "dir",
            "path": "/srv/more",
            "content": ["backup"],
            "prune_backups": {"keep_last": 3},
        }
    ],
    "vms": [
        {
            "vms": [{"name": "both", "disks": DISKS}],
            "backup": {"schedule": "daily", "storage": "local"},
            "node": "pve1",
        }
    ],
}
MORE_TASKS["container"].append(
    {
        "name": "both-container",
        "node": "pve1",
        "source": "debian-13-standard",
        "rootfs": {"storage": "local-lvm", "size": 4},
        "devices": [{"path": "/dev/net/tun"}],
        **ROOT,
    }
)
# Guests that a task changes, and the facts that its node must have.
BEFORE: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "container_image": [("container", MORE_TASKS["container"][0])],
    "restore": [("backup", {"vmid": 9000, "storage": "local"})],
    "snapshot": [("vm", MORE_TASKS["vm"][0])],
}
CEPH = {"rules": ["on-nvme"], "osds": {"7": {"host": "pve1", "up": True, "in": True}}}
# Options whose values no task of this test can show, as C(module.option), with the reason.
NOT_SHOWN = {
    r"failover\.from_site": "the name of a connection: no server gets it",
    r"(vm|container|clone)\.quota_sites": "names of connections, see test_quota_sites.py",
    r"metrics\.drills": "a record in JSON: no server gets it",
    r"volume\.ssh\..*": "options of ssh on the controller: no server gets them",
    r"vm\.disks\.target_vmid": "a disk that moves to another guest, see test_handover.py",
    r"vms\.(disks|nics)\..*": "options of module vm",
    r"ha_group\..*": "Proxmox VE 8 only, see tests/modules/test_ha.py",
}


def tasks_of(module: str) -> list[dict[str, Any]]:
    """Return tasks of a module that work."""
    known = [task for name, task in BASES.values() if name == module]
    return [*known, *MORE_TASKS.get(module, [])] or [minimal_tasks()[module]]


def leaves(options: Options, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield each option without choices that is a text, a number or a list of these, and whether it
    is a number.
    """
    for name, option in options.items():
        place = (*path, name)
        kinds = (option["type"], option.get("elements"))
        if option.get("suboptions"):
            yield from leaves(option["suboptions"], place)
        elif place[0] in OF_TASK or "choices" in option:
            continue
        elif kinds[0] not in ("bool", "dict"):
            yield place, bool({"int", "float"} & set(kinds))


def with_value(options: Options, task: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set an option of a task, in the first item of a list."""
    first, *rest = path
    option = options[first]
    if not rest:
        task[first] = [value] if option["type"] == "list" else value
    elif option["type"] == "list":
        task[first] = task.get(first) or [{}]
        with_value(option["suboptions"], task[first][0], tuple(rest), value)
    else:
        task[first] = task.get(first) if isinstance(task.get(first), dict) else {}
        with_value(option["suboptions"], task[first], tuple(rest), value)


def is_shown(result: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    """Return whether a task accepted the value of an option, or refused it because of this value."""
    if not result.get("failed"):
        return True
    message = result["msg"].lower().replace("-", "_")
    text = re.escape(str(value)[:20])
    return path[-1] in message or re.search(rf"(?<!\w){text}", result["msg"]) is not None


def prepare(lab: Lab, module: str) -> None:
    """Bring the cluster to its start, with the objects that tasks of a module change."""
    lab.simulator.reset()
    if module.startswith("ceph_"):
        lab.simulator.steer("/cluster", {"ceph": CEPH})
    for name, task in BEFORE.get(module, ()):
        result = lab.run(name, **copy.deepcopy(task))
        assert not result.get("failed"), result["msg"]
    lab.simulator.reset_log()


def with_place(task: Any, path: tuple[str, ...]) -> int:
    """Return how many parts of the place of an option a task has."""
    if isinstance(task, list):
        return max((with_place(item, path) for item in task), default=0)
    if not path or not isinstance(task, dict) or path[0] not in task:
        return 0
    return 1 + with_place(task[path[0]], path[1:])


def faults_of(lab: Lab, module: str, task: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the result of check mode, and its difference to the run or an empty text."""
    prepare(lab, module)
    foreseen = lab.run(module, check=True, **copy.deepcopy(task))
    if writes_of(lab) != []:
        return foreseen, "check mode writes"
    if foreseen.get("failed"):
        is_bug = "exception" in foreseen or foreseen["error"]["category"] == "InternalError"
        return foreseen, f"a bug: {foreseen['msg']}" if is_bug else ""
    lab.simulator.reset_log()
    done = lab.run(module, **task)
    refused = [entry for entry in lab.simulator.writes() if entry["status"] == 400]
    is_unforeseen = done.get("failed") and done["error"]["category"] in UNFORESEEN
    is_unforeseen = is_unforeseen and NO_SERVER not in done["msg"]
    if is_unforeseen or refused:
        return foreseen, f"check mode accepts it, and the run says: {done['msg']}"
    return foreseen, ""


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("module", WRITING)
def test_check_mode_refuses_what_the_run_refuses(
    unused: Lab, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = declared_options(module, DECLARATIONS)
    found: list[str] = []
    hidden: list[str] = []
    tasks = tasks_of(module)
    for number, (path, is_number) in enumerate(leaves(options)):
        values: tuple[Any, ...] = NUMBERS if is_number else TEXTS
        place = number % len(values)
        most = max(with_place(task, path) for task in tasks)
        with_option = [task for task in tasks if with_place(task, path) == most]
        one = [with_option[number % len(with_option)]]
        shown: list[bool] = []
        messages: list[str] = []
        for value in cases(full=values, short=values[place : place + 1]):
            for task in cases(full=tasks, short=one):
                changed = copy.deepcopy(task)
                with_value(options, changed, path, value)

                foreseen, fault = faults_of(unused, module, changed)
                shown.append(is_shown(foreseen, path, value))
                messages.append(str(foreseen.get("msg")))
                found += [f"{'.'.join(path)}={str(value)[:20]!r}: {fault}"] if fault else []
        label = ".".join((module, *path))
        if not any(shown) and not any(re.fullmatch(pattern, label) for pattern in NOT_SHOWN):
            hidden.append(f"{label}: {messages[0]}")
    assert found == []
    assert hidden == []


def test_most_modules_have_options_of_their_own() -> None:
    """The other modules have choices and switches only."""
    numbers = {name: len(list(leaves(declared_options(name, DECLARATIONS)))) for name in WRITING}
    assert sum(numbers.values()) > 900
    assert len([name for name, number in numbers.items() if number]) > 55
