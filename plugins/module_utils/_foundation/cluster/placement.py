# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the node of a VM (pure), with the reason why each other node was not chosen."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from ..core.arguments.options import did_you_mean
from ..core.errors import ConfigurationError, Conflict, FleetError, NodeUnhealthy, QuotaExceeded
from ..core.formatting import by_reason, counted, first_of
from ..core.quantities import readable_sizes
from .cards import Card
from .rules import PlacementRules, VmSelector
from .state import ClusterState, NodeRow, VmRow
from .storages.allocation import ALWAYS, THICK
from .tenant import PREFIX, owns

# Nodes whose shares of memory are within one step of 5 % count as equally used.
_SHARE_STEP = 0.05
# VMs that a reason names.
_MAX_NAMES = 3
_NO_RULES = PlacementRules()
ADVICE_NETWORK = (
    "Correct the name, or create the network with playbook pve.fleet.tenant; to use a bridge, set"
    " bridge instead of network"
)


@dataclass(frozen=True)
class PlacementNeeds:
    """The requirements of a VM on its node. `storages` maps storages to required content types."""

    storages: Mapping[str, str] = field(default_factory=dict)
    # the only eligible nodes, such as the node of a local template
    only: frozenset[str] | None = None
    memory: int = 0  # bytes
    cores: int = 0
    cpus: int = 0  # CPUs that the node must have; 0 if the VM need not run
    running_memory: int = 0  # bytes of memory to start the VM; 0 if it need not run
    room: Mapping[str, int] = field(default_factory=dict)  # bytes that are allocated, by storage
    bridges: frozenset[str] = frozenset()
    networks: Mapping[str, str] = field(default_factory=dict)  # the tenant's networks by VNet
    # mapped devices, such as pci/gpu, and the nodes that have each; None if they are not known
    devices: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    cards: tuple[Card, ...] = ()  # PCI devices that it will hold there
    # by node, why these devices are not free; empty if they are
    busy: Mapping[str, str] = field(default_factory=dict)
    arch: str = ""  # the architecture of its configuration
    emulated: bool = True  # whether PVE emulates an architecture that no node has
    like: str = ""  # the node whose architecture it has, if its configuration names none
    vmid: int | None = None  # the VM itself if it exists: it does not count on its node
    tenant_tag: str | None = None  # affinity considers VMs of this tenant only
    prefix: str = PREFIX
    label: str = ""  # the seed of the strategy `random`


@dataclass(frozen=True)
class NodeChoice:
    """The chosen node, the reasons, why each other node was not chosen, and warnings."""

    node: str
    refused: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the choice in the form of the module's result."""
        refused = dict(sorted(self.refused.items()))
        return {"node": self.node, "reasons": list(self.reasons), "refused": refused}


@dataclass
class NodeLoad:
    """The guests of a node, running or not, except templates and the VM itself; memory in bytes."""

    vms: int = 0
    cores: int = 0
    memory: int = 0
    together: list[VmRow] = field(default_factory=list)  # VMs of the affinity
    apart: list[VmRow] = field(default_factory=list)  # VMs of the anti-affinity


Bridges = Mapping[str, "frozenset[str] | None"]
"""Known bridges by node; None for a node that does not answer."""


def require_node(cluster: ClusterState, node: str) -> None:
    """Raise ConfigurationError for an unknown node, NodeUnhealthy for an offline node."""
    attempted = f"Node '{node}' could not be used"
    row = cluster.nodes.get(node)
    if row is None:
        raise ConfigurationError(
            f"{attempted}: the cluster has "
            f"{_node_names(cluster)}{did_you_mean(node, cluster.nodes)}",
            "Name one of its nodes",
            "unknown node",
        )
    if not row.online:
        raise NodeUnhealthy(
            f"{attempted}: it is offline", "Bring it back or choose another node", "node offline"
        )


def _node_names(cluster: ClusterState) -> str:
    return ", ".join(sorted(cluster.nodes)) or "no node this token may see"


