# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks and objects that the guests of an estate need, derived from its options (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.formatting import first_of
from ..._foundation.spec.fleet import fleet_spec, with_defaults
from ..._guests.fleet.items import Estate, VmItem, read_estate
from ..._guests.guest.registry import VMS
from ..access.needs.needs import PrivilegeCheck, TaskObjects, Version, questions
from .checks import FAIL, PASS, Row, row

# The options of a VM with a device that is named by its mapping: the word in the ACL path, and the
# sub-key with the name (qemu-server: API2/Qemu.pm, check_hostpci_perm and so on).
_MAPPED = {"hostpci": ("pci", "mapping"), "usb": ("usb", "mapping"), "virtiofs": ("dir", "dirid")}
_CUSTOM = "custom-"
# Since qemu-server 9.1.13 (its changelog), which belongs to Proxmox VE 9.2.
_CPU_MODELS_SINCE: Version = (9, 2)
_CPU_MODELS = "/mapping/cpu/"
_DISKS = ("images", "rootdir")
_READ = ("iso", "import")  # the content that needs a right to read (check_volume_access)
_FILES = (*_READ, "snippets")
# A container whose source is a guest is cloned, else its source is a file.
_CLONING = {"container_create": "container_clone"}
_RUNNING = ("started", "restarted")


@dataclass(frozen=True)
class GuestNeeds:
    """The needs of a guest. `devices` are ACL paths of mappings; `storages` have their content."""

    label: str
    tasks: tuple[str, ...]
    template: str | None
    storages: frozenset[tuple[str, str]]
    bridges: frozenset[str]
    devices: frozenset[str]
    node: str | None
    pool: str | None


def parse_estate(params: Mapping[str, Any]) -> Estate:
    """Return O(estate). Raises FleetError for a mistake in it."""
    given = params.get("estate") or {}
    options = parse_options(fleet_spec(), given, "The option estate was refused")
    site = params.get("site")
    return read_estate(
        with_defaults(fleet_spec(), options), None, ["", str(site)] if site else None
    )


def needs_of(estate: Estate) -> list[GuestNeeds]:
    """Return the needs of the guests that the estate creates or keeps."""
    present = [item for item in estate.items if item.desired.guest.state != "absent"]
    return [_needs_of(item) for item in present]


def _needs_of(item: VmItem) -> GuestNeeds:
    guest, hardware = item.desired.guest, item.desired.hardware
    is_vm = item.kind is VMS
    source = guest.source
    template = None if source is None else str(source.vmid or source.name or "") or None
    content = "images" if is_vm else "rootdir"
    storages = {(disk.storage, content) for disk in hardware.disks if disk.storage}
    if source is not None and source.storage:
        storages.add((source.storage, content))
    storages.update(_files(hardware))
    nics = [values for key, values in hardware.property_strings.items() if key.startswith("net")]
    tasks = ["container_create"]
    if is_vm:
        tasks = ["vm_clone" if template else "vm_create"]
    if guest.state in _RUNNING:
        tasks.append("vm_power")
    if "startup" in {*hardware.scalars, *hardware.property_strings}:
        tasks.append("vm_startup")
    return GuestNeeds(
        label=item.label,
        tasks=tuple(tasks),
        template=template,
        storages=frozenset(storages),
        bridges=frozenset(str(nic["bridge"]) for nic in nics if nic.get("bridge")),
        devices=frozenset(_devices(hardware)) if is_vm else frozenset(),
        node=guest.node,
        pool=guest.pool or None,
    )


def _files(hardware: Any) -> Iterable[tuple[str, str]]:
    """Return the storage and the content of each file that a guest uses."""
    volumes = [text for disk in hardware.disks for text in (disk.volume, disk.import_from) if text]
    volumes += hardware.property_strings.get("cicustom", {}).values()
    for volume in volumes:
        storage, _colon, name = str(volume).partition(":")
        content = name.partition("/")[0]
        if content in _FILES:
            yield storage, content


