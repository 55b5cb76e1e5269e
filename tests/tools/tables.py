# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the tables of the guides that follow from the code and from the last measurement:
``python -m tests.tools.tables``.

A table stands between two marks in its page. A test fails while one differs from the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

import tests.conftest
from ansible_collections.pve.fleet.plugins.module_utils._preflight import needs
from ansible_collections.pve.fleet.plugins.module_utils._preflight.needs import Need
from ansible_collections.pve.fleet.plugins.module_utils._vm.config.hotplug import waits_for_stop
from tests.bench import report, results
from tests.tools.make_options import DECLARATIONS

REPO = tests.conftest.REPO  # importing it makes the working tree importable as the collection
MODULES = REPO / "plugins" / "modules"
# Where a need has to be met: the path of an access rule, and which object is meant.
PLACES: Mapping[str, str] = {
    needs.VM: "the VM or its pool",
    needs.NEW_VM: "`/vms`, or the pool of the new VM",
    needs.TEMPLATE: "the template",
    needs.STORAGE: "the storages of disks",
    needs.IMAGES: "the storage of the file",
    needs.BRIDGE: "`/sdn/zones/localnetwork`",
    needs.NODE: "`/nodes`",
    needs.POOL: "`/pool/POOL`",
    needs.ROOT: "`/`",
    needs.ACCESS: "`/access`",
    needs.GROUPS: "`/access/groups`",
    needs.REALMS: "`/access/realm/REALM`",
    needs.ALL_STORAGES: "`/storage`",
    needs.MAPPINGS: "`/mapping`",
}
_CONFIG = {f"VM.Config.{part}" for part in needs._CONFIG_PARTS}


def privileges() -> str:
    """Return a row for each module with what its caller needs, and where."""
    lines = ["| module | privileges |", "|---|---|"]
    for name in sorted(file.stem for file in MODULES.glob("*.py")):
        tasks = [task for task in needs.tasks_of([name]) if task in needs.TASKS]
        found = dict.fromkeys(need for task in tasks for need in needs.TASKS[task])
        privileges_there = "; ".join(_by_place(tuple(found)))
        lines.append(f"| `{name}` | {privileges_there or 'none beyond a login'} |")
    return "\n".join(lines)


def tasks() -> str:
    """Return a row for each task of preflight that is not a module."""
    lines = ["| for | task | privileges |", "|---|---|---|"]
    for name, purpose in _PURPOSES.items():
        lines.append(f"| {purpose} | `{name}` | {'; '.join(_by_place(needs.TASKS[name]))} |")
    return "\n".join(lines)


_PURPOSES: Mapping[str, str] = {
    "vm_clone": "cloning, with `source`",
    "vm_migrate": "moving a VM to another node",
    "vm_template": "`state: template`",
    "vm_agent": "addresses from the guest agent",
    "vm_console": "opening the console",
    "vm_mapping": "devices of the host, by a mapping",
    "vm_startup": "`startup`",
    "pool_members": "moving an existing VM into a pool",
    "rollback": "rolling back a snapshot",
}


def _by_place(all_needs: tuple[Need, ...]) -> Iterator[str]:
    """Yield the privileges for each place, those of several tasks together."""
    together: dict[tuple[str, str, bool], dict[str, None]] = {}
    for need in all_needs:
        key = (PLACES[need.kind], _versions(need), need.any_of)
        together.setdefault(key, {}).update(dict.fromkeys(need.privileges))
    for (place, versions, any_of), names in together.items():
        text = _either(names) if any_of else ", ".join(_short(names))
        yield f"{text} on {place}{versions}"


def _versions(need: Need) -> str:
    if need.until != needs.NEVER:
        return f" (before Proxmox VE {need.until[0]})"
    if need.since > (8, 0):
        return f" (Proxmox VE {need.since[0]})"
    return ""


