# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides whether a name of a task names something, and refuses a name that names nothing.

All messages contain only names that the login itself can see.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.arguments.options import HINT, did_you_mean
from ...core.errors import FleetError, NotFound
from ...core.failures.classify import CHECK_NODE
from ...core.formatting import first_of
from ...core.marks import marked_tag
from ..bridges import KnownBridges
from ..state import ClusterState
from ..tenant import tenant_tag, tenants_of
from .restoring import suspects
from .visible import hidden_storages

if TYPE_CHECKING:
    from ...api.client import Client
    from ...api.protocols import Reader

TENANT, ESTATE_TENANT, TAG = "tenant", "estate_tenant", "tag"
NODE, POOL, STORAGE, NETWORK = "node", "pool", "storage", "network"
KINDS = (TENANT, ESTATE_TENANT, TAG, NODE, POOL, STORAGE, NETWORK)
VNET, USER, ENDPOINT = "VNet", "user", "endpoint"
ACCOUNT, PLUGIN = "ACME account", "ACME plugin"
# The path, the query and the key of the listing that has the names of a kind.
_LISTINGS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any], str]] = {
    VNET: (("cluster", "sdn", "vnets"), {"running": 1}, "vnet"),
    USER: (("access", "users"), {}, "userid"),
    ENDPOINT: (("cluster", "notifications", "targets"), {}, "name"),
    ACCOUNT: (("cluster", "acme", "account"), {}, "name"),
    PLUGIN: (("cluster", "acme", "plugins"), {}, "plugin"),
}
GivenNames = dict[str, tuple[str, list[str]]]
"""The kind and the names by option."""
# A tag that no guest has only selects nothing. A tenant of an estate may be created later.
_WARNED = (ESTATE_TENANT, TAG)
# A table has the new names as its values, by the former names.
_TRANSLATED = (STORAGE, NETWORK)


def given_names(kinds: Mapping[str, str], params: Mapping[str, Any]) -> GivenNames:
    """Return the kind and the names of each option that names something (pure).

    An empty name means unset. A tenant and tags do not select guests if the task names its guests.
    The part C(*) of an option stands for every key of a table.
    """
    found: GivenNames = {}
    names_guests = any(params.get(key) for key in ("name", "vmid", "vms"))
    for option, kind in kinds.items():
        names: list[str] = []
        for value in _values_of(params, option.split(".")):
            if isinstance(value, str):
                value = [value]
            elif isinstance(value, Mapping):
                value = list(value.values() if kind in _TRANSLATED else value)
            if isinstance(value, list):
                names += [str(name) for name in value if name not in (None, "")]
        if names and not (names_guests and option in ("tenant", "tags")):
            found[option] = (kind, names)
    return found


def _values_of(table: Any, path: Sequence[str]) -> list[Any]:
    if not path:
        return [table]
    found: list[Any] = []
    for key, value in table.items() if isinstance(table, Mapping) else ():
        if path[0] in (key, "*"):
            found += _values_of(value, path[1:])
    return found


def check_names(client: Client, cluster: ClusterState, given: GivenNames, prefix: str) -> list[str]:
    """Return a warning for each tag and each tenant of an estate that does not exist.

    `given` has the kind and the names by option. Raises NotFound for another name that names
    nothing. One more request if a tenant has no guest.
    """
    return check_names_at([(client, cluster)], given, prefix, _WARNED)


def check_names_at(
    sites: Sequence[tuple[Client, ClusterState]],
    given: GivenNames,
    prefix: str,
    warned: Collection[str],
) -> list[str]:
    """Do the same at several sites: a name names nothing if no site has it. `warned` are the kinds
    with a warning.
    """
    warnings: list[str] = []
    for option, (kind, names) in given.items():
        for name in names:
            found = [find_unknown(*site, option, kind, name, prefix) for site in sites]
            errors = [error for error in found if error is not None]
            if not errors or len(errors) < len(sites):
                continue
            error = next((one for one in errors if HINT in one.answer), errors[0])
            if kind not in warned:
                raise error
            warnings.append(f"{option}: {error.answer}")
    return warnings


