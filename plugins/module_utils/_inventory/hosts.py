# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the cluster's listing to hosts: variables, filters, names and groups (pure)."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._cluster.picture import own_name
from .._cluster.tenant import PREFIX, parse_tags, tenant_of
from .._vm.addresses import is_own

GROUP_KINDS = ("tenant", "tag", "node", "status", "pool", "site", "template", "os")
# Names that mean something else to Ansible; a VM of that name must not take over every host or a group.
RESERVED = frozenset({"all", "ungrouped", "template"})
# Names under which a resolver finds the controller itself.
_CONTROLLER = re.compile(r"(?:localhost[46]?|ip6-localhost|ip6-loopback|loopback)(?:\.localdomain[46]?)?|.*\.localhost")
MOST_WARNINGS = 10  # of one kind
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*")

Sanitize = Callable[[str], str]


@dataclass(frozen=True)
class Guest:
    """One VM of one site, with its variables (`proxmox_*`). `key` is stable as long as the VM exists."""

    site: str
    vmid: int
    name: str
    node: str
    status: str
    tags: tuple[str, ...] = ()
    tenant: str | None = None
    pool: str = ""
    template: bool = False
    uptime: int = 0
    variables: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """`site/vmid`."""
        return f"{self.site}/{self.vmid}"

    def with_variables(self, more: Mapping[str, Any]) -> Guest:
        """Return the guest with these variables added."""
        return replace(self, variables={**self.variables, **more})


@dataclass(frozen=True)
class Choice:
    """What the listing is reduced to. None means every value; an empty collection means none."""

    tenants: Collection[str] | None = None
    nodes: Collection[str] | None = None
    pools: Collection[str] | None = None
    statuses: Collection[str] | None = None
    tags: Collection[str] | None = None
    templates: bool = True

    def takes(self, guest: Guest) -> bool:
        """Return whether the guest is wanted. What the listing does not say is never taken for a match."""
        return (
            (self.tenants is None or (guest.tenant is not None and guest.tenant in self.tenants))
            and (self.nodes is None or guest.node in self.nodes)
            and (self.pools is None or guest.pool in self.pools)
            and (self.statuses is None or guest.status in self.statuses)
            and (self.tags is None or bool(set(self.tags).intersection(guest.tags)))
            and (self.templates or not guest.template)
        )


def read_guests(rows: Iterable[Mapping[str, Any]], site: str = "", prefix: str = PREFIX) -> list[Guest]:
    """Return the VMs among the rows of `/cluster/resources`, ordered by VMID.

    A row of a VM that was made a moment ago lacks its name, and one of a node that is down lacks most values.
    """
    guests = [_guest(row, site, prefix) for row in rows if row.get("type") == "qemu" and "vmid" in row]
    return sorted(guests, key=lambda guest: guest.vmid)


def _guest(row: Mapping[str, Any], site: str, prefix: str) -> Guest:
    vmid = int(row["vmid"])
    name = own_name(str(row.get("name") or "").strip(), vmid)
    tags = parse_tags(str(row.get("tags") or ""))
    tenant, why = tenant_of(tags, prefix)
    template = str(row.get("template") or "0") == "1"
    variables: dict[str, Any] = {
        "proxmox_vmid": vmid,
        "proxmox_name": name or None,
        "proxmox_node": str(row.get("node") or ""),
        "proxmox_status": str(row.get("status") or "unknown"),
        "proxmox_tags": list(tags),
        "proxmox_tenant": tenant,
        "proxmox_pool": row.get("pool") or None,
        "proxmox_template": template,
        "proxmox_lock": row.get("lock") or None,
        "proxmox_ha_state": row.get("hastate") or None,
        "proxmox_uptime": int(row.get("uptime") or 0),
        "proxmox_cpus": row.get("maxcpu"),
        "proxmox_cpu_usage": row.get("cpu"),
        "proxmox_memory_bytes": row.get("maxmem"),
        "proxmox_memory_used_bytes": row.get("mem"),
        "proxmox_memory_host_bytes": row.get("memhost"),
        "proxmox_disk_bytes": row.get("maxdisk"),
        "proxmox_disk_read_bytes": row.get("diskread"),
        "proxmox_disk_written_bytes": row.get("diskwrite"),
        "proxmox_net_in_bytes": row.get("netin"),
        "proxmox_net_out_bytes": row.get("netout"),
        "proxmox_site": site or None,
    }
    if why:
        variables["proxmox_tenant_unknown"] = why
    return guest_of(variables)


def guest_of(variables: dict[str, Any]) -> Guest:
    """Return the guest with these variables, which say all there is to know about it. Raises KeyError."""
    return Guest(
        site=variables["proxmox_site"] or "",
        vmid=variables["proxmox_vmid"],
        name=variables["proxmox_name"] or "",
        node=variables["proxmox_node"],
        status=variables["proxmox_status"],
        tags=tuple(variables["proxmox_tags"]),
        tenant=variables["proxmox_tenant"],
        pool=variables["proxmox_pool"] or "",
        template=variables["proxmox_template"],
        uptime=variables["proxmox_uptime"],
        variables=variables,
    )


def plain_name(guest: Guest, kind: str) -> str:
    """Return the name of that kind (`name`, `vmid`, `name_vmid`, `site_name`), or an empty text when there is none."""
    if kind == "name":
        return guest.name
    if kind == "vmid":
        return f"vm-{guest.vmid}"
    if kind == "name_vmid":
        return f"{guest.name or 'vm'}_{guest.vmid}"
    if kind == "site_name":
        return f"{guest.site}_{guest.name}" if guest.site and guest.name else ""
    return ""


