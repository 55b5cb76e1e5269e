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
from operator import attrgetter
from typing import Any

from ..._foundation.cluster.drill.copies import TAG, is_marked
from ..._foundation.cluster.tenant import PREFIX, parse_tags, tenant_of, tenant_tag
from ..._foundation.core.formatting import first_of
from ..._guests.kinds.addresses import is_own
from ..._guests.kinds.move import PROVEN, site_word
from ..._guests.kinds.words import GUESTS, VIRTUAL_MACHINE
from .kinds import NODE, kind_of, listed_name, vmid_name

GROUP_KINDS = ("tenant", "tag", "node", "status", "pool", "site", "template", "os", "kind")
# Names with another meaning in Ansible; a VM with such a name must not select every host.
RESERVED = frozenset({"all", "ungrouped", "template"})
# Names under which a resolver finds the controller itself.
_CONTROLLER = re.compile(
    r"(?:localhost[46]?|ip6-localhost|ip6-loopback|loopback)(?:\.localdomain[46]?)?"
    r"|.*\.localhost"
)
MAX_WARNINGS = 10  # of one kind
_HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*")

Sanitize = Callable[[str], str]
Pair = tuple[str, str]
"""A kind of group and its value."""


@dataclass(frozen=True)
class InventoryGuest:
    """One guest or node of a site, with its variables (`proxmox_*`); its `key` never changes.

    `kind` is `vm`, `container` or `node`. The `vmid` of a node is 0.
    """

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
    kind: str = VIRTUAL_MACHINE
    variables: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def key(self) -> str:
        """`site/vmid`, or `site/node/name` for a node."""
        if self.kind == NODE:
            return f"{self.site}/{NODE}/{self.node}"
        return f"{self.site}/{self.vmid}"

    @property
    def type(self) -> str:
        """PVE's word for the kind."""
        return NODE if self.kind == NODE else GUESTS[self.kind].type

    @property
    def substitute(self) -> str:
        """The name of the host if its own name cannot be used."""
        if self.kind == NODE:
            return f"{NODE}-{self.node}"
        return vmid_name(self.kind, self.vmid)

    @property
    def vmid_or_node(self) -> str:
        """The VMID as the end of a name, or `node` for a node."""
        return NODE if self.kind == NODE else str(self.vmid)

    def with_variables(self, more: Mapping[str, Any]) -> InventoryGuest:
        """Return the guest with these variables added, and with the name among them, if any."""
        name = more.get("proxmox_name", self.name) or ""
        return replace(self, name=name, variables={**self.variables, **more})


@dataclass(frozen=True)
class GuestFilter:
    """The criteria of chosen VMs. None allows every value; an empty collection allows none."""

    tenants: Collection[str] | None = None
    nodes: Collection[str] | None = None
    pools: Collection[str] | None = None
    statuses: Collection[str] | None = None
    tags: Collection[str] | None = None
    templates: bool = True

    def accepts(self, guest: InventoryGuest) -> bool:
        """Return whether the guest is chosen.

        A value that is missing in the listing never matches. A copy of a drill is chosen only by
        its tag.
        """
        if guest.template and not self.templates:
            return False
        if self.tags is not None and not set(self.tags).intersection(guest.tags):
            return False
        if is_marked(guest.tags) and TAG not in (self.tags or ()):
            return False
        values = (
            (self.tenants, guest.tenant),
            (self.nodes, guest.node),
            (self.pools, guest.pool),
            (self.statuses, guest.status),
        )
        return all(
            allowed is None or (value is not None and value in allowed) for allowed, value in values
        )


def read_guests(
    rows: Iterable[Mapping[str, Any]],
    site: str = "",
    prefix: str = PREFIX,
    kinds: Collection[str] = tuple(GUESTS),
) -> list[InventoryGuest]:
    """Return the hosts of these kinds among the rows of `/cluster/resources`, ordered by VMID.

    The row of a guest that was created a moment ago lacks its name; the row of an offline node
    lacks most values.
    """
    guests: list[InventoryGuest] = []
    for row in rows:
        kind = kind_of(row)
        if kind and kind in kinds:
            guests.append(_host(row, kind, site, prefix))
    return sorted(guests, key=attrgetter("vmid", "node"))


def _host(row: Mapping[str, Any], kind: str, site: str, prefix: str) -> InventoryGuest:
    if kind == NODE:
        return guest_of({**_common(row, NODE, site), **_OF_NO_GUEST, "proxmox_name": row["node"]})
    vmid = int(row["vmid"])
    name = listed_name(kind, _text(row, "name").strip(), vmid)
    variables = {
        **_common(row, kind, site),
        "proxmox_vmid": vmid,
        "proxmox_name": name or None,
        "proxmox_tags": list(parse_tags(_text(row, "tags"))),
        "proxmox_pool": row.get("pool") or None,
        "proxmox_template": _text(row, "template") == "1",
        "proxmox_lock": row.get("lock") or None,
    }
    tenant, why = tenant_of(variables["proxmox_tags"], prefix)
    variables["proxmox_tenant"] = tenant
    if why:
        variables["proxmox_tenant_unknown"] = why
    return guest_of(variables)


