# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest that checked options describe, without its hardware: also the names that its tenant may
use, and its isolation on the tenant's networks (pure).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from ...._foundation.cluster.quota import TenantSites, read_limits, read_tenant_sites
from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.tenant import PREFIX, foreign_tag, group_name, tenant_tag, vnet_id
from ...._foundation.cluster.vmids import read_vmid_ranges
from ...._foundation.core import validate
from ...._foundation.core.errors import PermissionDenied, ValidationFailed
from ...._foundation.core.propstring import sub_keys
from ...kinds.hardware import AnyDesired
from ...kinds.kind import Kind
from ...kinds.model import Guest, GuestIsolation, GuestSource
from ..context import TaskSettings, read_settings
from .values import is_blank


@dataclass(frozen=True)
class GuestOptions(Generic[AnyDesired]):
    """The parsed options of a task: the desired guest, and the settings of the task."""

    desired: AnyDesired
    settings: TaskSettings


def options_of(desired: AnyDesired, options: Mapping[str, Any]) -> GuestOptions[AnyDesired]:
    """Return the desired guest with the settings in the checked options. Raises ValidationFailed if
    they name neither the name nor the VMID of the guest.
    """
    guest = desired.guest
    if not guest.name and guest.vmid is None:
        raise ValidationFailed(
            f"No {guest.kind.noun} was chosen: neither name nor vmid is given",
            "Give one of them",
            "name or vmid",
        )
    return GuestOptions(desired, read_settings(options))


# Options that `Guest` contains unchanged.
_PLAIN = (
    "name",
    "vmid",
    "node",
    "state",
    "tenant_prefix",
    "adopt",
    "tags_exact",
    "vmid_choice",
    "rebalance",
    "migrate",
    "reboot",
    "graceful",
    "force",
    "shutdown_timeout",
)


def read_guest(kind: Kind, options: Mapping[str, Any]) -> Guest:
    """Return the guest. Raises ValidationFailed."""
    plain = {name: options[name] for name in _PLAIN}
    return Guest(
        kind=kind,
        **plain,
        tenant=_tenant(options),
        pool="" if is_blank(options["pool"]) else options["pool"],
        source=_source(options),
        tags=_tags(kind, options),
        description=_notes(options["description"]),
        vmid_ranges=read_vmid_ranges(options["vmid_range"], options["vmid_bands"]),
        create=options.get("create") is not False,
        blank=bool(options.get("blank")),
        replace_image=bool(options.get("replace_image")),
        rules=options["placement"] or PlacementRules(),
        shared_sources=frozenset(options["shared_sources"] or ()),
        limits=read_limits(options),
        sites=_sites(options),
        allowed=read_allowed(options),
        isolation=read_isolation(options),
    )


def sites_of_quota(params: Mapping[str, Any]) -> list[str]:
    """Return the site of the task, which is an empty text, and the sites of its quota (pure)."""
    names = params.get("quota_sites") or []
    return ["", *(names if isinstance(names, list) else str(names).split(","))]


def _sites(options: Mapping[str, Any]) -> TenantSites:
    """Return the sites over which the quota counts. Raises ValidationFailed."""
    names, limits = options.get("quota_sites"), read_limits(options)
    if names and limits is None:
        step = "Give quota, or leave quota_sites out"
        raise validate.refused("quota_sites", names, "needs the quota of a tenant", step)
    given = {"sites": names, "site_quotas": options.get("site_quotas")}
    if given["site_quotas"] and not names:
        step = "Name the sites of the tenant there"
        raise validate.refused("site_quotas", given["site_quotas"], "needs quota_sites", step)
    return replace(read_tenant_sites(str(options["tenant"] or ""), given), total=limits)


def _source(options: Mapping[str, Any]) -> GuestSource | None:
    source = options["source"]
    if not source:
        return None
    return replace(source, full=options["full"], snapshot=options.get("snapshot"))


