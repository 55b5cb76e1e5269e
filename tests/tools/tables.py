# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the tables of the guides that follow from the code and from the last measurement:
``python -m tests.tools.tables``.

A table stands between two marks in its page. A test fails while one differs from the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import tests.conftest
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.config.hotplug import (
    waits_for_stop as waits_for_restart,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.config.hotplug import (
    waits_for_stop,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs import need as kinds
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.generated.tasks import (
    TASKS,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.need import (
    RequiredPrivileges,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.needs import tasks_of
from tests.bench import report, results
from tests.tools.declarations import load
from tests.tools.make_modules import modules_of
from tests.tools.make_rows import CONFIG_PARTS, administrative, other_tasks, purposes
from tests.tools.make_sections import guides

REPO = tests.conftest.REPO  # importing it makes the working tree importable as the collection
# The place where a need must be met: the path of an access rule, and its object.
PLACES: Mapping[str, str] = {
    kinds.VM: "the VM or its pool",
    kinds.NEW_VM: "`/vms`, or the pool of the new VM",
    kinds.TEMPLATE: "the template",
    kinds.STORAGE: "the storages of disks",
    kinds.IMAGES: "the storage of the file",
    kinds.TEMPLATE_STORAGE: "the storage of the container template",
    kinds.BRIDGE: "`/sdn/zones/localnetwork`",
    kinds.NODE: "`/nodes`",
    kinds.POOL: "`/pool/POOL`",
    kinds.ROOT: "`/`",
    kinds.ACCESS: "`/access`",
    kinds.GROUPS: "`/access/groups`",
    kinds.REALMS: "`/access/realm/REALM`",
    kinds.ALL_STORAGES: "`/storage`",
    kinds.MAPPINGS: "`/mapping`",
    kinds.NETWORKS: "`/sdn`",
}
_CONFIG = {f"VM.Config.{part}" for part in CONFIG_PARTS}


def privileges() -> str:
    """Return a row for each module with the privileges that its caller needs, and their paths."""
    lines = ["| module | privileges |", "|---|---|"]
    for name in modules_of(load()):
        tasks = [task for task in tasks_of([name]) if task in TASKS]
        found = dict.fromkeys(need for task in tasks for need in TASKS[task])
        privileges_there = "; ".join(_by_place(tuple(found)))
        lines.append(f"| `{name}` | {privileges_there or 'none beyond a login'} |")
    return "\n".join(lines)


def modules() -> str:
    """Return the modules by topic, each declaration with its guide and purpose in a row."""
    lines = ["| module | |", "|---|---|"]
    last = ""
    for topic, names, guide, purpose in purposes(load()):
        if topic != last:
            lines.append(f"| **{topic}** | |")
            last = topic
        shown = ", ".join(f"`pve.fleet.{name}`" for name in names)
        lines.append(f"| {f'[{shown}]({guide})' if guide else shown} | {purpose} |")
    return "\n".join(lines)


def files() -> str:
    """Return the files of each room with the first sentence of their docstrings."""
    lines: list[str] = []
    for room, names in rooms().items():
        lines += [f"### `{room}`", "", "| file | holds |", "|---|---|"]
        lines += [f"| `{name}` | {_subject_of(room, name)} |" for name in names]
        lines.append("")
    return "\n".join(lines).rstrip()


def rooms() -> dict[str, list[str]]:
    """Return the files of each room by its path below `plugins`, without generated ones.

    A room is a folder with files below a wing, a folder without.
    """
    found: dict[str, list[str]] = {}
    for path in sorted((REPO / "plugins").glob("*_utils/**/*.py")):
        name = path.relative_to(REPO / "plugins")
        if path.name == "__init__.py" or path.parent.name == "generated":
            continue
        depth = 3 if name.parts[0] == "module_utils" else 1
        room = Path(*name.parts[:depth])
        found.setdefault(str(room), []).append(str(name.relative_to(room)))
    return {room: sorted(names, key=_folders_last) for room, names in found.items()}


def _folders_last(name: str) -> tuple[int, str]:
    return name.count("/"), name


def _subject_of(room: str, name: str) -> str:
    """Return the first sentence of a file's docstring, without its period."""
    text = (REPO / "plugins" / room / name).read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return re.split(r"(?<=\w)\. ", paragraph)[0].rstrip(".")


def without_tenant() -> str:
    """Return a row for each administrative module: it needs no tenant."""
    lines = ["| administrative module | subject |", "|---|---|"]
    lines += [f"| `{name}` | {subject} |" for name, subject in administrative(load()).items()]
    return "\n".join(lines)


def tasks() -> str:
    """Return a row for each task of preflight that is not a module, if a feature needs it."""
    lines = ["| for | task | privileges |", "|---|---|---|"]
    for name, task in other_tasks().items():
        if "purpose" in task:
            needed = "; ".join(_by_place(TASKS[name]))
            lines.append(f"| {task['purpose']} | `{name}` | {needed} |")
    return "\n".join(lines)


def _by_place(all_needs: tuple[RequiredPrivileges, ...]) -> Iterator[str]:
    """Yield the privileges for each place, merged over all tasks."""
    together: dict[tuple[str, str, bool], dict[str, None]] = {}
    for need in all_needs:
        key = (PLACES[need.kind], _versions(need), need.any_of)
        together.setdefault(key, {}).update(dict.fromkeys(need.privileges))
    for (place, versions, any_of), names in together.items():
        text = _either(names) if any_of else ", ".join(_short(names))
        yield f"{text} on {place}{versions}"


def _release(version: tuple[int, ...]) -> str:
    """Return a version as text, without a zero at its end."""
    return ".".join(map(str, version)).removesuffix(".0")


def _versions(need: RequiredPrivileges) -> str:
    if need.until != kinds.NEVER:
        return f" (before Proxmox VE {_release(need.until)})"
    if need.since > (8, 0):
        return f" (Proxmox VE {_release(need.since)})"
    return ""


def _either(names: Mapping[str, None]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _short(names: Mapping[str, None]) -> list[str]:
    """Return the names, replacing the privileges of VM.Config by one name if all are among them."""
    if set(names) < _CONFIG or not set(names) >= _CONFIG:
        return [f"`{name}`" for name in names]
    return [f"`{name}`" for name in names if name not in _CONFIG] + ["`VM.Config.*`"]


# A change of a VM as (key, value before, value after), by the cell of the table. A direction may
# follow the option: `memory: less`. Each other declared option changes from 0 to 1.
Change = tuple[str, str | None, str | None]
OPTIONS: Mapping[str, Change] = {
    "vcpus: more": ("vcpus", "1", "2"),
    "vcpus: less": ("vcpus", "2", "1"),
    "memory: more": ("memory", "2048", "4096"),
    "memory: less": ("memory", "4096", "2048"),
    "balloon: more or less": ("balloon", "1024", "2048"),
    "balloon: to 0": ("balloon", "1024", "0"),
    "balloon: from 0": ("balloon", "0", "1024"),
    "boot": ("boot", "order=scsi0", "order=net0"),
    "hotplug": ("hotplug", "network", "network,disk"),
    "serial_console": ("serial0", None, "socket"),
    "description": ("description", "a", "b"),
    "tags": ("tags", "a", "b"),
}
_DISK = "ceph:vm-100-disk-0"
DISKS: Mapping[str, Change] = {
    "a new disk (scsi, virtio)": ("scsi1", None, _DISK),
    "a new disk (ide, sata)": ("sata1", None, _DISK),
    "`state: detached` or `absent` (scsi, virtio)": ("scsi1", _DISK, None),
    "`state: detached` or `absent` (ide, sata)": ("sata1", _DISK, None),
    "iso": ("ide2", "local:iso/a.iso,media=cdrom", "local:iso/b.iso,media=cdrom"),
}
_NIC = "virtio=BC:24:11:00:00:01,bridge=vmbr0"
NICS: Mapping[str, Change] = {
    "a new card": ("net1", None, _NIC),
    "`state: absent` of a card": ("net1", _NIC, None),
    "model": ("net0", _NIC, _NIC.replace("virtio", "e1000")),
    "bridge": ("net0", _NIC, _NIC.replace("vmbr0", "vmbr1")),
    "mac": ("net0", _NIC, _NIC.replace("00:01", "00:02")),
}
_LIVE = ("", "network,disk,usb,memory,cpu", "0")
# The guest must give back the device (qemu-server: PVE/QemuServer.pm, vm_deviceunplug and
# qemu_cpu_hotplug; PVE/QemuServer/Memory.pm, qemu_memory_hotplug).
_RELEASED = {
    "vcpus: less",
    "memory: less",
    "`state: detached` or `absent` (scsi, virtio)",
    "`state: absent` of a card",
    "model",
    "mac",
    "mtu",
    "queues",
}


def reboots() -> str:
    """Return a row for each option of a VM: when a change of a running VM applies."""
    default = "without `hotplug`"
    lines = [f"| option | {default} | with `memory,cpu` in `hotplug` | with `hotplug: 0` |"]
    lines.append("|---|---|---|---|")
    for part, given in (("", OPTIONS), ("disks", DISKS), ("nics", NICS)):
        prefix = f"{part}[]." if part else ""
        for name, change in changes(part, given).items():
            cells = [_when(name, change, hotplug) for hotplug in _LIVE]
            lines.append(f"| {_label(prefix, name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


# The key of Proxmox VE whose sub-keys these options set, with its value.
_WHOLE: Mapping[str, tuple[str, str]] = {"disks": ("scsi0", _DISK), "nics": ("net0", _NIC)}


def changes(part: str, given: Mapping[str, Change]) -> dict[str, Change]:
    """Return the changes of a VM, its disks or its nics: those given, and one of each other
    declared option.
    """
    own = declared(part)
    found = {name: change for name, change in given.items() if name.partition(":")[0] not in own}
    for option, key in own.items():
        special = {name: one for name, one in given.items() if name.partition(":")[0] == option}
        found.update(special or {option: _plain_change(part, key)})
    return found


def _plain_change(part: str, key: str) -> Change:
    if not part:
        return key, "0", "1"
    whole, value = _WHOLE[part]
    return whole, value, f"{value},{key}=1"


def options_by_purpose() -> str:
    """Return a row for each group of options of a VM, and for the connection."""
    declarations = load()
    groups: dict[str, list[str]] = {name: [] for name in declarations["vm"]["groups"]}
    for file in ("vm", "connection"):
        group = ""
        for section in declarations[file]["sections"].values():
            for name, option in section["options"].items():
                group = option.get("group", group)
                groups[group].append(f"`{name}`")
    lines = ["| purpose | options |", "|---|---|"]
    for group, link in declarations["vm"]["groups"].items():
        lines.append(f"| {f'[{group}]({link})' if link else group} | {', '.join(groups[group])} |")
    return "\n".join(lines)


def _label(prefix: str, name: str) -> str:
    """Return the first cell of a change: an option with its direction, or a text."""
    option, _colon, direction = name.partition(": ")
    if direction and "`" not in name:
        return f"`{prefix}{option}`, {direction}"
    return name if " " in name else f"`{prefix}{name}`"


def _when(name: str, change: Change, hotplug: str) -> str:
    live = {"ostype": "l26", **({"hotplug": hotplug} if hotplug else {})}
    if waits_for_stop(*change, live):
        return "reboot"
    return "if the guest releases it" if name in _RELEASED else "at once"


def declared(part: str) -> dict[str, str]:
    """Return the declared options that become one of Proxmox VE, of a VM, its disks or its nics,
    each with the key there.
    """
    options = load()["vm"]["sections"]["hardware"]["options"]
    if part:
        options = options[part]["suboptions"]
    return {name: option["pve"] for name, option in options.items() if "pve" in option}


# Changes of a container as above. `rootfs`, `mounts`, `nics`, `features` and `devices` have rows of
# their own.
_VOLUME = "ceph:vm-100-disk-0"
_CARD = "name=eth0,bridge=vmbr0"
CONTAINER: Mapping[str, Change] = {
    "a new mount point": ("mp0", None, _VOLUME),
    "`state: detached` or `absent` of a mount point": ("mp0", _VOLUME, None),
    "any other option of a mount point": ("mp0", _VOLUME, f"{_VOLUME},ro=1"),
    "any other option of `rootfs`": ("rootfs", _VOLUME, f"{_VOLUME},ro=1"),
    "a new interface in `nics`": ("net0", None, _CARD),
    "`state: absent` of an interface, `net0` to `net9`": ("net0", _CARD, None),
    "`state: absent` of an interface, `net10` and above": ("net10", _CARD, None),
    "any option of an interface": ("net0", _CARD, f"{_CARD},tag=7"),
    "`features`": ("features", "nesting=1", "nesting=0"),
    "a new device": ("dev0", None, "/dev/kvm"),
    "any change of a device": ("dev0", "/dev/kvm", None),
    "`environment`": ("env", "A=1", "A=2"),
    "`name`": ("hostname", "a", "b"),
    "`tags`, `description`": ("tags", "a", "b"),
}


def restarts() -> str:
    """Return a row for each option of a container: when a change of a running one applies."""
    found = dict(CONTAINER)
    for name, option in load()["container"]["sections"]["hardware"]["options"].items():
        is_plain = option.get("parsed") in ("scalar", "property_string")
        if is_plain or name in ("memory", "swap"):
            found[f"`{name}`"] = (option["pve"], "0", "1")
    cells: dict[str, list[str]] = {"at once": [], "with the next start": []}
    for name, change in found.items():
        waits = waits_for_restart(*change, {})
        cells["with the next start" if waits else "at once"].append(name)
    lines = ["| applies | options |", "|---|---|"]
    lines += [f"| {when} | {', '.join(names)} |" for when, names in cells.items()]
    return "\n".join(lines)


def slices() -> str:
    """Return a row for each way to work on 60 VMs, from the last measurement."""
    return report.slices(results.load())


def sections() -> str:
    """Return a row for each section of a cluster file, in the order in which they are applied."""
    rows = "\n".join(guides(load()))
    return f"| section | module | order matters because |\n|---|---|---|\n{rows}"


TABLES = {
    ("docs/architecture.md", "files"): files,
    ("docs/awx.md", "slices"): slices,
    ("docs/cluster.md", "sections"): sections,
    ("docs/containers.md", "restarts"): restarts,
    ("docs/index.md", "modules"): modules,
    ("docs/security.md", "privileges of modules"): privileges,
    ("docs/security.md", "administrative modules"): without_tenant,
    ("docs/security.md", "privileges of tasks"): tasks,
    ("docs/vm.md", "options by purpose"): options_by_purpose,
    ("docs/vm.md", "reboots"): reboots,
}


def with_tables(page: str, text: str) -> str:
    """Return the text of a page with its tables, generated from the code.

    Raises ValueError if the page lacks a mark.
    """
    for (name, table), render in TABLES.items():
        if name != page:
            continue
        begin, end = f"<!-- table: {table} -->\n\n", f"\n\n<!-- end of table: {table} -->"
        before, first, rest = text.partition(begin)
        _old, last, after = rest.partition(end)
        if not first or not last:
            raise ValueError(f"{page} has no marks for the table {table!r}")
        text = f"{before}{begin}{render()}{end}{after}"
    return text


def main() -> None:
    for page in dict.fromkeys(page for page, _table in TABLES):
        file = Path(REPO / page)
        file.write_text(with_tables(page, file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
