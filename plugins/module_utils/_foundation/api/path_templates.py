# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of requests as in the API's documentation, and how often each was called (pure).

The number of templates is bounded by this file: names of VMs, nodes and users add none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from .generated.guests import GUEST_TYPES
from .protocols import Row

# The placeholder after each word of a path, named as in the API's schema.
_NAMED = {
    "nodes": "{node}",
    "account": "{name}",
    **dict.fromkeys(GUEST_TYPES, "{vmid}"),
    "snapshot": "{snapname}",
    "tasks": "{upid}",
    "tfa": "{userid}/{id}",
    "storage": "{storage}",
    "content": "{volume}",
    "network": "{iface}",
    "pools": "{poolid}",
    "users": "{userid}",
    "token": "{tokenid}",
    "groups": "{groupid}",
    "roles": "{roleid}",
    "domains": "{realm}",
    "pool": "{name}",
    "mds": "{name}",
    "mgr": "{id}",
    "mon": "{monid}",
    "osd": "{osdid}",
    "resources": "{sid}",
    "rules": "{rule}",
    **dict.fromkeys(("gotify", "matchers", "sendmail", "smtp", "targets", "webhook"), "{name}"),
    **dict.fromkeys(
        ("backup", "dir", "pci", "plugins", "realm-sync", "replication", "server", "usb"), "{id}"
    ),
    "controllers": "{controller}",
    "custom-cpu-models": "{cputype}",
    "dns": "{dns}",
    "fabric": "{id}",
    "fabrics": "{fabric}",
    "flags": "{flag}",
    "ipams": "{ipam}",
    "node": "{fabric_id}/{node_id}",
    "services": "{service}",
    "subnets": "{subnet}",
    "vnets": "{vnet}",
    **dict.fromkeys(("directory", "lvm", "lvmthin", "zfs"), "{name}"),
    "zones": "{zone}",
}
# Words below C(cluster) that no placeholder follows.
_BARE_IN_CLUSTER = frozenset((*GUEST_TYPES, "fabrics"))
_OF_CLUSTER = {word: name for word, name in _NAMED.items() if word not in _BARE_IN_CLUSTER}
# The placeholders that follow a word below C(firewall).
_OF_FIREWALL = {
    "aliases": "{name}",
    "groups": "{groupid}/{pos}",
    "ipset": "{name}/{cidr}",
    "rules": "{pos}",
}
# A name that may contain slashes: it is the whole rest of a path.
_LONG_NAMES = ("{volume}",)
_WORDS = frozenset(
    "access account acl acme agent aliases all aplinfo apt arm-ha backup capabilities ceph"
    " certificate certificates cifs clone cloudinit cluster cmd-safety config content"
    " controllers cpu current custom custom-cpu-models defaults dir directory disarm-ha disks dns"
    " domains download-url dry-run endpoints exec exec-status extractconfig fabric fabrics"
    " feature file-read file-write firewall flags get-host-name get-osinfo gotify groups ha"
    " hardware hosts in info initgpt interfaces ipams ipset iscsi jobs join list lock log lvm"
    " lvmthin macros manager_status mapping matchers mds meta metrics mgr migrate migration mon"
    " move_disk move_volume mtunnel network network-get-interfaces nextid nfs node nodes"
    " notifications options osd out password pbs pci pending permissions ping plugins pool pools"
    " query-url-metadata realm-sync reboot refs reload relocate remote_migrate replication"
    " repositories reset resize resources restart resume roles rollback rules scan sdn sendmail"
    " server services shutdown smtp snapshot start state status stop storage subnets"
    " subscription suspend sync targets tasks template test tfa ticket time token unlink update"
    " upload usb users version vnets vzdump webhook wipedisk zfs zones".split()
).union(GUEST_TYPES)
OTHER = "other"


def template_of(path: str) -> str:
    """Return a path with placeholders for names, such as C(/nodes/{node}/qemu/{vmid}/config).

    The first unknown word and everything after it become V(other), so no template contains a name.
    """
    found: list[str] = []
    named = _NAMED
    placeholders: list[str] = []
    for part in filter(None, path.split("/")):
        if placeholders:
            found.append(placeholders.pop(0))
            if found[-1] in _LONG_NAMES:
                break
            continue
        if part not in _WORDS:
            found.append(OTHER)
            break
        found.append(part)
        if part == "cluster":
            named = _OF_CLUSTER
        if part == "firewall":
            named = _OF_FIREWALL
        if part == "capabilities":
            named = {}  # a kind below it has no VMID
        placeholders = named[part].split("/") if part in named else []
    return "/" + "/".join(found)


def status_of(row: Row) -> str:
    """Return the HTTP status of a request, V(none) if it had no answer."""
    status = row[2]
    if status == 0:
        return "none"
    return str(status)


def count_requests(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the number of calls by method, template and status, sorted."""
    counts = Counter((row[0], template_of(row[1]), status_of(row)) for row in list(rows))
    found: list[dict[str, Any]] = []
    for method, endpoint, status in sorted(counts):
        number = counts[method, endpoint, status]
        found.append({"method": method, "endpoint": endpoint, "status": status, "count": number})
    return found
