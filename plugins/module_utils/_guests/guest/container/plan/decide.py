# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The needs of a container on its node, and the refusals that only containers have (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from ....._foundation.api.root import require_root
from ....._foundation.api.settings import ConnectionSettings
from ....._foundation.cluster.placement import PlacementNeeds, require_node, require_storage
from ....._foundation.cluster.site import require_own_storages
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.tenant import owns, parse_tags
from ....._foundation.core.errors import NotSupported, PermissionDenied, ValidationFailed
from ....._foundation.schema.check import disputed, find_refusals, taken_by
from ....._foundation.schema.formats import parse_option
from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.values import changed_sub_keys
from ....._foundation.schema.versions import is_newer
from ....kinds.config.change import ConfigChange
from ....kinds.container.config.actual import cores_of, is_privileged, mounts, volumes_in
from ....kinds.container.config.changes import paths_of_node
from ....kinds.container.kind import ARCHITECTURES, CONTAINER
from ....kinds.hardware import DesiredContainer
from ....kinds.kind import nics_in
from ....kinds.model import Actual, Guest
from ...flow.volumes import require_no_missing_volumes
from ...plan.intent import Facts, Intent, Release
from ...plan.origin import require_origin
from ...plan.planner import GuestRules
from ...plan.refusals import raise_for_version

ContainerIntent: TypeAlias = Intent[DesiredContainer]


_OCI_SINCE = (9, 1)


_ARCH_OF_TEMPLATE = re.compile(rf"_({'|'.join(ARCHITECTURES)})\.")


def needs_of(intent: ContainerIntent) -> PlacementNeeds:
    """Return the needs of a container on its node, except the room for its volumes."""
    config, source = intent.after, intent.source
    arch = CONTAINER.arch_in(config)
    return replace(
        intent.needs,
        storages={name: "rootdir" for name in CONTAINER.storages_in(config) if name},
        arch=arch or _arch_of_template("" if source is None else source.volume),
        emulated=False,
    )


def _arch_of_template(volume: str) -> str:
    """Return the architecture in the name of a template's file, as nodes have it, or no text."""
    found = _ARCH_OF_TEMPLATE.search(volume)
    return ARCHITECTURES[found[1]] if found else ""


def adopted(desired: DesiredContainer, actual: Actual, cluster: ClusterState) -> DesiredContainer:
    """Return the desired container for an existing container.

    Raises FleetError for a privileged container that would be adopted, and for a container of
    another origin.
    """
    guest, tags = desired.guest, parse_tags(actual.target.get("tags"))
    if not owns(guest.tenant_tag, tags, guest.tenant_prefix):
        require_unprivileged(f"{actual.label} was not adopted", desired, actual.target)
    source = guest.source
    may_be_a_file = source is not None and source.vmid is None  # PVE does not store the file
    if actual.marker.origin is not None or not may_be_a_file:
        require_origin(guest, actual, cluster)
    return desired