def unique_names(guests: Sequence[Guest], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return one host name for each guest, never the same twice, and warnings about those that had to change.

    `wanted` are the preferred names, in the order of the guests; an empty or impossible one becomes `vm-<vmid>`. When
    several guests want one name, each of them becomes `name_<vmid>`, and where that is still shared (two sites)
    `name_<vmid>_<site>`.
    """
    base: list[str] = []
    warnings: list[str] = []
    for guest, name in zip(guests, wanted, strict=True):
        base.append(name if _HOST_NAME.fullmatch(name) else f"vm-{guest.vmid}")
        if name and base[-1] != name:
            warnings.append(f"{name!r} cannot be the name of a host: using {base[-1]}")
    names = list(base)
    for form in ("{name}_{vmid}", "{name}_{vmid}_{site}"):
        counts = Counter(names)
        for index, guest in enumerate(guests):
            if counts[names[index]] > 1 or means_something_else(names[index]):
                names[index] = form.format(name=base[index], vmid=guest.vmid, site=guest.site or "site")
    # A VM may really be called what another one became; the VMID and the site settle it, and nothing is ever merged.
    seen: set[str] = set()
    for index, guest in enumerate(guests):
        while names[index] in seen:
            names[index] = f"{names[index]}_{guest.vmid}"
        seen.add(names[index])
    return names, warnings + _renamings(base, names)


def means_something_else(name: str) -> bool:
    """Return whether Ansible or a resolver would not take the name for that of a VM: above all as the controller's.

    A resolver also reads `127.1` and `2130706433` as addresses, and PVE accepts both as names.
    """
    low = name.lower().rstrip(".")
    if low in RESERVED or _CONTROLLER.fullmatch(low):
        return True
    if not low[0].isdigit() and ":" not in low:  # spares thousands of names what follows
        return False
    try:
        return is_own(ipaddress.IPv4Address(socket.inet_aton(low)))
    except OSError:
        pass
    try:
        return is_own(ipaddress.ip_address(low))
    except ValueError:
        return False


def _renamings(base: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a warning for each name that could not be used as it is."""
    changed: dict[str, list[str]] = {}
    for old, new in zip(base, names, strict=True):
        if old != new:
            changed.setdefault(old, []).append(new)
    warnings: list[str] = []
    for name, hosts in changed.items():
        why = "means something else to Ansible" if means_something_else(name) else "is not borne by one VM only"
        warnings.append(f"the host name {name!r} {why}: using {_some(hosts)}")
    return warnings


def group_names(
    guests: Sequence[Guest], kinds: Collection[str], sanitize: Sanitize
) -> tuple[list[list[str]], list[str]]:
    """Return the groups of each guest, and warnings.

    Two values never share a group because sanitizing made them alike (tenants `a-b` and `a_b`): the one that needed no
    change keeps the plain name, the others get a short hash of their value.
    """
    values = [_values(guest, kinds) for guest in guests]
    names, warnings = _group_table({pair for pairs in values for pair in pairs}, sanitize)
    return [[names[pair] for pair in pairs] for pairs in values], warnings


def _values(guest: Guest, kinds: Collection[str]) -> list[tuple[str, str]]:
    """Return pairs of kind and value, for example ("node", "pve1")."""
    found: list[tuple[str, str]] = []
    for kind in GROUP_KINDS:
        if kind not in kinds:
            continue
        if kind == "tag":
            found.extend((kind, tag) for tag in dict.fromkeys(guest.tags))
        elif kind == "template":
            found.extend([(kind, "")] if guest.template else [])
        elif kind == "os":
            value = (guest.variables.get("proxmox_config") or {}).get("ostype")
            found.extend([(kind, str(value))] if value else [])
        else:
            value = {
                "tenant": guest.tenant,
                "node": guest.node,
                "status": guest.status,
                "pool": guest.pool,
                "site": guest.site,
            }[kind]
            found.extend([(kind, value)] if value else [])
    return found


def _group_table(
    pairs: Collection[tuple[str, str]], sanitize: Sanitize
) -> tuple[dict[tuple[str, str], str], list[str]]:
    by_name: dict[str, list[tuple[str, str]]] = {}
    for kind, value in sorted(pairs):
        raw = f"{kind}_{value}" if value else kind
        by_name.setdefault(sanitize(raw), []).append((kind, value))
    names: dict[tuple[str, str], str] = {}
    warnings: list[str] = []
    for name, sharing in by_name.items():
        for pair in sharing:
            kind, value = pair
            alike = len(sharing) > 1 and name != f"{kind}_{value}"
            digest = hashlib.sha256(value.encode()).hexdigest()[:6]
            names[pair] = f"{name}_{digest}" if alike else name
            if alike:
                warnings.append(f"the group of {kind} {value!r} is {names[pair]!r}, because {name!r} is another's")
    return names, warnings


_HARMLESS = re.compile(r"[A-Za-z0-9_.:/+\-@,;=% ]*")


def is_harmless(text: str) -> bool:
    """Return whether no part of the text could be a template, a call or a filter, alone or joined to others."""
    return _HARMLESS.fullmatch(text) is not None


def shortened(warnings: Sequence[str], what: str, most: int = MOST_WARNINGS) -> list[str]:
    """Return the first of the warnings, and how many more there are: thousands of VMs may have the same trouble."""
    left = len(warnings) - most
    return [*warnings[:most], f"and {left} more {what}"] if left > 0 else list(warnings)


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