# The variables that a node does not have.
_OF_NO_GUEST: Mapping[str, Any] = {
    "proxmox_vmid": None,
    "proxmox_tags": [],
    "proxmox_tenant": None,
    "proxmox_pool": None,
    "proxmox_template": False,
    "proxmox_lock": None,
}


def _common(row: Mapping[str, Any], kind: str, site: str) -> dict[str, Any]:
    return {
        "proxmox_kind": kind,
        "proxmox_node": _text(row, "node"),
        "proxmox_status": _text(row, "status", "unknown"),
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


def _text(row: Mapping[str, Any], key: str, default: str = "") -> str:
    value = row.get(key)
    return str(value or default)


def guest_of(variables: dict[str, Any]) -> InventoryGuest:
    """Return the guest with these variables and the fields from them. Raises KeyError."""
    return InventoryGuest(
        site=variables["proxmox_site"] or "",
        vmid=variables["proxmox_vmid"] or 0,
        name=variables["proxmox_name"] or "",
        node=variables["proxmox_node"],
        status=variables["proxmox_status"],
        tags=tuple(variables["proxmox_tags"]),
        tenant=variables["proxmox_tenant"],
        pool=variables["proxmox_pool"] or "",
        template=variables["proxmox_template"],
        uptime=variables["proxmox_uptime"],
        kind=variables["proxmox_kind"],
        variables=variables,
    )


def plain_name(guest: InventoryGuest, kind: str) -> str:
    """Return the name of this kind (`name`, `vmid`, `name_vmid`, `site_name`), or an empty text."""
    names = {"name": guest.name}
    if guest.kind != NODE:
        name = guest.name or guest.substitute.partition("-")[0]
        names |= {"vmid": guest.substitute, "name_vmid": f"{name}_{guest.vmid}"}
    if guest.site and guest.name:
        names["site_name"] = f"{guest.site}_{guest.name}"
    return names.get(kind, "")


def unique_names(
    guests: Sequence[InventoryGuest], wanted: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return a unique host name for each guest, and warnings about changed names.

    `wanted` are the preferred names, in the order of the guests; an empty or invalid name becomes
    `vm-<vmid>` or `ct-<vmid>`. If several guests of any kind have the same preferred name, each
    becomes `name_<vmid>`, or `name_<vmid>_<site>` if that is shared too (two sites). A node that
    shares a name becomes `name_node`. Of the two copies of a guest that moves to another cluster
    one keeps the name.
    """
    base: list[str] = []
    warnings: list[str] = []
    for guest, name in zip(guests, wanted, strict=True):
        if _HOST_NAME.fullmatch(name):
            base.append(name)
            continue
        substitute = guest.substitute
        base.append(substitute)
        if name:
            warnings.append(f"{name!r} cannot be the name of a host: using {substitute}")
    names = list(base)
    second = _second_copies(guests)
    for form in ("{name}_{vmid}", "{name}_{vmid}_{site}"):
        counts = Counter(names)
        first = Counter(name for index, name in enumerate(names) if index not in second)
        for index, guest in enumerate(guests):
            name = names[index]
            others = counts[name] if index in second else first[name]
            if others > 1 or means_something_else(name):
                site = guest.site or "site"
                names[index] = form.format(name=base[index], vmid=guest.vmid_or_node, site=site)
    # A guest may already have the name that another guest just got: the VMID distinguishes them.
    used: set[str] = set()
    for index, guest in enumerate(guests):
        while names[index] in used:
            names[index] = f"{names[index]}_{guest.vmid_or_node}"
        used.add(names[index])
    return names, warnings + _renamings(base, names)


def _second_copies(guests: Sequence[InventoryGuest]) -> set[int]:
    """Return the places of guests whose other copy keeps the name, because they move to another
    cluster: the target until it is proven, then the source. Their notes say so, which are read
    with the configuration.
    """
    copies = {
        (site_word(one.site), one.vmid, one.kind, one.tenant): one.variables.get("proxmox_move")
        for one in guests
    }
    found: set[int] = set()
    for index, guest in enumerate(guests):
        move = guest.variables.get("proxmox_move")
        if not move:
            continue
        kept = (guest.kind, guest.tenant)
        source = (move["from_site"], move["from_vmid"], *kept)
        target = (move["to_site"], move["to_vmid"], *kept)
        if not copies.keys() >= {source, target}:
            continue
        state = (copies[target] or move)["state"]  # the locked source does not learn of the proof
        if (site_word(guest.site), guest.vmid, *kept) == (source if state == PROVEN else target):
            found.add(index)
    return found


def means_something_else(name: str) -> bool:
    """Return whether the name has another meaning to Ansible or a resolver than a VM.

    A resolver also reads `127.1` and `2130706433` as addresses, and PVE accepts both as names.
    """
    low = name.lower().rstrip(".")
    if low in RESERVED or _CONTROLLER.fullmatch(low):
        return True
    may_be_address = low[0].isdigit() or ":" in low
    if not may_be_address:  # avoids the conversions below for thousands of names
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
    """Return a warning for each name that could not be used unchanged."""
    changed: dict[str, list[str]] = {}
    for old, new in zip(base, names, strict=True):
        if old != new:
            changed.setdefault(old, []).append(new)
    warnings: list[str] = []
    for name, hosts in changed.items():
        reason = "is not the name of one host only"
        if means_something_else(name):
            reason = "means something else to Ansible"
        warnings.append(f"the host name {name!r} {reason}: using {first_of(hosts)}")
    return warnings


def group_names(
    guests: Sequence[InventoryGuest],
    kinds: Collection[str],
    sanitize: Sanitize,
    prefix: str = PREFIX,
) -> tuple[list[list[str]], list[str]]:
    """Return the groups of each guest, and warnings.

    If a guest has a group of its tenant, the tag of the tenant gets no group: both groups would
    contain the same guests. If sanitizing makes two values equal (tenants `a-b` and `a_b`), they
    still get different groups: the value that needed no change keeps the plain name, the others get
    a short hash.
    """
    values = [_values(guest, kinds, prefix) for guest in guests]
    names, warnings = _group_table(set().union(*values), sanitize)
    return [[names[pair] for pair in own] for own in values], warnings


def _values(guest: InventoryGuest, kinds: Collection[str], prefix: str) -> list[Pair]:
    """Return pairs of kind and value, for example ("node", "pve1").

    A node is in no group of guests, so that a play for the guests on a node skips the node itself.
    """
    if guest.kind == NODE:
        of_node = (("status", guest.status), ("site", guest.site), ("kind", NODE))
        return [(kind, value) for kind, value in of_node if value and kind in kinds]
    tags = dict.fromkeys(guest.tags)
    config = guest.variables.get("proxmox_config") or {}
    if guest.tenant and "tenant" in kinds:
        doubled = tenant_tag(guest.tenant, prefix)
        tags = {tag: None for tag in tags if tag.lower() != doubled}
    values = [("tenant", guest.tenant), *(("tag", tag) for tag in tags)]
    values += [(kind, getattr(guest, kind)) for kind in ("node", "status", "pool", "site", "kind")]
    pairs = [(kind, str(value)) for kind, value in values if value and kind in kinds]
    if guest.template and "template" in kinds:
        pairs.append(("template", ""))
    if config.get("ostype") and "os" in kinds:
        pairs.append(("os", str(config["ostype"])))
    return pairs


def _group_table(pairs: Collection[Pair], sanitize: Sanitize) -> tuple[dict[Pair, str], list[str]]:
    """Return the name of the group of each pair, and warnings about names that need a hash."""
    by_name: dict[str, list[Pair]] = {}
    for kind, value in sorted(pairs):
        name = sanitize(f"{kind}_{value}" if value else kind)
        by_name.setdefault(name, []).append((kind, value))
    names: dict[Pair, str] = {}
    warnings: list[str] = []
    for name, sharing in by_name.items():
        for kind, value in sharing:
            names[kind, value] = name
            if len(sharing) == 1 or name == f"{kind}_{value}":
                continue
            digest = hashlib.sha256(value.encode()).hexdigest()[:6]
            hashed = f"{name}_{digest}"
            names[kind, value] = hashed
            reason = f"because {name!r} is another's"
            warnings.append(f"the group of {kind} {value!r} is {hashed!r}, {reason}")
    return names, warnings


_HARMLESS = re.compile(r"[A-Za-z0-9_.:/+\-@,;=% ]*")


def is_harmless(text: str) -> bool:
    """Return whether no part of the text could be a template, alone or joined to others."""
    return _HARMLESS.fullmatch(text) is not None


def shortened(warnings: Sequence[str], what: str) -> list[str]:
    """Return the first warnings and the number of the others: there may be thousands."""
    remaining = len(warnings) - MAX_WARNINGS
    if remaining <= 0:
        return list(warnings)
    return [*warnings[:MAX_WARNINGS], f"and {remaining} more {what}"]
