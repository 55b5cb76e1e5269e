# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests of a task at both sites, and chooses the place of each guest that moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.api.endpoint import Endpoint
from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.api.settings import ConnectionSettings
from ..._foundation.cluster.bridges import KnownBridges
from ..._foundation.cluster.placement import PlacementNeeds, choose_node, require_node
from ..._foundation.cluster.quota import QuotaFigures, excess, figures_by_vm, format_figures, total
from ..._foundation.cluster.state import (
    ClusterState,
    VmRow,
    fetch_cluster_state,
    read_config,
    read_members,
    with_names,
)
from ..._foundation.cluster.tenant import have_same_tenants, parse_tags, tenant_of, tenant_tag
from ..._foundation.cluster.vmids import VmidAllocator
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, FleetError
from ..._foundation.core.parallel import side_by_side
from ..._guests.fleet.reservations import PlanningView, row_of
from ..._guests.guest.flow.reads import GuestReads
from ..._guests.guest.plan.capacity import Capacity, moved_bytes
from ..._guests.guest.plan.refusals import require_mtus
from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import (
    ARCHIVE,
    COMPLETE,
    MoveRecord,
    last_record_of,
    record_of,
    site_word,
)
from ..._guests.kinds.words import VM
from ..._infrastructure.datacenter.cpu_model import CPU_MODEL
from ..._infrastructure.datacenter.cpu_model import SINCE as CPU_MODELS_SINCE
from ..._tenants.firewall.read import groups_of
from ..backup.read import CONTENT
from ..restore.failover.read import tenant_pools
from .archive import ArchivePlace, find_losses, find_storage, restore_storage
from .belongings import JoinOptions, SiteObjects, belongings_of, sid_of
from .desired import DesiredMoves, find_unknown
from .read import read_objects, read_row
from .refusals import SourceFacts, find_direct_refusals, find_format_problems, find_refusals
from .steps import Destination

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_CERTIFICATES = ("pveproxy-ssl.pem", "pve-ssl.pem")


@dataclass(frozen=True)
class MovingGuest:
    """A guest of the task, at the source if it is still there, and its record."""

    actual: Actual
    record: MoveRecord | None
    at_source: bool

    @property
    def vmids(self) -> tuple[int, int]:
        """The VMIDs at the source and at the target, 0 if there is none."""
        if not self.at_source:
            return 0, self.actual.vmid
        return self.actual.vmid, 0 if self.record is None else self.record.target


@dataclass(frozen=True)
class FoundGuests:
    """The guests of the task, a sentence about each problem, and the VMIDs at the source of guests
    whose move was complete before.
    """

    guests: list[MovingGuest]
    problems: list[str]
    complete: list[int]

    @property
    def sources(self) -> set[int]:
        """The VMIDs at the source of all guests."""
        moving = {
            one.actual.vmid if one.record is None else one.record.source for one in self.guests
        }
        return moving.union(self.complete)


@dataclass(frozen=True)
class FoundSite:
    """A site of the task: its client, its listing, and the identity of its cluster."""

    client: Client
    listing: ClusterState
    cluster: str


def find_guests(source: FoundSite, target: FoundSite, desired: DesiredMoves) -> FoundGuests:
    """Return the guests of the task at both sites. One request for each guest at the target that
    the task could mean, two for each guest at the source.
    """
    here, client, pair = source.listing, source.client, f"{source.cluster}.{target.cluster}"
    rows = [row for row in here.vms.values() if desired.filter.fits(row, row.vmid)]
    actuals = side_by_side(lambda row: read_row(client, row), sorted(rows, key=lambda r: r.vmid))
    guests = [
        MovingGuest(one, record_of(one.target, one.vmid, source.cluster), True) for one in actuals
    ]
    goal = site_word(desired.site), pair
    problems = [
        f"{one.actual.label}: it is on its way to site {one.record.site}"
        for one in guests
        if one.record is not None and (one.record.site, one.record.clusters) != goal
    ]
    known = {one.record.id for one in guests if one.record is not None}
    found = {key for one in guests for key in (one.actual.name, *map(str, one.vmids))}
    complete: list[int] = []
    for row, arrived in _find_arrived(target, desired, origin_of(client), pair):
        found |= {row.own_name, str(row.vmid), str(arrived.source)}
        if arrived.state == COMPLETE:
            complete.append(arrived.source)
            continue
        if arrived.id in known:
            continue
        rest = here.guest(arrived.source)
        config = None if rest is None else read_config(client, rest.path)
        record = None if config is None else record_of(config, arrived.source, source.cluster)
        if record is None or record.id != arrived.id:
            guests.append(MovingGuest(read_row(target.client, row), arrived, False))
        elif rest is not None and rest.template:  # root has released it for its removal
            guests.append(MovingGuest(read_row(client, rest), record, True))
    if complete and desired.returns:
        problems.append(
            "the sources of complete moves were removed: move these guests back instead"
        )
    problems += find_unknown(desired.filter, desired.confirmed, found, here.vms.values())
    return FoundGuests(guests, problems, complete)


