# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks, objects and backup jobs that the guests of an estate need, from its options (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.api.access.privileges import NEWEST
from ..._foundation.api.access.required import RequiredRequest, privileges_beside, restricted_tags
from ..._foundation.api.root import ROOT
from ..._foundation.cluster.state import VmRow
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.core.formatting import first_of
from ..._foundation.schema.root_only import root_only
from ..._foundation.spec.fleet import fleet_spec, with_defaults
from ..._guests.fleet.items import Estate, VmItem, read_estate
from ..._guests.fleet.secrets import fleet_secrets
from ..._guests.guest.registry import VMS
from ..access.needs.need import BRIDGE
from ..access.needs.needs import PrivilegeCheck, TaskObjects, Version, questions
from .checks import FAIL, PASS, Row, row

_DISKS = ("images", "rootdir")
_FILES = ("iso", "import", "snippets")
# A container whose source is a guest is cloned, else its source is a file.
_CLONING = {"container_create": "container_clone"}
_RUNNING = ("started", "restarted")
BackedUp = Mapping[str, Sequence[str]]
"""The guests of an estate with the option C(backup), by the storage of their job. Guests that the
estate removes from the jobs are under an empty text.
"""

_CONTENT = "backup"
_MAX_LISTED = 5
_WITHOUT_JOBS = ("absent", "template")