def choose_node(
    cluster: ClusterState,
    needs: PlacementNeeds,
    rules: PlacementRules = _NO_RULES,
    bridges: Bridges | None = None,
) -> NodeChoice:
    """Return the node that the strategy prefers among the nodes that meet every constraint.

    The default takes the node with the smallest share of its memory allocated to VMs, in steps of 5
    %, then the node with fewer VMs. The order of O(placement.nodes) decides ties, or else numbers
    drawn from the VM's name: the same cluster state gives the same answer for the same VM. A node
    whose bridges are unknown passes that check. If no node fits, raises QuotaExceeded if at least
    one node only lacks room, ConfigurationError if at least one only lacks a bridge, otherwise
    NodeUnhealthy, with the reason of each node. Raises ConfigurationError for a node or storage
    that the cluster does not have.
    """
    _require_known(cluster, needs, rules)
    loads = loads_of(cluster, needs, rules)
    refused: dict[str, str] = {}
    fitting: list[str] = []
    without_room: list[str] = []
    without_bridge: list[str] = []
    for name in sorted(cluster.nodes):
        node = cluster.nodes[name]
        reason = why_not(cluster, name, needs, rules, loads)
        if reason is not None:
            refused[name] = reason
            continue
        if node.maintenance:
            # An existing VM stays there, a new VM is placed elsewhere.
            refused[name] = "in maintenance"
            continue
        reason = why_no_room(cluster, name, needs, rules)
        reason = reason or _why_no_memory(node, needs, rules)
        if reason is not None:
            refused[name] = reason
            without_room.append(name)
            continue
        reason = why_no_bridge(name, needs, bridges or {})
        if reason is not None:
            refused[name] = reason
            without_bridge.append(name)
            continue
        fitting.append(name)
    if not fitting:
        if without_room:
            raise _none_has_room(refused)
        if without_bridge:
            raise _none_has_bridges(refused, needs)
        raise _none_fits(refused, _storages_instead(cluster, needs, refused))
    comparison = Comparison(cluster, needs, rules, loads)
    best, *others = sorted(fitting, key=comparison.rank)
    for name in others:
        refused[name] = comparison.why_behind(name, best)
    number = f"{len(fitting)} of {counted(len(cluster.nodes), 'node')} fit"
    return NodeChoice(best, refused, (number, comparison.why_best(best)))


def loads_of(
    cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules = _NO_RULES
) -> dict[str, NodeLoad]:
    """Return the load of each node.

    A guest without figures in the listing yet counts with the figures in `needs`.
    """
    loads = {name: NodeLoad() for name in cluster.nodes}
    for vm in cluster.guests:
        load = loads.get(vm.node)
        if load is None or vm.template:
            continue
        if vm.vmid == needs.vmid:
            continue
        load.vms += 1
        load.cores += vm.cores or needs.cores
        load.memory += vm.memory or needs.memory
        if not owns(needs.tenant_tag, vm.tags, needs.prefix):
            continue
        if _matches_any(rules.affinity, vm):
            load.together.append(vm)
        if _matches_any(rules.anti_affinity, vm):
            load.apart.append(vm)
    return loads


def _matches_any(matches: Iterable[VmSelector], vm: VmRow) -> bool:
    return any(match.fits(vm) for match in matches)


def why_not(
    cluster: ClusterState,
    node: str,
    needs: PlacementNeeds,
    rules: PlacementRules = _NO_RULES,
    loads: Mapping[str, NodeLoad] | None = None,
) -> str | None:
    """Return the first reason why a node does not fit, or None.

    Bridges and room are checked elsewhere, see `why_no_bridge` and `why_no_room`.
    """
    if loads is None:
        loads = loads_of(cluster, needs, rules)
    row = cluster.nodes[node]
    if not row.online:
        return "offline"
    if rules.own and node not in rules.own:
        return f"site {rules.site} does not use it"
    if node in rules.exclude:
        return "placement.exclude names it"
    if needs.only is not None and node not in needs.only:
        return f"the source is only on {', '.join(sorted(needs.only))}"
    reason = _why_no_storage(cluster, node, needs)
    if reason is not None:
        return reason
    reason = why_unfit_hardware(cluster, node, needs)
    if reason is not None:
        return reason
    if 0 < row.cores < needs.cpus:
        return f"a VM there can have {row.cores} CPUs, {needs.cpus} are wanted"
    load = loads[node]
    reasons = (
        _why_too_many(row, load, rules),
        _why_no_cores(row, load, needs, rules),
        _why_no_memory_left(row, load, needs, rules),
        _why_apart(node, loads, rules),
    )
    return next(filter(None, reasons), None)