def origin_of(source: Client) -> str:
    """Return the name of the source in a record: a site without a name has its address."""
    return source.site or source.connection.endpoint.host


def _find_arrived(
    target: FoundSite, desired: DesiredMoves, origin: str, pair: str
) -> list[tuple[VmRow, MoveRecord]]:
    """Return the guests at the target that moved there from this source, with their records. The
    record of a clone or of a restored copy has the VMID of another guest.
    """
    has_numbers = any(map(str.isdigit, desired.filter.names))
    rows = sorted(target.listing.vms.values(), key=lambda row: row.vmid)
    asked = [row for row in rows if has_numbers or desired.filter.fits(row, 0)]
    found: list[tuple[VmRow, MoveRecord]] = []
    configs = side_by_side(lambda row: read_config(target.client, row.path) or {}, asked)
    for row, config in zip(asked, configs, strict=True):
        record = last_record_of(config)
        if record is None or record.target != row.vmid:
            continue
        sites = record.origin, record.site, record.clusters
        if sites != (site_word(origin), site_word(desired.site), pair):
            continue
        if desired.filter.fits(row, record.source):
            found.append((row, record))
    return found


def read_source_facts(client: Client, cluster: ClusterState) -> SourceFacts:
    """Return the facts of the source; five requests besides its version."""
    return SourceFacts(
        version=client.version(),
        objects=read_objects(client, rules=True, jobs=True),
        storages={row.storage: row.kind for row in cluster.storages},
        rows={str(row["storage"]): row for row in client.get("storage") or ()},
    )


@dataclass(frozen=True)
class GuestDetails:
    """The snapshots of a guest, and the security groups in the rules of its firewall."""

    snapshots: list[str]
    groups: set[str]