def refuse_listed(
    intent: ContainerIntent, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise FleetError for a container that must not be as desired, and for storages that the node
    lacks, as far as the listing shows.
    """
    storages = {**intent.change.drives.storages}
    if intent.source is not None:
        storages = dict(needs_of(intent).storages)
        require_unprivileged(f"{intent.label} was not created", intent.desired, intent.after)
        archived = intent.source.archived
        if archived is not None:
            require_restorable(f"{intent.label} was not restored", archived, connection.login)
    unprivileged = intent.after.get("unprivileged") == "1"
    refused = root_only(intent.change, intent.before, unprivileged=unprivileged)
    causes = {key: f"{key}: {why}" for key, why in refused.items()}
    if causes:
        remedy = "leave these options out, or let root set them"
        require_root(connection.login, f"{intent.label} could not be planned", remedy, causes)
    if not intent.uses_node:
        return
    require_node(cluster, intent.node)
    for volume, content in intent.change.drives.volumes.items():
        storages[volume.partition(":")[0]] = content
    require_own_storages(connection, storages)
    for storage, content in sorted(storages.items()):
        require_storage(cluster, storage, intent.node, content)


def refuse(
    intent: ContainerIntent, facts: Facts, connection: ConnectionSettings
) -> tuple[str, ...]:
    """Raise FleetError for a container that its server or its tenant does not allow.

    Returns a warning about a privileged container that its tenant must not have.
    """
    require_no_missing_volumes(facts.missing, intent.first_node, intent.label)
    if intent.starts or intent.restarts:
        _require_no_quota(intent.label, intent.after)
    _require_version(intent.label, intent.change, facts.release)
    if intent.source is not None:
        _require_oci(intent.source.volume, facts.release)
    _require_limited_cores(intent.label, intent.guest, intent.present, intent.after)
    _require_valid_nics(intent.label, intent.change.sets)
    if intent.desired.hardware.allow_privileged or not is_privileged(intent.after):
        return ()
    return (f"{intent.label} is privileged, and allow_privileged is false",)


def needs_release(intent: ContainerIntent) -> bool:
    """Return whether versions of PVE differ about the container."""
    volume = "" if intent.source is None else intent.source.volume
    return bool(disputed(intent.change.sets, LXC)) or is_oci(volume)


def is_oci(volume: str) -> bool:
    """Return whether a volume is an OCI image, which PVE recognizes by its file extension."""
    return volume.endswith(".tar")


def _require_oci(volume: str, release: Release | None) -> None:
    """Raise NotSupported for an OCI image on a server that cannot use one."""
    if release is None or not is_oci(volume) or release[:2] >= _OCI_SINCE:
        return
    raise NotSupported(
        f"{volume} could not be used: it is an OCI image, and the server is PVE "
        f"{release[0]}.{release[1]}",
        "Use a container template, or a server with PVE 9.1 or newer",
        "OCI image",
    )


def require_unprivileged(
    attempted: str, desired: DesiredContainer, config: Mapping[str, str]
) -> None:
    """Raise PermissionDenied for a container that would be privileged without being allowed to."""
    if desired.hardware.allow_privileged or not is_privileged(config):
        return
    cause = "allow_privileged is false"
    if desired.guest.tenant:
        cause = f"tenant {desired.guest.tenant} must not have one (allow_privileged is false)"
    step = "Leave unprivileged out, or choose a source that is not privileged"
    raise PermissionDenied(
        f"{attempted}: it would be a privileged container, and {cause}",
        f"{step}. PVE fixes this at creation",
        "privileged",
    )


def _require_limited_cores(
    label: str, guest: Guest, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Raise ValidationFailed for a container whose cores a quota cannot count: without option
    `cores` it can use all cores of its node, and PVE lists it with all of them (pve-container:
    LXC.pm, vmstatus).
    """
    is_counted = "cores" in (guest.limits or {}) and guest.state != "template"
    is_unlimited = cores_of(after) == 0 and (not before or cores_of(before) > 0)
    if not is_counted or not is_unlimited:
        return
    raise ValidationFailed(
        f"{label} was refused: the quota of tenant {guest.tenant} limits cores, and it has no "
        "limit of cores",
        "Set cores",
        "unlimited cores",
    )


def _require_no_quota(label: str, config: Mapping[str, str]) -> None:
    """Raise ValidationFailed for quotas of an unprivileged container, which does not start with them
    (pve-container: API2/LXC/Status.pm, vm_start).
    """
    slots = [slot for slot, mount in mounts(config).items() if mount.get("quota") == "1"]
    if slots and not is_privileged(config):
        raise ValidationFailed(
            f"{label} could not be planned to run: it is unprivileged, and {slots[0]} has quota",
            f"Set quota=false for {slots[0]}",
            "quota of unprivileged",
        )


def _require_valid_nics(label: str, sets: Mapping[str, str]) -> None:
    """Raise ValidationFailed for a NIC whose options exclude each other (pve-container:
    LXC/Config.pm, update_pct_config).
    """
    for nic in nics_in(sets):
        options = parse_option(nic, sets[nic], LXC)
        cause, next_step = "", ""
        if "mtu" in options and "bridge" not in options:
            cause = "PVE compares its mtu with that of its bridge, and it has none"
            next_step = "Give bridge, or leave out mtu"
        is_up = options.get("link_down") != "1"
        if is_up and options.get("host-managed") == "1" and options.get("ip6") == "auto":
            cause = "ip6 auto needs the network configuration in the container"
            next_step = "Leave out host_managed, or give another ip6"
        if cause:
            raise ValidationFailed(f"{nic} of {label} was refused: {cause}", next_step, "nic")


def _require_version(label: str, change: ConfigChange, release: Release | None) -> None:
    """Raise NotSupported for options that the server's version of PVE does not take."""
    if release is None:
        return
    sets = {key: change.sets[key] for key in disputed(change.sets, LXC)}
    refused = find_refusals(sets, release, LXC)
    if not refused:
        return
    causes = [f"{key} ({why})" for key, why in sorted(refused.items())]
    raise_for_version(label, refused, causes, f"{release[0]}.{release[1]}")


def unverified(intent: ContainerIntent, facts: Facts) -> tuple[str, ...]:
    """Return warnings about options that only a server newer than the schema can judge, and about
    devices that a chosen node may lack.
    """
    change, release = intent.change, facts.release
    warnings = _unseen_devices(intent)
    if release is None or not is_newer(release):
        return warnings
    unknown: list[str] = []
    for key in sorted(disputed(change.sets, LXC)):
        if not taken_by(key, change.sets[key], LXC):
            unknown.append(key)
    if not unknown:
        return warnings
    number = ".".join(map(str, release))
    names = ", ".join(unknown)
    text = f"{intent.label}: whether PVE {number} takes {names} is known to the server only"
    return (text, *warnings)


def _unseen_devices(intent: ContainerIntent) -> tuple[str, ...]:
    """Return a warning about the devices of a new container whose node was chosen: no request lists
    the paths below /dev of a node (pve-container: LXC/Tools.pm, get_device_mode_and_rdev).
    """
    devices = sorted(key for key in intent.after if re.fullmatch(r"dev\d+", key))
    if intent.source is None or intent.guest.node or not devices:
        return ()
    paths = f"whether node {intent.node} has the paths of {', '.join(devices)}"
    unseen = "cannot be seen with the API of Proxmox VE: set node to a node that has them"
    return (f"{intent.label}: {paths} {unseen}",)


def require_restorable(attempted: str, config: Mapping[str, str], login: str) -> None:
    """Raise PermissionDenied for the archive of a container with a path of its node, unless the
    login is root@pam: PVE refuses it in the task (pve-container: API2/LXC.pm, create_vm).
    """
    paths = mounts(config).keys() - volumes_in(config).keys()
    causes = {slot: f"{slot} in the archive is a path of the node" for slot in sorted(paths)}
    if causes:
        require_root(login, attempted, "or detach these before the next backup", causes)


_DEVICE = re.compile(r"^dev\d+\Z")


def root_only(
    change: ConfigChange, target: Mapping[str, str], *, unprivileged: bool
) -> dict[str, str]:
    """Return the options of a change that only root can make, each with the reason in PVE's words.

    `unprivileged` is whether the container is, or becomes, unprivileged.
    """
    refused: dict[str, str] = {}
    for slot, path in paths_of_node(change.sets).items():
        kind = "device" if path.startswith("/dev/") else "bind"
        refused[slot] = f"mount point type {kind} is only allowed for root@pam"
    for key in sorted({*change.sets, *change.deletes}):
        if _DEVICE.match(key):
            refused[key] = "configuring device passthrough is only allowed for root@pam"
        elif key == "hookscript":
            refused[key] = "changing the hookscript is only allowed for root@pam"
        elif key == "features":
            why = _features(change, target, unprivileged=unprivileged)
            if why:
                refused[key] = why
    return refused


def _features(change: ConfigChange, target: Mapping[str, str], *, unprivileged: bool) -> str:
    """Return why the change of features is refused, or an empty text."""
    if not unprivileged:
        return "changing feature flags for privileged container is only allowed for root@pam"
    old = target.get("features", "")
    new = change.sets.get("features", "")
    if changed_sub_keys("features", old, new, LXC) <= {"nesting"}:
        return ""
    return "changing feature flags (except nesting) is only allowed for root@pam"


CONTAINER_RULES = GuestRules(needs_of, refuse_listed, refuse, unverified)