def _why_no_storage(cluster: ClusterState, node: str, needs: PlacementNeeds) -> str | None:
    """Return which storage a node lacks, or which takes other content, or None."""
    for storage, content in needs.storages.items():
        found = cluster.storage_on(storage, node)
        if found is None or not found.available:
            return f"storage {storage} is not there"
        if content not in found.content:
            return _wrong_content(storage, content)
    return None


def why_unfit_hardware(cluster: ClusterState, node: str, needs: PlacementNeeds) -> str | None:
    """Return the architecture or the mapped device that a node lacks, or the PCI device that
    another running VM holds there, or None.

    PVE emulates an architecture that the configuration of a VM names, so it counts only if a node
    has it. The programs of a container run on the CPU of its node.
    """
    known = {row.arch for row in cluster.nodes.values()}
    present = cluster.nodes[node].arch
    wanted = "" if needs.emulated and needs.arch not in known else needs.arch
    if not needs.arch and needs.like in cluster.nodes:
        wanted = cluster.nodes[needs.like].arch
    if wanted and present not in ("", wanted):
        return f"its architecture is {present}, and the guest needs {wanted}"
    for device, nodes in sorted(needs.devices.items()):
        if nodes is not None and node not in nodes:
            return f"mapped device {device} is not there"
    return needs.busy.get(node) or None


def require_hardware(cluster: ClusterState, node: str, needs: PlacementNeeds) -> None:
    """Raise ConfigurationError if a node that the task names lacks the hardware of the guest,
    Conflict if another running VM holds it.
    """
    reason = why_unfit_hardware(cluster, node, needs) if node in cluster.nodes else None
    if reason is None:
        return
    if needs.busy.get(node):
        raise Conflict(
            f"{needs.label or 'The VM'} could not be started on node {node}: {reason}",
            "Stop the VM that uses it in an earlier task, or choose another node or device",
            "device in use",
        )
    raise ConfigurationError(
        f"{needs.label or 'The guest'} could not be placed on node {node}: {reason}",
        "Choose another node, or map the device on this node: pve.fleet.mapping",
        "hardware of the node",
    )


def _wrong_content(storage: str, content: str) -> str:
    return f"storage {storage} does not take {content}"


def _why_too_many(row: NodeRow, load: NodeLoad, rules: PlacementRules) -> str | None:
    maximum = rules.max_on(row.node)
    if maximum is None or load.vms < maximum:
        return None
    return f"it has {counted(load.vms, 'VM')}, at most {maximum} are allowed"


def _why_no_cores(
    row: NodeRow, load: NodeLoad, needs: PlacementNeeds, rules: PlacementRules
) -> str | None:
    factor = rules.cpu_overcommit
    if factor is None:
        return None
    cores = load.cores + needs.cores
    limit = factor * row.cores
    if cores <= limit:
        return None
    if not row.cores:
        return "its cores are not visible; the token needs Sys.Audit on it"
    allowed = f"{row.cores} cores x {factor:g} (cpu_overcommit) = {limit:g}"
    return f"its VMs would have {cores} cores, at most {allowed} are allowed"


