# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of single hosts, fetched in parallel: a slow or broken guest affects no other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.addresses import (
    AddressRule,
    GuestAddress,
    agent_addresses,
    agent_is_on,
    choose_address,
    nic_macs,
)
from ..._guests.kinds.move import describe_move
from ..._guests.kinds.words import CONTAINER, CT, GUESTS, VIRTUAL_MACHINE, VM
from .hosts import InventoryGuest
from .kinds import NODE

DETAILS = ("addresses", "config", "snapshots")
# Options that are neither shown nor cached, not even the asterisks that PVE sends for them.
_HIDDEN = frozenset({"cipassword"})
NOT_THE_ANSWER = "malformed answer"
# The name under which PVE lists the present state among the snapshots.
_PRESENT = "current"
_SNAPSHOT_KEYS = ("name", "description", "snaptime", "parent")


@dataclass(frozen=True)
class FetchLimits:
    """Limits of fetching details; times in seconds. 0 sets no limit for `whole` and `max_age`."""

    workers: int = 10  # threads
    call: float = 5.0  # for one request
    whole: float = 120.0  # for all requests
    max_age: float = 3600.0  # of a cached detail


def fetch_details(
    clients: Mapping[str, Client],
    guests: Sequence[InventoryGuest],
    kinds: Collection[str],
    limits: FetchLimits,
    earlier: Mapping[str, Mapping[str, Any]] | None = None,
    offline: Collection[tuple[str, str]] = (),
) -> dict[str, dict[str, Any]]:
    """Return the details of each host by its key, with the reason of each failure under `errors`.

    Never raises. A guest is not asked for addresses if it is stopped, or if its configuration shows
    that it has no agent. Nodes have addresses only, from one request for each site.
    `earlier` are details that may be out of date: their snapshots are kept if the digest of the
    configuration, which covers the snapshots too, is the same. `offline` are pairs of site and node
    that are not asked.
    """
    if not guests or not kinds:
        return {}
    known = earlier or {}
    clock = next(iter(clients.values())).clock
    deadline = clock.monotonic() + limits.whole if limits.whole > 0 else float("inf")

    def fetch_one(guest: InventoryGuest) -> dict[str, Any]:
        wanted = list(kinds)
        if guest.template or guest.status != "running":
            wanted = [kind for kind in kinds if kind != "addresses"]
        if (guest.site, guest.node) in offline:
            return {"errors": dict.fromkeys(wanted, f"node {guest.node} is offline")}
        remaining = deadline - clock.monotonic()
        if remaining <= 0:
            return {"errors": dict.fromkeys(wanted, f"not asked within {limits.whole:g} s")}
        request = _GuestRequest(clients[guest.site], guest, min(limits.call, remaining))
        return request.details(wanted, known.get(guest.key, {}))

    of_guests = [guest for guest in guests if guest.kind != NODE]
    keys = [guest.key for guest in of_guests]
    details = side_by_side(fetch_one, of_guests, limits.workers)
    found = dict(zip(keys, details, strict=True))
    if "config" in kinds:
        add_vnets(clients, of_guests, found, limits.call)
    if "addresses" in kinds:
        nodes = [guest for guest in guests if guest.kind == NODE]
        found.update(_of_nodes(clients, nodes, limits))
    return found


def _of_nodes(
    clients: Mapping[str, Client], nodes: Sequence[InventoryGuest], limits: FetchLimits
) -> dict[str, dict[str, Any]]:
    """Return the addresses of nodes by key; one request for each site."""
    sites = sorted({node.site for node in nodes})

    def read(site: str) -> tuple[list[Any], dict[str, str]]:
        request = _Request(clients[site], ("cluster",), limits.call)
        return request.read("addresses", "status") or [], request.errors

    answers = dict(zip(sites, side_by_side(read, sites, limits.workers), strict=True))
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        rows, errors = answers[node.site]
        addresses = node_addresses(rows, node.node)
        found[node.key] = {"addresses": [one.as_list() for one in addresses]}
        if errors:
            found[node.key]["errors"] = errors
    return found