@dataclass
class Places:
    """Chooses the place of each guest at the target, one after the other: `view` has the guests
    that were placed before.
    """

    client: Client
    source: Client
    desired: DesiredMoves
    facts: SourceFacts
    cluster: ClusterState
    view: PlanningView
    bridges: KnownBridges
    pools: Mapping[str, str]
    addresses: Mapping[str, str]
    local: str
    endpoint: Endpoint
    groups: frozenset[str]
    objects: SiteObjects
    rows: Mapping[str, Mapping[str, Any]]
    reads: GuestReads
    source_reads: GuestReads
    planned: dict[str, QuotaFigures] = field(default_factory=dict)
    _fingerprints: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        source: Client,
        here: ClusterState,
        client: Client,
        cluster: ClusterState,
        desired: DesiredMoves,
    ) -> Places:
        """Return the target before the first guest is placed. Raises ConfigurationError if the
        login is not a token: the nodes of the source need one.
        """
        require_token(client.connection, desired.site)
        members = read_members(client)
        local = next((str(row["name"]) for row in members if row.get("local")), "")
        bridges = KnownBridges(client)
        for name, node in cluster.nodes.items():
            if node.online:
                bridges.try_read(name)
        return cls(
            client=client,
            source=source,
            desired=desired,
            facts=read_source_facts(source, here),
            cluster=cluster,
            view=PlanningView(client, cluster),
            bridges=bridges,
            pools=tenant_pools(client, desired.filter.owner.prefix),
            addresses={str(row["name"]): str(row.get("ip") or "") for row in members},
            local=local,
            endpoint=client.endpoint,
            groups=frozenset(groups_of(client.get("cluster", "firewall", "groups"))),
            objects=read_objects(client, rules=True, jobs=True),
            rows={str(row["storage"]): row for row in client.get("storage") or ()},
            reads=GuestReads(CachingReader.around(client)),
            source_reads=GuestReads(CachingReader.around(source)),
        )

    @property
    def join(self) -> JoinOptions:
        """The options of the objects at the target."""
        desired, nodes = self.desired, frozenset(self.cluster.nodes)
        return JoinOptions(desired.ha_rules, nodes, desired.replication_targets, self.rows)

    def pool_of(self, actual: Actual) -> str:
        """Return the pool of a guest at the target, or an empty text."""
        tenant = self._tenant(actual) or ""
        pool = self.desired.pools.get(tenant) or self.pools.get(tenant) or ""
        if not pool and actual.pool in self.cluster.pools:
            return str(actual.pool)
        return pool

    def _tenant(self, actual: Actual) -> str | None:
        return tenant_in(actual, self.desired.filter.owner.prefix)

    def read_details(self, guest: MovingGuest) -> GuestDetails:
        """Return the details of a guest; two requests."""
        path = guest.actual.path
        rows = self.source.get(*path, "snapshot") or ()
        rules = self.source.get(*path, "firewall", "rules") or ()
        return GuestDetails(
            [str(row["name"]) for row in rows if row["name"] != "current"],
            {str(rule["action"]) for rule in rules if rule.get("type") == "group"},
        )

    def place(
        self, guest: MovingGuest, details: GuestDetails
    ) -> tuple[Destination | None, list[str]]:
        """Return the place of a guest, or a sentence about each reason why it has none."""
        actual, label, snapshots = guest.actual, guest.actual.label, details.snapshots
        problems = find_refusals(actual, self.facts)
        problems += self._find_site_problems(guest)
        problems += self._find_unknown_groups(details.groups)
        own = belongings_of(sid_of(actual.kind, actual.vmid), self.facts.objects)
        problems += self.join.find_problems(own, self.objects, self.desired.site)
        storages = self._storages(actual)
        types = {row.storage: row.kind for row in self.cluster.storages}
        direct = find_direct_refusals(actual, snapshots)
        direct += find_format_problems(actual, storages, types, self.facts)
        archive, place = None, None
        if self.desired.archive_storage and (direct or _is_by_archive(guest)):
            archive, direct = self._archive_of(actual, storages, snapshots)
        problems += direct
        try:
            place = self._choose(guest, storages, archive)
        except FleetError as error:
            problems.append(error.cause)
        return None if problems else place, [f"{label}: {problem}" for problem in problems]

    def _archive_of(
        self, actual: Actual, storages: Mapping[str, str], snapshots: list[str]
    ) -> tuple[ArchivePlace, list[str]]:
        """Return the storages of the archive of a guest, or a sentence about each reason why it
        cannot move by one.
        """
        desired, name = self.desired, self.desired.archive_storage
        there, problem = find_storage(name, self.facts.rows, self.rows)
        problems = [problem] if problem else []
        nodes = str(self.facts.rows.get(name, {}).get("nodes") or actual.node)
        if actual.node not in nodes.split(","):
            problems.append(f"archive_storage: {name} is not on its node {actual.node}")
        storage, problem = restore_storage(actual, storages)
        problems += [problem] if problem else []
        problems += find_losses(actual, snapshots, desired.archive_without)
        return ArchivePlace(name, there, storage=storage), problems

    def find_unknown(self, cluster: ClusterState, guests: Sequence[MovingGuest]) -> list[str]:
        """Return a sentence about each name of the task that names nothing at its site. `cluster`
        is the source; the bridges of its nodes are read if no guest has a name in O(networks).
        """
        problems: list[str] = []
        here, there = origin_of(self.source), self.desired.site
        targets = self.desired.replication_targets
        replicas = set(targets.values()) - {""}
        prefix = self.desired.filter.owner.prefix
        rows = (*cluster.guests, *self.cluster.guests)
        tenants = {tenant_of(row.tags, prefix)[0] or "" for row in rows}.union(self.pools)
        # a group of Proxmox VE 8 is not read
        rules = self.facts.objects.rules if self.facts.objects.has_rules else self.desired.ha_rules
        for option, site, names, known in (
            ("pools", there, set(self.desired.pools.values()), self.cluster.pools),
            ("endpoints", there, set(self.desired.endpoints), self.cluster.nodes),
            ("replication_targets", there, replicas, self.cluster.nodes),
            ("ha_rules", here, set(self.desired.ha_rules), rules),
            ("replication_targets", here, set(targets), cluster.nodes),
            ("storage_map", here, set(self.desired.storage_map), self.facts.rows),
            ("networks", here, set(self.desired.networks), self._bridges_of(cluster, guests)),
            ("pools", f"{here} or {there}", set(self.desired.pools), tenants - {""}),
            ("quotas", f"{here} or {there}", set(self.desired.quotas), tenants - {""}),
            ("archive_storage", here, {self.desired.archive_storage} - {""}, self.facts.rows),
        ):
            for name in sorted(names - set(known)):
                hint = did_you_mean(name, known)
                problems.append(f"{option}: {name} is not at site {site}{hint}")
        return problems

    def _bridges_of(self, cluster: ClusterState, guests: Sequence[MovingGuest]) -> set[str]:
        """Return the bridges of the guests; if they lack a name of the task, of the source too."""
        actuals = [one.actual for one in guests]
        found = {name for one in actuals for name in one.kind.bridges_in(one.target).values()}
        if self.desired.networks.keys() <= found:
            return found
        bridges = KnownBridges(self.source)
        for name, node in cluster.nodes.items():
            if node.online:
                bridges.try_read(name)
        return found.union(*filter(None, bridges.by_node.values()))

    def _find_site_problems(self, guest: MovingGuest) -> list[str]:
        """Return the reasons that are not about one node of the target."""
        problems: list[str] = []
        actual, own = guest.actual, guest.vmids[1]
        target, prefix = self.client.version(), self.desired.filter.owner.prefix
        if target[0] < self.facts.version[0]:
            problems.append(f"site {self.desired.site} has the older Proxmox VE {target[0]}")
        tags = parse_tags(actual.target.get("tags"))
        for row in self.view.of(actual.kind.type).now().guests:
            is_other = row.vmid != own and row.own_name == actual.name
            if is_other and have_same_tenants(row.tags, tags, prefix):
                problems.append(f"guest {row.vmid} at site {self.desired.site} has its name")
        if actual.pool and not self.pool_of(actual):
            problems.append(
                f"it is in pool {actual.pool}, which site {self.desired.site} lacks (pools)"
            )
        return problems + self._find_cpu_problems(actual) + self._find_excess(actual)

    def _find_cpu_problems(self, actual: Actual) -> list[str]:
        """Return why the target does not run a VM with its custom CPU model. One request to each
        site, once. Proxmox VE finds it before or after the copy of the disks (qemu-server:
        API2/Qemu.pm, remote_migrate_vm of 9.1.19; update_vm_api).
        """
        name, site = _cpu_of(actual), self.desired.site
        if not name.startswith("custom-"):
            return []
        here = _read_cpu_models(self.source_reads.client, actual.node)
        there = _read_cpu_models(self.reads.client, self.local)
        if name not in there:
            return [f"site {site} has no CPU model {name}, or its login may not see it"]
        own, other = here.get(name), there[name]
        if own and other and CPU_MODEL.values(own) != CPU_MODEL.values(other):
            return [f"site {site} has another CPU model {name}"]
        return []

    def _find_unknown_groups(self, used: set[str]) -> list[str]:
        """Return the security groups in the rules of a guest that the target lacks: its firewall is
        copied unchanged, and rules of an unknown group have no effect (qemu-server:
        QemuMigrate.pm, phase1_remote; pve-firewall: PVE/Firewall.pm, generate_group_rules).
        """
        site = self.desired.site
        return [
            f"its firewall uses the security group {name}, which site {site} lacks"
            for name in sorted(used - self.groups)
        ]

    def _find_excess(self, actual: Actual) -> list[str]:
        """Return the figures of its tenant's quota that it exceeds."""
        tenant, prefix = self._tenant(actual) or "", self.desired.filter.owner.prefix
        limits = self.desired.quotas.get(tenant)
        if limits is None:
            return []
        own = actual.kind.figures_of(actual.target)
        known = figures_by_vm(self.cluster, tenant_tag(tenant, prefix), prefix)
        used = total([*known.values(), self.planned.get(tenant, QuotaFigures())])
        over = excess(limits, used, own)
        self.planned[tenant] = self.planned.get(tenant, QuotaFigures()) + own
        problems: list[str] = []
        for kind, row in over.items():
            taken, wanted, limit = format_figures(kind, row["used"], row["wanted"], row["limit"])
            problems.append(
                f"{kind} of tenant {tenant}: {taken} used + {wanted}, the limit is {limit}"
            )
        return problems

    def _storages(self, actual: Actual) -> dict[str, str]:
        """Return the storage at the target by each storage of the guest."""
        desired = self.desired
        found = {
            name: desired.storage_map.get(name) or desired.storage or name
            for name in actual.kind.storages_in(actual.target)
        }
        return found or {desired.storage or "local": desired.storage or "local"}

    def _choose(
        self, guest: MovingGuest, storages: Mapping[str, str], archive: ArchivePlace | None
    ) -> Destination:
        """Return the place of a guest, and reserve its room. Raises FleetError."""
        actual, desired = guest.actual, self.desired
        kind, figures = actual.kind, actual.kind.figures_of(actual.target)
        cluster = self.view.of(kind.type).now()
        approved = self.client.plan_book.place_of(*guest_key(actual, desired.filter.owner.prefix))
        names = kind.bridges_in(actual.target).values()
        bridges = {name: desired.networks.get(name, name) for name in names}
        room: dict[str, int] = {}
        for storage, size in moved_bytes(kind, actual.target, ()).items():
            target = storages.get(storage, storage)
            room[target] = room.get(target, 0) + size
        runs = actual.running or bool(guest.record and guest.record.ran)
        memory = figures.memory if runs else 0
        contents = dict.fromkeys(storages.values(), kind.content)
        if archive is not None and archive.there:
            contents.setdefault(archive.there, CONTENT)
        needs = PlacementNeeds(
            storages=contents,
            only=self._nodes(cluster, approved),
            memory=figures.memory,
            cores=figures.cores,
            cpus=figures.cores if runs and kind is VM else 0,
            running_memory=memory,
            room=room,
            bridges=frozenset(bridges.values()),
            label=actual.name,
        )
        node = choose_node(cluster, needs, bridges=self.bridges.by_node).node
        nics = [replace(nic, bridge=bridges[nic.bridge]) for nic in kind.mtus_in(actual.target)]
        require_mtus(kind, actual.label, nics, self.reads.mtus_on(node, nics))
        self._require_no_lower_mtu(actual, node, bridges)
        if archive is None:
            self._require_same_cpu(actual, node)
        else:
            archive = replace(archive, node=node)
        vmid = self._vmid(guest, cluster, approved)
        row = row_of(kind, actual.target, vmid=vmid, node=node, pool=None, status=actual.status)
        self.view.put(row)
        self.view.take(Capacity(node, memory, room))
        endpoint = "" if archive is not None else self._endpoint(node)
        needed = {"memory": memory, "storages": room}
        return Destination(
            vmid, node, storages, bridges, endpoint, desired.bwlimit, needed, archive
        )

    def _require_no_lower_mtu(self, actual: Actual, node: str, bridges: Mapping[str, str]) -> None:
        """Raise ConfigurationError for a NIC that gets the MTU of its bridge, if the bridge at the
        target has a lower one: the other guests of the network send larger frames. One request for
        each node, and two for VNets. MTUs that cannot be read are not compared.
        """
        nics = actual.kind.inherited_mtus_in(actual.target)
        there = [replace(nic, bridge=bridges[nic.bridge]) for nic in nics]
        before, after = (
            self.source_reads.mtus_on(actual.node, nics),
            self.reads.mtus_on(node, there),
        )
        for nic, other in zip(nics, there, strict=True):
            known, new = before.get(nic.bridge), after.get(other.bridge)
            if known is None or new is None or known <= new:
                continue
            raise ConfigurationError(
                f"{nic.nic} gets the MTU of its bridge: {known} of {nic.bridge}, and "
                f"{other.bridge} of node {node} has {new}",
                "Choose another bridge in networks, or set mtu for the NIC",
                "mtu",
            )

    def _nodes(
        self, cluster: ClusterState, approved: tuple[int, str] | None
    ) -> frozenset[str] | None:
        node = self.desired.node if approved is None else approved[1]
        if node:
            require_node(cluster, node)
            return frozenset((node,))
        return frozenset(self.client.connection.own_nodes) or None

    def _require_same_cpu(self, actual: Actual, node: str) -> None:
        """Raise ConfigurationError for a running VM with the CPU of its node, if the CPU of the new
        node differs. Two requests.
        """
        if not actual.running or _cpu_of(actual) != "host":
            return
        models: list[str] = []
        for client, name in ((self.source, actual.node), (self.client, node)):
            status = client.get("nodes", name, "status")
            models.append(str((status.get("cpuinfo") or {}).get("model")))
        if models[0] != models[1]:
            raise ConfigurationError(
                f"{actual.label} cannot move while it runs: its CPU is host: {models[0]}, and "
                f"node {node} has {models[1]}",
                "Shut it down, or give it another CPU model",
                "another CPU",
            )

    def _vmid(
        self, guest: MovingGuest, cluster: ClusterState, approved: tuple[int, str] | None
    ) -> int:
        if guest.record is not None:
            return guest.record.target
        taken = {*cluster.taken, *(row.vmid for row in cluster.guests)}
        wanted = guest.actual.vmid if approved is None else approved[0]
        if approved is not None or self.desired.vmid_range is None:
            if wanted not in taken:
                return wanted
            raise ConfigurationError(
                f"It gets no VMID: {wanted} is taken at site {self.desired.site}",
                "Set vmid_range",
                "taken vmid",
            )
        allocator = VmidAllocator(self.desired.vmid_range, None, guest.actual.name, by_name=False)
        return allocator.free(taken)

    def _endpoint(self, node: str) -> str:
        """Return the endpoint of a node with the token and the fingerprint of its certificate."""
        connection = self.client.connection
        place = self.desired.endpoints.get(node)
        if place is None and node == self.local:
            place = self.endpoint
        if place is None:
            place = Endpoint(self.addresses[node], self.endpoint.port)
        token = f"PVEAPIToken={connection.token_id}={connection.token_secret}"
        parts = [f"apitoken={token}", f"host={place.host}", f"port={place.port}"]
        fingerprint = self._fingerprint(node)
        return ",".join([*parts, f"fingerprint={fingerprint}"] if fingerprint else parts)

    def _fingerprint(self, node: str) -> str:
        """Return the fingerprint of the certificate that a node shows; one request a node."""
        if node not in self._fingerprints:
            rows = self.client.get("nodes", node, "certificates", "info") or ()
            known = {str(row["filename"]): str(row.get("fingerprint") or "") for row in rows}
            found = [known[name] for name in _CERTIFICATES if known.get(name)]
            self._fingerprints[node] = found[0] if found else ""
        return self._fingerprints[node]