def _why_no_memory_left(
    row: NodeRow, load: NodeLoad, needs: PlacementNeeds, rules: PlacementRules
) -> str | None:
    factor = rules.memory_overcommit
    minimum = rules.min_free_memory
    if factor is None and minimum is None:
        return None
    if not row.memory:
        return "its memory is not visible; the token needs Sys.Audit on it"
    if factor is not None:
        memory = load.memory + needs.memory
        limit = factor * row.memory
        if memory > limit:
            given, total, allowed = readable_sizes(memory, row.memory, limit)
            rule = f"{total} x {factor:g} (memory_overcommit) = {allowed}"
            return f"its VMs would have {given} of memory, at most {rule} are allowed"
    if minimum is not None:
        free = row.memory - row.memory_used - needs.memory
        if free < minimum:
            free_text, required = readable_sizes(max(free, 0), minimum)
            return f"{free_text} of memory would be free, at least {required} must be"
    return None


def why_no_room(
    cluster: ClusterState, node: str, needs: PlacementNeeds, rules: PlacementRules
) -> str | None:
    """Return why a node can never start the VM or a storage has no room for its disks, or None.

    Figures that the caller may not see are not checked.
    """
    row = cluster.nodes[node]
    if 0 < row.memory < needs.running_memory:
        total, needed = readable_sizes(row.memory, needs.running_memory)
        return f"it has {total} of memory, {needed} are needed"
    for storage, size in sorted(needs.room.items()):
        found = cluster.storage_on(storage, node)
        if found is None or not found.total or size <= 0:
            continue
        factor = rules.storage_overcommit
        if found.thick or ALWAYS.get(found.kind) == THICK:
            factor = 1.0
        free = max(0, found.total - found.used)
        if size + found.planned <= free * factor:
            continue
        return f"storage {storage} {_why_too_full(free, factor, size, found.planned)}"
    return None


def _why_too_full(free: int, factor: float, size: int, planned: int) -> str:
    """Return the figures of a storage that has no room; sizes in bytes."""
    free_text, allowed, needed, others = readable_sizes(free, free * factor, size, planned)
    reason = f"has {free_text} free, {needed} are needed"
    if factor != 1:
        rule = f"x {factor:g} (storage_overcommit) = {allowed}"
        reason = f"has {free_text} free {rule} for new disks, {needed} are needed"
    if planned:
        reason += f" and {others} for other VMs of this run"
    return reason


def _why_no_memory(row: NodeRow, needs: PlacementNeeds, rules: PlacementRules) -> str | None:
    """Return why the node does not have enough free memory now, or None.

    Free memory is not checked if the rules limit how much of the memory may be allocated.
    """
    if not row.memory or rules.memory_overcommit is not None:
        return None
    free = row.memory - row.memory_used
    if needs.running_memory <= free:
        return None
    free_text, needed = readable_sizes(max(free, 0), needs.running_memory)
    return f"{free_text} of its memory are free, {needed} are needed"


def require_room(
    cluster: ClusterState, node: str, needs: PlacementNeeds, rules: PlacementRules, label: str
) -> None:
    """Raise QuotaExceeded if the node or its storages have no room for the VM."""
    if node not in cluster.nodes:
        return
    reason = why_no_room(cluster, node, needs, rules)
    if reason is not None:
        raise QuotaExceeded(
            f"{label} could not be planned on node {node}: {reason}",
            "Ask for less, or choose another node or storage",
            "no room",
            details={"node": node},
        )


def _why_apart(node: str, loads: Mapping[str, NodeLoad], rules: PlacementRules) -> str | None:
    """Return why required affinity or anti-affinity excludes a node, or None.

    The first VM of a group can be placed on any node.
    """
    if not rules.required:
        return None
    load = loads[node]
    if load.apart:
        return f"anti-affinity with {_names(load.apart)}, which is there"
    if load.together:
        return None
    elsewhere: list[VmRow] = []
    for other in loads.values():
        elsewhere += other.together
    if not elsewhere:
        return None
    return f"affinity with {_names(elsewhere)}, which is not there"


def _names(rows: Iterable[VmRow]) -> str:
    ordered = sorted(rows, key=attrgetter("vmid"))
    named = [f"{row.name or 'VM'} ({row.vmid})" for row in ordered]
    return first_of(named, _MAX_NAMES)