def is_exact(options: Mapping[str, Any], devices: str) -> bool:
    """Return whether a list of devices is complete: an option that is left out never is."""
    return options[devices] is not None and bool(options[f"{devices}_exact"])


def _tags(kind: Kind, options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the desired tags. Raises ValidationFailed for the tag of another tenant."""
    if options["tags"] is None:
        return None
    tags = frozenset(options["tags"])
    prefix = options["tenant_prefix"]
    own = tenant_tag(str(options["tenant"]), prefix) if options["tenant"] else None
    other = foreign_tag(tags, own, prefix)
    if other:
        why = "is another tenant's tag"
        raise validate.refused(
            "tags", other, why, f"A {kind.noun} has the tag of one tenant at most"
        )
    return tags


def _notes(text: str | None) -> str | None:
    """Return notes in the form in which they are read back: without empty lines before them and
    blanks after them.

    PVE drops all blanks at the end of the notes when it reads a configuration (QemuServer.pm,
    parse_vm_config).
    """
    return None if text is None else text.strip("\n").rstrip()


def _tenant(options: Mapping[str, Any]) -> str | None:
    tenant = options["tenant"]
    if not tenant:
        return None
    validate.tag(f"{options['tenant_prefix']}{tenant}", "tenant")
    return str(tenant).lower()


# qemu-server: PVE/QemuServer/CPUConfig.pm, get_default_cpu_type: the type of a VM without `cpu`.
_DEFAULT_CPU = "kvm64"


def read_allowed(options: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the allowed names by key. Raises ValidationFailed for an empty list, because it could
    mean nothing or everything.
    """
    given = {
        key: names for key, names in (options.get("allowed") or {}).items() if names is not None
    }
    for key, names in given.items():
        if not names:
            raise validate.refused(
                f"allowed.{key}", names, "is empty", "List names, or leave it out for all"
            )
    return {key: frozenset(names) for key, names in given.items()}


def require_class(label: str, options: Mapping[str, Any]) -> None:
    """Raise PermissionDenied for a class that the tenant must not use."""
    names = read_allowed(options).get("classes", {label})
    if label not in names:
        raise _not_allowed(f"Class '{label}' was refused", "classes", label, names)


def require_allowed(
    guest: Guest,
    label: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    storages: Collection[str] = (),
) -> None:
    """Raise PermissionDenied if a change adds a storage, a network or a CPU type that the tenant must
    not use.

    `before` and `after` are configurations, and `storages` are further storages of new disks.
    """
    own = {
        vnet_id(guest.tenant_tag or "", name): name for name in guest.allowed.get("networks", ())
    }
    used = _names_in(guest, after)
    used["storages"] |= set(storages)
    for key, names in _names_in(guest, before).items():
        allowed = guest.allowed.get(key)
        added = used[key] - names
        if allowed is None or added <= allowed | own.keys():
            continue
        raise _not_allowed(f"{label} was refused", key, min(added - allowed - own.keys()), allowed)


def _names_in(guest: Guest, config: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the names in a configuration by key, in the order in which they are checked."""
    files = [str(drive.get("file") or "") for drive in guest.kind.disks_in(config).values()]
    types: set[str] = set()
    if config and not guest.kind.has_rootfs:
        types = {sub_keys(config.get("cpu") or "", "cputype").get("cputype") or _DEFAULT_CPU}
    return {
        "storages": {file.partition(":")[0] for file in files if ":" in file},
        "networks": set(guest.kind.bridges_in(config).values()),
        "cpu_types": types,
    }


def _not_allowed(attempted: str, key: str, name: str, allowed: Collection[str]) -> PermissionDenied:
    return PermissionDenied(
        f"{attempted}: {name} is none of the {key} that its tenant may use: "
        f"{', '.join(sorted(allowed))}",
        f"Use one of them, or add it to allowed.{key} of the tenant",
        "not allowed",
        details={"allowed": key, "name": name},
    )


# Keys of a network that describe its VNet; the others are options of a NIC.
OF_VNET = frozenset(
    "zone tag tag_range subnet snat dhcp_ranges dhcp_dns_server state gateway".split()
)
_WORDS = ("dhcp", "auto", "manual")


def tag_of(options: Mapping[str, Any]) -> str:
    """Return the tag of the tenant of a guest, empty without a tenant."""
    tenant = options.get("tenant")
    return tenant_tag(str(tenant), options.get("tenant_prefix") or PREFIX) if tenant else ""


def own_networks(
    networks: Mapping[str, Mapping[str, Any]], tag: str
) -> dict[str, Mapping[str, Any]]:
    """Return the networks as options of a NIC: a network with a zone becomes its VNet.

    Raises ValidationFailed for a VNet without a tenant.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for label, content in networks.items():
        found[label] = _as_nic(label, content, tag) if content.get("zone") else content
    return found


def _as_nic(label: str, content: Mapping[str, Any], tag: str) -> dict[str, Any]:
    if not tag:
        raise validate.refused(
            f"networks.{label}", content["zone"], "is a zone of a tenant's VNet", "Set tenant"
        )
    if content.get("bridge"):
        raise validate.refused(
            f"networks.{label}", content["bridge"], "is a bridge beside a zone", "Remove one"
        )
    nic = {key: value for key, value in content.items() if key not in OF_VNET}
    gateway = content.get("gateway")
    if gateway:
        nic["gateway6" if ":" in str(gateway) else "gateway"] = gateway
    return {"firewall": True, **nic, "bridge": vnet_id(tag, label)}


def unlisted_networks(
    items: Iterable[Mapping[str, Any]], networks: Mapping[str, Mapping[str, Any]], tag: str
) -> dict[str, dict[str, Any]]:
    """Return the VNets of the tenant for networks of NICs that no map has, as options of a NIC.

    None without a tenant. If the estate lists the VNets of the tenant, none either: the name is
    then unknown. A name that begins with vmbr is a bridge.
    """
    lists_vnets = any(content.get("zone") for content in networks.values())
    if not tag or lists_vnets:
        return {}
    labels = [str(item.get("network") or "") for item in items]
    unlisted = [one for one in labels if one and not one.startswith("vmbr")]
    return {label: {"firewall": True, "bridge": vnet_id(tag, label)} for label in unlisted}


def read_isolation(options: Mapping[str, Any]) -> GuestIsolation | None:
    """Return the VNets of the tenant that the NICs of a guest use; None if there are none.

    Raises ValidationFailed for a NIC on one of them whose firewall is switched off.
    """
    tag = tag_of(options)
    if not tag:
        return None
    networks: dict[str, str] = {}
    members: dict[str, tuple[str, ...]] = {}
    for item in options.get("nics") or ():
        label = item.get("network")
        if not label or item.get("state") == "absent":
            continue
        if item.get("bridge") == vnet_id(tag, label):
            networks[item["bridge"]] = label
            members[item["name"]] = _members(item)
    isolation = GuestIsolation(group_name(tag), members, networks) if members else None
    _require_filters(options.get("nics") or (), isolation)
    return isolation


def _members(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the addresses that a NIC may use: its static addresses, else those on its VNet."""
    found: list[str] = []
    for key in ("ip", "ip6"):
        address = str(item.get(key) or "").partition("/")[0].strip()
        if address and address not in _WORDS:
            found.append(address.lower())
    return tuple(found) or (f"dc/{item['bridge']}",)


def _require_filters(items: Iterable[Mapping[str, Any]], isolation: GuestIsolation | None) -> None:
    """Raise ValidationFailed for a NIC on a VNet of the tenant whose firewall is switched off."""
    isolated = {} if isolation is None else isolation.members
    for item in items:
        if item.get("name") in isolated and item.get("firewall") is False:
            raise ValidationFailed(
                f"nics.{item['name']} was refused: network '{item['network']}' is isolated, and "
                "firewall is false",
                "Remove firewall, or use a bridge instead of the network",
                "firewall",
            )