class _Request:
    """Requests below one path; `errors` contains the reason of each failure, by kind of detail."""

    def __init__(self, client: Client, base: tuple[str | int, ...], timeout: float) -> None:
        self._client = client
        self._base = base
        self._timeout = timeout
        self.errors: dict[str, str] = {}

    def read(self, kind: str, *path: str, nullable: bool = False) -> Any:
        """Return a well-formed answer, None after an error; `nullable` allows null as an answer."""
        try:
            answer = self._client.get(*self._base, *path, timeout=self._timeout, tries=1)
        except FleetError as error:
            self.errors[kind] = error.reason or error.message
            return None
        except Exception as error:  # a bug about one guest must not affect the others
            self.errors[kind] = f"{type(error).__name__}: {error}"
            return None
        if answer is None and nullable:
            return None
        if not is_wellformed(kind, answer):
            self.errors[kind] = NOT_THE_ANSWER
            return None
        return answer


class _GuestRequest(_Request):
    """The requests about one guest."""

    def __init__(self, client: Client, guest: InventoryGuest, timeout: float) -> None:
        super().__init__(client, GUESTS[guest.kind].path(guest.node, guest.vmid), timeout)
        self._source = SOURCES[guest.kind]

    def details(self, kinds: Collection[str], earlier: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of these kinds, and `errors` if a request failed."""
        found: dict[str, Any] = {}
        config: Mapping[str, Any] | None = None
        if "config" in kinds:
            config = self.read("config", "config")
        if config is not None:
            found["config"] = {key: config[key] for key in config if key not in _HIDDEN}
        if "snapshots" in kinds:
            found["snapshots"] = self._snapshots(config, earlier)
        if "addresses" in kinds:
            found.update(self._addresses(config))
        if self.errors:
            found["errors"] = self.errors
        return found

    def _addresses(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the addresses, unless the configuration shows that there is no agent."""
        obstacle = self._source.find_obstacle(config) if config is not None else ""
        if obstacle:
            self.errors["addresses"] = obstacle
            return {}
        can_stop = self._source.needs_running
        answer = self.read("addresses", *self._source.path, nullable=can_stop)
        if can_stop and "addresses" in self.errors and not self._runs():
            del self.errors["addresses"]
        addresses = agent_addresses(answer, self._source.name)
        return {"addresses": [one.as_list() for one in addresses]}

    def _runs(self) -> bool:
        """Return whether the guest runs now, true if this cannot be read."""
        request = _Request(self._client, self._base, self._timeout)
        current = request.read("status", "status", "current")
        return current is None or current.get("status") == "running"

    def _snapshots(
        self, config: Mapping[str, Any] | None, earlier: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the snapshots, the earlier ones if the configuration's digest is the same."""
        digest = _digest(config)
        is_same = digest and digest == _digest(earlier.get("config"))
        if is_same and "snapshots" in earlier:
            return earlier["snapshots"]
        answer = self.read("snapshots", "snapshot") or []
        rows = [row for row in answer if isinstance(row, Mapping) and row.get("name") != _PRESENT]
        return [{key: row.get(key) for key in _SNAPSHOT_KEYS} for row in rows]


def is_wellformed(kind: str, answer: Any) -> bool:
    """Return whether an answer has PVE's form; the content of an agent's report is not checked."""
    if kind in ("config", "status"):
        return isinstance(answer, Mapping)
    if kind == "addresses" and isinstance(answer, Mapping):
        answer = answer.get("result")
    return isinstance(answer, list)


def _digest(config: Any) -> str:
    if not isinstance(config, Mapping):
        return ""
    return str(config.get("digest") or "")


def detail_variables(
    kind: str, details: Mapping[str, Any], kinds: Collection[str], rule: AddressRule
) -> dict[str, Any]:
    """Return the variables of a host of a kind for the fetched details (pure)."""
    if kind == NODE:
        kinds = [one for one in kinds if one == "addresses"]
    variables: dict[str, Any] = {}
    config: Mapping[str, Any] = details.get("config") or {}
    if "config" in kinds:
        variables["proxmox_config"] = config
    if details.get("vnet"):
        variables["proxmox_vnet"], variables["proxmox_zone"] = details["vnet"]
    if config:  # the listing may show the name of a removed guest that had the VMID before
        variables["proxmox_name"] = GUESTS[kind].name_in(config) or None
        move = describe_move(config)
        if move is not None:
            variables["proxmox_move"] = move
    if "snapshots" in kinds:
        variables["proxmox_snapshots"] = details.get("snapshots") or []
    if "addresses" in kinds:
        reported = details.get("addresses") or ()
        addresses = [GuestAddress(*one) for one in reported]
        variables.update(_address_variables(kind, addresses, config, rule))
    if details.get("errors"):
        variables["proxmox_errors"] = dict(details["errors"])
    return variables


def _address_variables(
    kind: str, addresses: list[GuestAddress], config: Mapping[str, Any], rule: AddressRule
) -> dict[str, Any]:
    """Return the variables of the reported addresses, or else of the configured addresses."""
    macs = nic_macs(config)
    chosen = choose_address(addresses, rule, macs)
    if chosen is None and config:
        planned = SOURCES[kind].configured(config)
        chosen = choose_address(planned, rule, macs)
        addresses = addresses or planned
    interfaces = [
        {"name": one.interface, "mac": one.mac, "address": one.address, "prefix": one.prefix}
        for one in addresses
    ]
    return {
        "proxmox_addresses": [one.address for one in addresses],
        "proxmox_interfaces": interfaces,
        "proxmox_address": None if chosen is None else chosen.address,
        "proxmox_address_source": None if chosen is None else chosen.source,
    }


@dataclass(frozen=True)
class AddressSource:
    """The request for the addresses of a kind of guests, and the addresses in its configuration.

    `path` is below the path of the guest. `find_obstacle` returns from the configuration the reason
    why the guest cannot be asked, an empty text if it can. `needs_running`: the node answers null,
    or fails, for a guest that has stopped since the listing.
    """

    name: str
    path: tuple[str, ...]
    configured: Callable[[Mapping[str, Any]], list[GuestAddress]]
    find_obstacle: Callable[[Mapping[str, Any]], str] = lambda _config: ""
    needs_running: bool = False


def _agent_obstacle(config: Mapping[str, Any]) -> str:
    agent = str(config.get("agent") or "0")
    return "" if agent_is_on(agent) else "agent not configured"


SOURCES: Mapping[str, AddressSource] = {
    VIRTUAL_MACHINE: AddressSource(
        name="agent",
        path=("agent", "network-get-interfaces"),
        find_obstacle=_agent_obstacle,
        configured=VM.addresses_in,
    ),
    CT: AddressSource(
        name="interfaces",
        path=(
            "interfaces",
        ),  # the node itself reports them (pve-container: LXC.pm, get_interfaces)
        configured=CONTAINER.addresses_in,
        needs_running=True,  # it finds no process, or nsenter no network
    ),
}


def node_addresses(rows: Iterable[Mapping[str, Any]], node: str) -> list[GuestAddress]:
    """Return the address of a node in the rows of C(/cluster/status)."""
    for row in rows:
        if row.get("type") == "node" and row.get("name") == node and row.get("ip"):
            return [GuestAddress(str(row["ip"]), source="cluster")]
    return []


# The prefix of a node's own bridges; a site without other bridges has no VNets to look up.
_BRIDGE = "vmbr"


def add_vnets(
    clients: Mapping[str, Client],
    guests: Sequence[InventoryGuest],
    found: Mapping[str, dict[str, Any]],
    timeout: float,
) -> None:
    """Add the first VNet of each guest, with its zone, to its details as C(vnet).

    One request for each site that has a guest on another bridge than C(vmbrN). Never raises: a VNet
    that the login may not see is not added.
    """
    bridges = {guest.key: _bridges(guest, found[guest.key].get("config") or {}) for guest in guests}
    for site in sorted({guest.site for guest in guests if bridges[guest.key]}):
        zones = _zones(clients[site], timeout)
        for guest in guests:
            known = [one for one in bridges[guest.key] if one in zones]
            if guest.site == site and known:
                found[guest.key]["vnet"] = [known[0], zones[known[0]]]


def _bridges(guest: InventoryGuest, config: Mapping[str, Any]) -> list[str]:
    """Return the bridges of a configuration that may be VNets, in the order of the NICs (pure)."""
    bridges = GUESTS[guest.kind].bridges_in(config).values()
    return [bridge for bridge in bridges if not bridge.startswith(_BRIDGE)]


def _zones(client: Client, timeout: float) -> dict[str, str]:
    """Return the zones of the VNets that the login may see; empty if they cannot be read."""
    try:
        rows = client.get("cluster", "sdn", "vnets", timeout=timeout, tries=1)
    except FleetError:
        return {}
    if not isinstance(rows, list):
        return {}
    listed = [row for row in rows if isinstance(row, Mapping)]
    return {str(row.get("vnet")): str(row.get("zone")) for row in listed}
