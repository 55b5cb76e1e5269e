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
from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.versions import is_newer
from ....kinds.config.change import ConfigChange
from ....kinds.container.config.actual import is_privileged, mounts, volumes_in
from ....kinds.container.config.figures import cores_of
from ....kinds.container.config.root_only import root_only
from ....kinds.container.kind import CONTAINER
from ....kinds.container.model import DesiredContainer
from ....kinds.model import Actual, Guest
from ...flow.facts import Facts, Release
from ...flow.intent import Intent
from ...flow.volumes import require_no_missing_volumes
from ...plan.origin import require_origin
from ...plan.refusals import raise_for_version

ContainerIntent: TypeAlias = Intent[DesiredContainer]
_OCI_SINCE = (9, 1)
# The architecture of a node for each architecture of a container (pve-container: LXC/Config.pm).
_ARCHITECTURES = {"amd64": "x86_64", "i386": "x86_64", "arm64": "aarch64", "armhf": "aarch64"}
_ARCH_OF_TEMPLATE = re.compile(rf"_({'|'.join(_ARCHITECTURES)})\.")


def needs_of(intent: ContainerIntent) -> PlacementNeeds:
    """Return the needs of a container on its node, except the room for its volumes."""
    config, source = intent.after, intent.source
    arch = _ARCHITECTURES.get(config.get("arch", ""), "")
    return replace(
        intent.needs,
        storages={name: "rootdir" for name in CONTAINER.storages_in(config) if name},
        arch=arch or _arch_of_template("" if source is None else source.volume),
    )


def _arch_of_template(volume: str) -> str:
    """Return the architecture in the name of a template's file, as nodes have it, or no text."""
    found = _ARCH_OF_TEMPLATE.search(volume)
    return _ARCHITECTURES[found[1]] if found else ""


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
    _require_rights_of_root(intent, connection)
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
    require_no_missing_volumes(facts.missing, intent.start.node or intent.node, intent.label)
    _require_version(intent.label, intent.change, facts.release)
    if intent.source is not None:
        _require_oci(intent.source.volume, facts.release)
    before = {} if intent.source is not None else intent.start.target
    _require_limited_cores(intent.label, intent.guest, before, intent.after)
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
        attempted=f"{volume} could not be used",
        answer=f"it is an OCI image, and the server is PVE {release[0]}.{release[1]}",
        next_step="Use a container template, or a server with PVE 9.1 or newer",
        reason="OCI image",
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
        attempted=attempted,
        answer=f"it would be a privileged container, and {cause}",
        next_step=f"{step}. PVE fixes this at creation",
        reason="privileged",
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
        attempted=f"{label} was refused",
        answer=f"the quota of tenant {guest.tenant} limits cores, and it has no limit of cores",
        next_step="Set cores",
        reason="unlimited cores",
    )


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
    """Return warnings about options that only a server newer than the schema can judge."""
    change, release = intent.change, facts.release
    if release is None or not is_newer(release):
        return ()
    unknown: list[str] = []
    for key in sorted(disputed(change.sets, LXC)):
        if not taken_by(key, change.sets[key], LXC):
            unknown.append(key)
    if not unknown:
        return ()
    number = ".".join(map(str, release))
    names = ", ".join(unknown)
    return (f"{intent.label}: whether PVE {number} takes {names} is known to the server only",)


def require_restorable(attempted: str, config: Mapping[str, str], login: str) -> None:
    """Raise PermissionDenied for the archive of a container with a path of its node, unless the
    login is root@pam: PVE refuses it in the task (pve-container: API2/LXC.pm, create_vm).
    """
    paths = mounts(config).keys() - volumes_in(config).keys()
    causes = {slot: f"{slot} in the archive is a path of the node" for slot in sorted(paths)}
    if causes:
        require_root(login, attempted, "or detach these before the next backup", causes)


def _require_rights_of_root(intent: ContainerIntent, connection: ConnectionSettings) -> None:
    """Raise PermissionDenied for options that only root@pam with a password can change."""
    unprivileged = intent.after.get("unprivileged") == "1"
    refused = root_only(intent.change, intent.before, unprivileged=unprivileged)
    causes = {key: f"{key}: {why}" for key, why in refused.items()}
    if causes:
        remedy = "leave these options out, or let root set them"
        require_root(connection.login, f"{intent.label} could not be planned", remedy, causes)