def _cpu_of(actual: Actual) -> str:
    return str(actual.live.get("cpu") or "").partition(",")[0].removeprefix("cputype=")


def _read_cpu_models(client: Client, node: str) -> dict[str, Mapping[str, Any]]:
    """Return the custom CPU models that the login may see, without values before their API."""
    if client.version() >= CPU_MODELS_SINCE:
        rows = client.get("cluster", "qemu", "custom-cpu-models") or ()
        return {str(row["cputype"]): row for row in rows}
    rows = client.get("nodes", node, "capabilities", "qemu", "cpu") or ()
    return {str(row["name"]): {} for row in rows}


def _is_by_archive(guest: MovingGuest) -> bool:
    """Return whether a guest is on its way by an archive (pure)."""
    record = guest.record
    return record is not None and (record.mode, record.state) == (ARCHIVE, "")


def tenant_in(actual: Actual, prefix: str) -> str | None:
    """Return the tenant of a guest (pure)."""
    return tenant_of(parse_tags(actual.target.get("tags")), prefix)[0]


def tenant_name(actual: Actual, prefix: str) -> str:
    """Return a guest as C(TENANT/NAME), without a tenant as its name (pure)."""
    tenant = tenant_in(actual, prefix)
    return f"{tenant}/{actual.name}" if tenant else actual.name


def guest_key(actual: Actual, prefix: str) -> tuple[str, str, str]:
    """Return the kind, the tag of the tenant and the name of a guest, as a plan names it (pure)."""
    tenant = tenant_in(actual, prefix)
    return actual.kind.type, tenant_tag(tenant, prefix) if tenant else "", actual.name


def require_token(connection: ConnectionSettings, site: str) -> None:
    """Raise ConfigurationError if the login of the target is not a token (pure)."""
    if connection.token_id:
        return
    raise ConfigurationError(
        f"No guest was moved: the login of site {site} is not an API token",
        "Give the site token_id and token_secret: the nodes of the source use them",
        "no token",
    )


def read_cluster(client: Client) -> ClusterState:
    """Return the state of a site with the names of its guests."""
    return with_names(client, fetch_cluster_state(client), missing=True)