def _devices(hardware: Any) -> Iterable[str]:
    for key, values in hardware.property_strings.items():
        word, name = _MAPPED.get(key.rstrip("0123456789"), ("", ""))
        if values.get(name):
            yield f"/mapping/{word}/{values[name]}"
    model = str(hardware.property_strings.get("cpu", {}).get("cputype") or "")
    if model.startswith(_CUSTOM):
        yield f"{_CPU_MODELS}{model.removeprefix(_CUSTOM)}"


def storage_items(needs: Iterable[GuestNeeds]) -> list[dict[str, Any]]:
    """Return the storages as items of O(storages), each on the node of its guest."""
    found = {(name, content, one.node) for one in needs for name, content in one.storages}
    keys = ("name", "content", "node")
    return [dict(zip(keys, item, strict=True)) for item in sorted(found, key=str)]


def needed_bridge_rows(
    needs: Iterable[GuestNeeds], answers: Mapping[str, Collection[str] | None]
) -> list[Row]:
    """Return whether the node of each guest has its bridges, or else any node."""
    rows = []
    wanted = {(bridge, one.node) for one in needs for bridge in one.bridges}
    for bridge, node in sorted(wanted, key=str):
        nodes = [node] if node else sorted(answers)
        has = [one for one in nodes if bridge in (answers.get(one) or ())]
        place = node or "any node"
        step = "Name a bridge of the node, or create it; the caller needs SDN.Use to see a bridge"
        status, detail = (PASS, ", ".join(has)) if has else (FAIL, f"{place} has no such bridge")
        rows.append(row("bridge", f"{bridge} on {place}", status, detail, step))
    return rows


def device_rows(
    needs: Iterable[GuestNeeds], names_of: Callable[[str], Collection[str]]
) -> list[Row]:
    """Return whether each mapping of a device exists; `names_of` returns the mappings of a kind."""
    rows = []
    for path in sorted({path for one in needs for path in one.devices}):
        _root, _mapping, word, name = path.split("/", 3)
        status = PASS if name in names_of(word) else FAIL
        step = "Create it with module mapping or cpu_model; the caller needs Mapping.Use to see it"
        rows.append(row("device", f"{word} {name}", status, "", step))
    return rows


def estate_questions(
    needs: list[GuestNeeds], vmids: Mapping[str, int], subjects: TaskObjects, version: Version
) -> list[PrivilegeCheck]:
    """Return the questions about the privileges for each guest.

    `vmids` are the VMIDs of the templates by name. `subjects` has the zones of VNets, and the
    storages of the template files.
    """
    found: list[PrivilegeCheck] = []
    for one in needs:
        template = vmids.get(one.template or "")
        objects = TaskObjects(
            templates=(template,) if template is not None else (),
            storages=tuple(sorted({name for name, content in one.storages if content in _DISKS})),
            template_storages=subjects.template_storages,
            bridges=tuple(sorted(one.bridges)),
            zones=subjects.zones,
            pool=one.pool,
            unfound=subjects.unfound,
        )
        tasks = one.tasks
        if template is not None:
            tasks = tuple(_CLONING.get(task, task) for task in tasks)
        found += questions(tasks, objects, version)
        for storage in sorted({name for name, content in one.storages if content in _READ}):
            either = ("Datastore.Audit", "Datastore.AllocateSpace")
            found.append(PrivilegeCheck(f"/storage/{storage}", either, True, False, one.tasks))
    for path in sorted({path for one in needs for path in one.devices}):
        if path.startswith(_CPU_MODELS) and version < _CPU_MODELS_SINCE:
            continue
        users = first_of([one.label for one in needs if path in one.devices])
        found.append(PrivilegeCheck(path, ("Mapping.Use",), False, False, (users,)))
    return found


def role_command(requested: Iterable[PrivilegeCheck]) -> str:
    """Return the command that creates a role with these privileges, empty if there are none."""
    names: set[str] = set()
    for question in requested:
        names.update(question.privileges[:1] if question.any_of else question.privileges)
    return f'pveum role add pve-fleet --privs "{" ".join(sorted(names))}"' if names else ""