def why_no_bridge(node: str, needs: PlacementNeeds, bridges: Bridges) -> str | None:
    """Return which bridge the node lacks, or None; also None if its bridges are not known."""
    if not needs.bridges or node not in bridges:
        return None
    existing = bridges[node]
    if existing is None:
        return "it does not answer"
    missing = sorted(needs.bridges - existing)
    if not missing:
        return None
    listed = ", ".join(sorted(existing)) or "none"
    if missing[0] in needs.networks:
        return f"network '{needs.networks[missing[0]]}' of the tenant is not there"
    return f"bridge {missing[0]} is not there, it has {listed}"


class Comparison:
    """Compares the nodes that fit, and gives the reasons."""

    def __init__(
        self,
        cluster: ClusterState,
        needs: PlacementNeeds,
        rules: PlacementRules,
        loads: Mapping[str, NodeLoad],
    ) -> None:
        self._cluster = cluster
        self._needs = needs
        self._rules = rules
        self._loads = loads
        others = [name for name in sorted(cluster.nodes) if name not in rules.nodes]
        ordered = [*rules.nodes, *others]
        self._order = {name: float(place) for place, name in enumerate(ordered)}

    def rank(self, name: str) -> tuple[float, ...]:
        """Return the sort key of a node: the best node has the lowest."""
        load = self._loads[name]
        is_other = bool(self._rules.nodes) and name not in self._rules.nodes
        preferred = (float(is_other), len(load.apart), -len(load.together))
        return (*preferred, *self._rank_by_strategy(name), self._order[name])

    def _rank_by_strategy(self, name: str) -> tuple[float, ...]:
        load = self._loads[name]
        label = self._needs.label
        strategy = self._rules.strategy
        if strategy == "first":
            return ()
        if strategy == "random":
            return (_drawn(f"{self._rules.seed}/{label}/{name}"),)
        # Ties are decided by VM: otherwise all runs that start at the same time choose one node.
        tie = self._order[name]
        if not self._rules.nodes:
            tie = _drawn(f"{label}/{name}")
        if strategy == "round_robin":
            return (load.vms, tie)
        step = int(self._share(name) / _SHARE_STEP)
        return (step, load.vms, tie)

    def _share(self, name: str) -> float:
        """Return the share of a node's memory that would be allocated."""
        available = max(self._cluster.nodes[name].memory, 1)
        return (self._loads[name].memory + self._needs.memory) / available

    def _figures(self, name: str) -> str:
        """Return the figures of a node that the strategy compares."""
        guests = counted(self._loads[name].vms + 1, "guest")
        if self._rules.strategy == "round_robin":
            return f"it would have {guests}"
        return f"{self._share(name):.0%} of its memory would be given to {guests}"

    def why_best(self, best: str) -> str:
        """Return the strategy and why it prefers the node."""
        strategy = self._rules.strategy
        reason = self._figures(best)
        if strategy == "first":
            reason = "it comes first"
        if strategy == "random":
            reason = f"it was drawn with the seed {self._rules.seed!r} for {self._needs.label!r}"
        return f"{strategy}: {reason}"

    def why_behind(self, name: str, best: str) -> str:
        """Return why a node that fits was not chosen."""
        preferred = self._rules.nodes
        if name not in preferred and best in preferred:
            return "it fits, but is not preferred"
        load = self._loads[name]
        best_load = self._loads[best]
        if len(load.apart) > len(best_load.apart):
            return f"it fits, but {_names(load.apart)} is there (preferred anti-affinity)"
        if len(load.together) < len(best_load.together):
            return f"it fits, but {_names(best_load.together)} is on {best} (affinity)"
        if self._rules.strategy == "first":
            return f"it fits, but {best} comes first"
        if self._rules.strategy == "random":
            return f"it fits, but {best} was drawn"
        return self._figures(name)


def _drawn(seed: str) -> float:
    """Return the same number from 0 to 1 for the same seed."""
    return random.Random(seed).random()