def _either(names: Mapping[str, None]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def _short(names: Mapping[str, None]) -> list[str]:
    """Return the names, with one for all of VM.Config where each of these is among them."""
    if set(names) < _CONFIG or not set(names) >= _CONFIG:
        return [f"`{name}`" for name in names]
    return [f"`{name}`" for name in names if name not in _CONFIG] + ["`VM.Config.*`"]


# A change of each option, by what it becomes in Proxmox VE: key, value before, value after.
Change = tuple[str, str | None, str | None]
OPTIONS: Mapping[str, Change] = {
    "cores": ("cores", "2", "4"),
    "sockets": ("sockets", "1", "2"),
    "vcpus": ("vcpus", "1", "2"),
    "cpu": ("cpu", "host", "x86-64-v2-AES"),
    "cpulimit": ("cpulimit", "1", "2"),
    "cpuunits": ("cpuunits", "100", "200"),
    "numa": ("numa", "0", "1"),
    "memory": ("memory", "2048", "4096"),
    "balloon": ("balloon", "1024", "2048"),
    "balloon: 0": ("balloon", "1024", "0"),
    "bios": ("bios", "seabios", "ovmf"),
    "machine": ("machine", "pc", "q35"),
    "ostype": ("ostype", "l26", "other"),
    "scsihw": ("scsihw", "lsi", "virtio-scsi-single"),
    "boot": ("boot", "order=scsi0", "order=net0"),
    "agent": ("agent", "0", "1"),
    "onboot": ("onboot", "0", "1"),
    "startup": ("startup", "order=1", "order=2"),
    "protection": ("protection", "0", "1"),
    "hotplug": ("hotplug", "network", "network,disk"),
    "vga": ("vga", "std", "serial0"),
    "serial_console": ("serial0", None, "socket"),
    "description": ("description", "a", "b"),
    "tags": ("tags", "a", "b"),
}
_DISK = "ceph:vm-100-disk-0"
DISKS: Mapping[str, Change] = {
    "a new disk, or `state: detached` (scsi, virtio)": ("scsi1", None, _DISK),
    "a new disk, or `state: detached` (ide, sata)": ("sata1", None, _DISK),
    "iso": ("ide2", "local:iso/a.iso,media=cdrom", "local:iso/b.iso,media=cdrom"),
    "cache": ("scsi0", _DISK, f"{_DISK},cache=writeback"),
    "ssd": ("scsi0", _DISK, f"{_DISK},ssd=1"),
    "discard": ("scsi0", _DISK, f"{_DISK},discard=on"),
    "iothread": ("scsi0", _DISK, f"{_DISK},iothread=1"),
    "backup": ("scsi0", _DISK, f"{_DISK},backup=0"),
    "replicate": ("scsi0", _DISK, f"{_DISK},replicate=0"),
    "readonly": ("scsi0", _DISK, f"{_DISK},ro=1"),
    "serial": ("scsi0", _DISK, f"{_DISK},serial=a"),
}
_NIC = "virtio=BC:24:11:00:00:01,bridge=vmbr0"
NICS: Mapping[str, Change] = {
    "a new card, or `state: absent`": ("net1", None, _NIC),
    "model": ("net0", _NIC, _NIC.replace("virtio", "e1000")),
    "bridge": ("net0", _NIC, _NIC.replace("vmbr0", "vmbr1")),
    "vlan": ("net0", _NIC, f"{_NIC},tag=5"),
    "trunks": ("net0", _NIC, f"{_NIC},trunks=5;6"),
    "mac": ("net0", _NIC, _NIC.replace("00:01", "00:02")),
    "firewall": ("net0", _NIC, f"{_NIC},firewall=1"),
    "link_down": ("net0", _NIC, f"{_NIC},link_down=1"),
    "mtu": ("net0", _NIC, f"{_NIC},mtu=1400"),
    "rate": ("net0", _NIC, f"{_NIC},rate=5"),
    "queues": ("net0", _NIC, f"{_NIC},queues=2"),
}
_LIVE = ("", "network,disk,usb,memory,cpu", "0")


def reboots() -> str:
    """Return a row for each option of a VM: when a change of a running VM applies."""
    default = "without `hotplug`"
    lines = [f"| option | {default} | with `memory,cpu` in `hotplug` | with `hotplug: 0` |"]
    lines.append("|---|---|---|---|")
    for prefix, changes in (("", OPTIONS), ("disks[].", DISKS), ("nics[].", NICS)):
        for name, change in changes.items():
            label = name if " " in name and ":" not in name else f"{prefix}{name}"
            shown = label if "`" in label else f"`{label}`"
            if " " in name and "`" in name:
                shown = name
            cells = [_when(change, hotplug) for hotplug in _LIVE]
            lines.append(f"| {shown} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _when(change: Change, hotplug: str) -> str:
    live = {"ostype": "l26", **({"hotplug": hotplug} if hotplug else {})}
    return "reboot" if waits_for_stop(*change, live) else "at once"


def declared(part: str) -> set[str]:
    """Return the declared options that become one of Proxmox VE, of a VM, its disks or its nics."""
    text = (DECLARATIONS / "vm.yml").read_text(encoding="utf-8")
    options = yaml.safe_load(text)["sections"]["hardware"]["options"]
    if part:
        options = options[part]["suboptions"]
    return {name for name, option in options.items() if "pve" in option}


def slices() -> str:
    """Return a row for each way to work on 60 VMs, as it was measured last."""
    return report.slices(results.load())


TABLES = {
    ("docs/awx.md", "slices"): slices,
    ("docs/security.md", "privileges of modules"): privileges,
    ("docs/security.md", "privileges of tasks"): tasks,
    ("docs/vm.md", "reboots"): reboots,
}


def with_tables(page: str, text: str) -> str:
    """Return the text of a page with its tables as they follow from the code.

    Raises ValueError where the page lacks a mark.
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