@dataclass(frozen=True)
class GuestNeeds:
    """The needs of a guest. `storages` have their content; `request` sets its options."""

    label: str
    tasks: tuple[str, ...]
    template: str | None
    storages: frozenset[tuple[str, str]]
    bridges: frozenset[str]
    request: RequiredRequest
    node: str | None
    pool: str | None
    name: str | None
    is_vm: bool
    tags: frozenset[str]
    owner: str | None  # the tag of its tenant

    def exists_as(self, guests: Iterable[VmRow]) -> VmRow | None:
        """Return the guest if it exists."""
        of_name = (row for row in guests if self.name and row.own_name == self.name)
        return next((row for row in of_name if not self.owner or self.owner in row.tags), None)

    @property
    def devices(self) -> set[str]:
        """The ACL paths of mappings of devices, and of CPU models."""
        paths = {path for path, _names, _any in privileges_beside(self.request, NEWEST, {})}
        return {path for path in paths if path.startswith("/mapping/") and path.count("/") > 2}


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
    return GuestNeeds(
        label=item.label,
        tasks=tuple(tasks),
        template=template,
        storages=frozenset(storages),
        bridges=frozenset(str(nic["bridge"]) for nic in nics if nic.get("bridge")),
        request=_request_of(item),
        node=guest.node,
        pool=guest.pool or None,
        name=guest.name,
        is_vm=is_vm,
        tags=frozenset(guest.own_tags),
        owner=guest.tenant_tag,
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


def _request_of(item: VmItem) -> RequiredRequest:
    """Return the request that sets the options of a guest, as if the guest existed without them."""
    hardware, type_ = item.desired.hardware, item.kind.kind.type
    data: dict[str, str] = dict(hardware.scalars)
    for name, values in hardware.property_strings.items():
        data[name] = ",".join(f"{key}={text}" for key, text in values.items() if text is not None)
    for disk in hardware.disks:
        source = f",import-from={disk.import_from}" if disk.import_from else ""
        data[disk.slot] = f"{disk.volume or 'none'}{source}"
    return RequiredRequest(
        "PUT",
        ("nodes", "-", type_, 0, "config"),
        data,
        config={"unprivileged": data.get("unprivileged", "1")},
    )


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
    """Return the questions about the privileges for each guest: its tasks on the guest, and its
    options on other objects.

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
            pool=one.pool,
            unfound=subjects.unfound | ({BRIDGE} if one.bridges else set()),
        )
        tasks = one.tasks
        if template is not None:
            tasks = tuple(_CLONING.get(task, task) for task in tasks)
        found += questions(tasks, objects, version)
        found += _visibility(objects, tasks[:1])
        if template is None and one.request.data.get("unprivileged") == "0":
            found.append(PrivilegeCheck("/", ("Sys.Modify",), False, False, tasks))
        for path, names, any_of in privileges_beside(one.request, version, subjects.zones):
            user = one.label if path.startswith("/mapping/") else tasks[0]
            least_first = tuple(reversed(names))
            found.append(PrivilegeCheck(path, least_first, any_of, False, (user,)))
    return found


def tag_questions(
    needs: Iterable[GuestNeeds], guests: Sequence[VmRow], options: Mapping[str, Any]
) -> list[PrivilegeCheck]:
    """Return the questions about the tags that guests get and the datacenter restricts."""
    found: list[PrivilegeCheck] = []
    for one in needs:
        row_of_guest = one.exists_as(guests)
        has = row_of_guest.tags if row_of_guest is not None else ()
        for tag in restricted_tags(options, (), one.tags.difference(has)):
            tasks = (f"the tag {tag} of {one.label}",)
            found.append(PrivilegeCheck("/", ("Sys.Modify",), False, False, tasks))
    return found


def root_rows(login: str, needs: Iterable[GuestNeeds], guests: Sequence[VmRow]) -> list[Row]:
    """Return the options that only root@pam itself may set; another login keeps those of a guest
    that exists.
    """
    step = f"Leave it out, use a resource mapping for a device, or let {ROOT} set it"
    rows = []
    for one in needs:
        must_set = one.exists_as(guests) is None
        for subject, why in _root_only(one).items():
            status = PASS if login == ROOT else FAIL
            rows.append(row("root", subject, status, why, step, required=must_set))
    return rows


def _root_only(one: GuestNeeds) -> dict[str, str]:
    """Return the options of a guest that only root may set, each with the reason in PVE's words."""
    found: dict[str, str] = {}
    for key, text in one.request.data.items():
        why = root_only(key, (text,)) if one.is_vm else None
        alone = replace(one.request, data={key: text})
        causes = [check[1] for check in alone.checks if check[0] == "root"]
        for cause in filter(None, (why, *causes)):
            found[f"{key} of {one.label}"] = cause
    return found


def _visibility(objects: TaskObjects, tasks: tuple[str, ...]) -> list[PrivilegeCheck]:
    """Return the questions about the objects that a run finds in the listing (pve-manager:
    PVE/API2/Cluster.pm, resources).
    """
    seen = [(f"/storage/{name}", "Datastore.Audit") for name in objects.storages]
    if objects.pool:
        seen.append((f"/pool/{objects.pool}", "Pool.Audit"))
    return [PrivilegeCheck(path, (name,), False, False, tasks) for path, name in seen]


def role_command(requested: Iterable[PrivilegeCheck]) -> str:
    """Return the command that creates a role with these privileges, empty if there are none. PVE
    keeps the names that begin with PVE in any case (pve-access-control: API2/Role.pm).
    """
    names: set[str] = set()
    for question in requested:
        names.update(question.privileges[:1] if question.any_of else question.privileges)
    return f'pveum role add FleetEstate --privs "{" ".join(sorted(names))}"' if names else ""


def estate_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in the estate, before anything is checked."""
    estate = arguments.get("estate")
    return fleet_secrets(estate) if isinstance(estate, Mapping) else set()


def backups_of(estate: Estate) -> BackedUp:
    """Return the guests of an estate with the option C(backup), set for the guest or inherited.

    Empty if the estate leaves the jobs to another run.
    """
    found: dict[str, list[str]] = {}
    if estate.params.get("backup_jobs") is False:
        return found
    for item in estate.items:
        if item.backup is not None and item.desired.guest.state not in _WITHOUT_JOBS:
            storage = str(item.backup.values.get("storage", ""))
            found.setdefault(storage, []).append(item.label)
    return found


def job_storages(backups: BackedUp) -> list[dict[str, Any]]:
    """Return the storages of the jobs as items of O(storages)."""
    return [{"name": name, "content": _CONTENT} for name in sorted(backups) if name]


def job_questions(backups: BackedUp, version: Version) -> list[PrivilegeCheck]:
    """Return the questions about the privileges to write these jobs, each with the guests that need
    it.
    """
    labels: dict[tuple[str, tuple[str, ...], bool], list[str]] = {}
    for storage, guests in backups.items():
        request = RequiredRequest("POST", ("cluster", "backup"), {"storage": storage})
        if not storage:
            request = RequiredRequest("DELETE", ("cluster", "backup", "-"), {})
        for path, names, any_of in privileges_beside(request, version, {}):
            labels.setdefault((path, tuple(names), any_of), []).extend(guests)
    return [
        PrivilegeCheck(
            *key, below=False, tasks=(f"the backup jobs of {first_of(guests, _MAX_LISTED)}",)
        )
        for key, guests in labels.items()
    ]