def _listed(refused: Mapping[str, str]) -> str:
    return by_reason(refused) or "no node is visible"


def _none_has_bridges(refused: Mapping[str, str], needs: PlacementNeeds) -> FleetError:
    named = sorted(needs.networks.get(bridge, bridge) for bridge in needs.bridges)
    listed = _listed(refused)
    next_step = (
        "Name a bridge that is there; the token needs Sys.Audit on the node, or SDN.Use, to see one"
    )
    is_network = any(f"network '{name}' of" in listed for name in needs.networks.values())
    return ConfigurationError(
        f"No node has {', '.join(named)} and whatever else is needed: {listed}",
        ADVICE_NETWORK if is_network else next_step,
        "unknown network" if is_network else "unknown bridge",
        details={"nodes": dict(refused)},
    )


def _storages_instead(
    cluster: ClusterState, needs: PlacementNeeds, refused: Mapping[str, str]
) -> str:
    """Return the advice to name another storage if each node is refused for wrong content alone."""
    for storage, content in needs.storages.items():
        if set(refused.values()) != {_wrong_content(storage, content)}:
            continue
        fitting = sorted({row.storage for row in cluster.storages if content in row.content})
        if fitting:
            return f"Name a storage that takes {content}: {', '.join(fitting)}"
        return f"Allow {content} on a storage; the token needs Datastore.Audit to see one"
    return ""


def _none_fits(refused: Mapping[str, str], advice: str) -> FleetError:
    return NodeUnhealthy(
        f"No node could be chosen: {_listed(refused)}",
        advice or "Name a node, loosen placement, or change what the guest needs",
        "no node fits",
        details={"nodes": dict(refused)},
    )


def _none_has_room(refused: Mapping[str, str]) -> FleetError:
    return QuotaExceeded(
        f"No node could be chosen: {_listed(refused)}",
        "Ask for less, make room, name another storage, or loosen placement",
        "no room",
        details={"nodes": dict(refused)},
    )


def _require_known(cluster: ClusterState, needs: PlacementNeeds, rules: PlacementRules) -> None:
    known = {row.storage for row in cluster.storages}
    for storage in sorted(set(needs.storages) - known):
        attempted = f"Storage '{storage}' could not be used"
        raise unknown_storage(attempted, storage, "the cluster", known)
    named = {*rules.nodes, *rules.exclude, *rules.max_vms_by_node}
    for node in sorted(named - cluster.nodes.keys()):
        raise ConfigurationError(
            f"Node '{node}' of placement could not be used: the cluster has "
            f"{_node_names(cluster)}{did_you_mean(node, cluster.nodes)}",
            "Name its nodes only",
            "unknown node",
        )


def unknown_storage(
    attempted: str, storage: str, place: str, known: Collection[str]
) -> ConfigurationError:
    """Return the error of a storage that a place does not have; `known` are its storages."""
    listed = ", ".join(sorted(known)) or "no storage this token may see"
    return ConfigurationError(
        f"{attempted}: {place} has {listed}{did_you_mean(storage, known)}",
        "Name one of them; the token needs Datastore.Audit to see a storage",
        "unknown storage",
    )


def require_storage(cluster: ClusterState, storage: str, node: str, content: str) -> None:
    """Raise ConfigurationError unless a storage is usable on a node for that content."""
    found = cluster.storage_on(storage, node)
    attempted = f"Storage '{storage}' could not be used on node {node}"
    if found is None:
        existing = {row.storage for row in cluster.storages if row.node == node}
        raise unknown_storage(attempted, storage, "the node", existing)
    if not found.available:
        raise ConfigurationError(
            f"{attempted}: it is not available there",
            "Check it in Datacenter > Storage",
            "storage unavailable",
        )
    if content not in found.content:
        raise ConfigurationError(
            f"{attempted}: it takes {', '.join(sorted(found.content))}, not {content}",
            f"Choose a storage with content {content}",
            "storage content",
        )