def find_unknown(
    client: Client, cluster: ClusterState, option: str, kind: str, name: str, prefix: str
) -> NotFound | None:
    """Return the error for a name that names nothing, or None."""
    if kind in (TENANT, ESTATE_TENANT):
        return _find_unknown_tenant(client, cluster, option, name, prefix)
    if kind == TAG:
        name = name.lower()
    known = _known(client, cluster, kind)
    if known is None or name in known:
        return None
    if kind == STORAGE and hidden_storages(client, [name]):
        return None  # it may exist, and Proxmox VE names the missing privilege
    return unknown(option, kind, name, known)


def _known(client: Client, cluster: ClusterState, kind: str) -> Collection[str] | None:
    """Return the names of a kind, or None if a part of them cannot be read.

    Networks need one request for each node that is online.
    """
    if kind == NODE:
        return cluster.nodes
    if kind == POOL:
        return cluster.pools
    if kind == TAG:
        return {tag.lower() for row in cluster.guests for tag in row.tags}
    if kind == STORAGE:
        return {row.storage for row in cluster.storages}
    bridges = KnownBridges(client)
    for node, row in cluster.nodes.items():
        if row.online:
            bridges.try_read(node)
    if None in bridges.by_node.values():
        return None
    return frozenset().union(*filter(None, bridges.by_node.values()))


def _find_unknown_tenant(
    client: Client, cluster: ClusterState, option: str, name: str, prefix: str
) -> NotFound | None:
    """Return the error for a tenant of which the login sees neither a guest nor a pool.

    A guest that is being restored has no tags, and may belong to any tenant.
    """
    tag = tenant_tag(name, prefix)
    known = set(tenants_of((tag for row in cluster.guests for tag in row.tags), prefix))
    known |= {tenant_tag(pool, prefix) for pool in cluster.pools}
    if tag not in known and cluster.pools:
        rows = client.get("pools", attempted="Could not list the pools") or ()
        marks = (marked_tag(row.get("comment")) for row in rows)
        known |= set(tenants_of(filter(None, marks), prefix))
    if tag in known or suspects(cluster, tag, prefix):
        return None
    return unknown(option, TENANT, name.lower(), {one[len(prefix) :] for one in known})


def unknown(option: str, noun: str, name: str, known: Collection[str]) -> NotFound:
    """Return the error for a name of an option that names nothing (pure)."""
    listed = first_of(sorted(known), 20) or "none"
    return NotFound(
        f"{option} was refused: there is no {noun} '{name}' that this login can "
        f"see{did_you_mean(name, known)}",
        f"Correct the name; visible {noun}s: {listed}",
        f"unknown {noun}",
    )


def with_known_nodes(error: FleetError, clients: Sequence[Client]) -> FleetError:
    """Return the error; if Proxmox VE does not know a node, with the nodes of the cluster."""
    name = re.search("'([^']+)'", error.answer)
    if error.next_step != CHECK_NODE or name is None or not clients:
        return error
    try:
        known = sorted(str(row["node"]) for row in clients[0].get("nodes") or ())
    except FleetError:
        return error
    answer = f"{error.answer}{did_you_mean(name[1], known)}"
    return error.on(answer=answer, next_step=f"Name one of {', '.join(known)}")


def read_listed(client: Reader, kind: str) -> frozenset[str]:
    """Return the names in the listing of a kind, which the login can see; one request."""
    path, query, key = _LISTINGS[kind]
    rows = client.get(*path, **query) or ()
    return frozenset(str(row[key]) for row in rows if row.get(key))


def require_listed(client: Reader, option: str, kind: str, names: Collection[str]) -> None:
    """Raise NotFound for the first name of an option that the listing of its kind does not have.

    One request if names are given. Proxmox VE does not list all users to a login without
    User.Modify or Sys.Audit (pve-access-control: API2/User.pm), so any user can exist then.
    """
    known = read_listed(client, kind) if names else frozenset()
    if kind != USER or "root@pam" in known:
        require_known(option, kind, names, known)


def require_nodes_of_sites(
    option: str, names: Collection[str], sites: Collection[Collection[str] | None]
) -> None:
    """Raise NotFound for a node that no site has, unless a site could not be read (pure).

    `sites` are the nodes of each site.
    """
    if None not in sites:
        require_known(option, NODE, names, set().union(*filter(None, sites)))


def require_known(option: str, noun: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise NotFound for the first name of an option that names nothing (pure)."""
    for name in sorted(set(names) - set(known)):
        raise unknown(option, noun, name, known)
