# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a VM goes (pure): a picture, what the VM needs and what is asked of the choice in, a node with reasons out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .._core.errors import ConfigurationError, FleetError, NodeUnhealthy
from .._core.quantities import GIB
from .picture import NodeRow, Picture, VmRow
from .rules import Match, Rules
from .tenant import PREFIX, tenants_of


@dataclass(frozen=True)
class Needs:
    """What a node must offer. `storages` maps a storage to the content it must take; `only` pins the choice."""

    storages: Mapping[str, str] = field(default_factory=dict)
    only: frozenset[str] | None = None  # nodes that come into question at all, such as those of a local template
    memory: int = 0  # bytes
    cores: int = 0
    cpus: int = 0  # how many a single VM must be allowed to have; 0 where it need not run
    bridges: frozenset[str] = frozenset()
    vmid: int | None = None  # the VM itself where it exists: it is no neighbour of its own
    tenant_tag: str | None = None  # affinity means VMs of this tenant only
    prefix: str = PREFIX
    label: str = ""  # what the strategy `random` draws for


@dataclass(frozen=True)
class Choice:
    """The node, why it was taken, and why each other node was not."""

    node: str
    refused: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return what the module reports."""
        return {"node": self.node, "reasons": list(self.reasons), "refused": dict(sorted(self.refused.items()))}


@dataclass
class Load:
    """What is on a node, running or not, templates and the VM itself aside; memory in bytes."""

    vms: int = 0
    cores: int = 0
    memory: int = 0
    together: list[VmRow] = field(default_factory=list)  # VMs that affinity means
    apart: list[VmRow] = field(default_factory=list)  # VMs that anti-affinity means


Bridges = Mapping[str, "frozenset[str] | None"]
"""Bridges by node as far as they are known; None for a node that does not answer."""


def require_node(picture: Picture, node: str) -> None:
    """Raise ConfigurationError for a node that the cluster does not have, NodeUnhealthy for one that is down."""
    row = picture.nodes.get(node)
    if row is None:
        raise ConfigurationError(
            attempted=f"Node '{node}' could not be used",
            answer=f"the cluster has {', '.join(sorted(picture.nodes)) or 'no node this token may see'}",
            next_step="Name one of its nodes",
            reason="unknown node",
        )
    if not row.online:
        raise NodeUnhealthy(
            attempted=f"Node '{node}' could not be used",
            answer="it is offline",
            next_step="Bring it back or choose another node",
            reason="node offline",
        )


def choose_node(picture: Picture, needs: Needs, rules: Rules | None = None, bridges: Bridges | None = None) -> Choice:
    """Return the node that the strategy prefers among those that meet every constraint.

    The default takes the one with the smallest share of its memory given to VMs; ties go to the node with fewer VMs,
    then by the order of O(placement.nodes), then by name. The same picture gives the same answer. `bridges` are checked
    as far as they are known. Raises NodeUnhealthy with each node's reason where none fits, and ConfigurationError for
    a node or storage that the cluster does not have and for a bridge that is missing wherever the VM could go.
    """
    rules = rules or Rules()
    _require_known(picture, needs, rules)
    loads = loads_of(picture, needs, rules)
    refused: dict[str, str] = {}
    fitting: list[str] = []
    no_bridge: set[str] = set()
    for name in sorted(picture.nodes):
        reason = why_not(picture, name, needs, rules, loads)
        if reason is None and picture.nodes[name].maintenance:
            reason = "in maintenance"  # a VM that is there stays, a new one goes elsewhere
        if reason is None:
            reason = why_no_bridge(name, needs, bridges or {})
            no_bridge |= {name} if reason else set()
        if reason is None:
            fitting.append(name)
        else:
            refused[name] = reason
    if not fitting:
        raise _none_fits(refused, needs if no_bridge else None)
    ranked = sorted(fitting, key=_ranking(picture, needs, rules, loads))
    best = ranked[0]
    for name in ranked[1:]:
        refused[name] = _why_behind(picture, name, best, needs, rules, loads)
    reasons = (f"{len(fitting)} of {len(picture.nodes)} nodes fit", _why_best(picture, best, needs, rules, loads))
    return Choice(best, refused, reasons)


def loads_of(picture: Picture, needs: Needs, rules: Rules | None = None) -> dict[str, Load]:
    """Return what is on each node. A VM too new for the listing's figures counts as one like the VM itself."""
    rules = rules or Rules()
    loads = {name: Load() for name in picture.nodes}
    for vm in picture.vms.values():
        load = loads.get(vm.node)
        if load is None or vm.template or vm.vmid == needs.vmid:
            continue
        load.vms += 1
        load.cores += vm.cores or needs.cores
        load.memory += vm.memory or needs.memory
        if needs.tenant_tag and tuple(tenants_of(vm.tags, needs.prefix)) != (needs.tenant_tag,):
            continue
        if _any(rules.affinity, vm):
            load.together.append(vm)
        if _any(rules.anti_affinity, vm):
            load.apart.append(vm)
    return loads


def _any(matches: Iterable[Match], vm: VmRow) -> bool:
    return any(match.fits(vm) for match in matches)


def why_not(
    picture: Picture, node: str, needs: Needs, rules: Rules | None = None, loads: Mapping[str, Load] | None = None
) -> str | None:
    """Return the first reason why a node is not fit, or None. Bridges are another matter, see `why_no_bridge`."""
    rules = rules or Rules()
    row = picture.nodes[node]
    if not row.online:
        return "offline"
    if node in rules.exclude:
        return "placement.exclude names it"
    if needs.only is not None and node not in needs.only:
        return f"the source is only on {', '.join(sorted(needs.only))}"
    for storage, content in needs.storages.items():
        found = picture.storage_on(storage, node)
        if found is None or not found.available:
            return f"storage {storage} is not there"
        if content not in found.content:
            return f"storage {storage} does not take {content}"
    if 0 < row.cores < needs.cpus:
        return f"a VM there can have {row.cores} CPUs, {needs.cpus} are wanted"
    loads = loads if loads is not None else loads_of(picture, needs, rules)
    return _why_full(row, loads[node], needs, rules) or _why_apart(node, loads, rules)


def _why_full(row: NodeRow, load: Load, needs: Needs, rules: Rules) -> str | None:
    """Return which figure does not allow the VM on the node, with the figures."""
    if rules.max_vms is not None and load.vms + 1 > rules.max_vms:
        return f"it has {_vms(load.vms)}, at most {rules.max_vms} are allowed"
    if rules.cpu_overcommit is not None:
        cores, limit = load.cores + needs.cores, rules.cpu_overcommit * row.cores
        if cores > limit:
            return (
                f"{cores} cores would be given away of {row.cores} x {rules.cpu_overcommit:g} = {limit:g}"
                if row.cores
                else "its cores are not visible; the token needs Sys.Audit on it"
            )
    asks_memory = rules.memory_overcommit is not None or rules.min_free_memory is not None
    if asks_memory and not row.memory:
        return "its memory is not visible; the token needs Sys.Audit on it"
    if rules.memory_overcommit is not None:
        memory, most = load.memory + needs.memory, rules.memory_overcommit * row.memory
        if memory > most:
            return (
                f"{_gib(memory)} of memory would be given away of {_gib(row.memory)} x "
                f"{rules.memory_overcommit:g} = {_gib(most)}"
            )
    if rules.min_free_memory is not None:
        free = row.memory - row.memory_used - needs.memory
        if free < rules.min_free_memory:
            return f"{_gib(max(free, 0))} of memory would be free, at least {_gib(rules.min_free_memory)} must be"
    return None


def _vms(number: int) -> str:
    return "1 VM" if number == 1 else f"{number} VMs"


def _gib(size: float) -> str:
    return f"{size / GIB:.4g} GiB"


def _why_apart(node: str, loads: Mapping[str, Load], rules: Rules) -> str | None:
    """Return why required affinity or anti-affinity does not allow the node. The first of a group goes anywhere."""
    if not rules.required:
        return None
    apart = loads[node].apart
    if apart:
        return f"anti-affinity with {_names(apart)}, which is there"
    elsewhere = [vm for other in loads.values() for vm in other.together]
    if elsewhere and not loads[node].together:
        return f"affinity with {_names(elsewhere)}, which is not there"
    return None


def _names(rows: Iterable[VmRow]) -> str:
    named = [f"{row.name or 'VM'} ({row.vmid})" for row in sorted(rows, key=lambda row: row.vmid)]
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")


def why_no_bridge(node: str, needs: Needs, bridges: Bridges) -> str | None:
    """Return which bridge the node lacks, or None; also where its bridges are not known yet."""
    if not needs.bridges or node not in bridges:
        return None
    there = bridges[node]
    if there is None:
        return "it does not answer"
    missing = sorted(needs.bridges - there)
    return f"bridge {missing[0]} is not there, it has {', '.join(sorted(there)) or 'none'}" if missing else None


def _ranking(
    picture: Picture, needs: Needs, rules: Rules, loads: Mapping[str, Load]
) -> Callable[[str], tuple[float, ...]]:
    """Return the key to sort nodes by: the best one first."""
    names = sorted(picture.nodes)
    order = {name: place for place, name in enumerate((*rules.nodes, *(n for n in names if n not in rules.nodes)))}
    drawn = {name: random.Random(f"{rules.seed}/{needs.label}/{name}").random() for name in names}
    turn = _turns(picture, names)

    def key(name: str) -> tuple[float, ...]:
        load = loads[name]
        liked = (0 if not rules.nodes or name in rules.nodes else 1, len(load.apart), -len(load.together))
        strategy: dict[str, tuple[float, ...]] = {
            "least_used": (_share(picture.nodes[name], load, needs), load.vms),
            "round_robin": (load.vms, turn[name]),
            "first": (),
            "random": (drawn[name],),
        }
        return (*liked, *strategy[rules.strategy], order[name])

    return key


def _turns(picture: Picture, names: list[str]) -> dict[str, int]:
    """Return how many nodes are before each one's turn: the one after that of the newest VM is next."""
    newest = max((vm for vm in picture.vms.values() if not vm.template), key=lambda vm: vm.vmid, default=None)
    last = names.index(newest.node) if newest is not None and newest.node in picture.nodes else -1
    return {name: (place - last - 1) % len(names) for place, name in enumerate(names)}


def _share(row: NodeRow, load: Load, needs: Needs) -> float:
    return (load.memory + needs.memory) / max(row.memory, 1)


def _said(picture: Picture, node: str, needs: Needs, rules: Rules, loads: Mapping[str, Load]) -> str:
    """Return what the strategy looks at, of one node."""
    load = loads[node]
    if rules.strategy == "round_robin":
        return f"it would have {_vms(load.vms + 1)}"
    share = _share(picture.nodes[node], load, needs)
    return f"{share:.0%} of its memory would be given to {_vms(load.vms + 1)}"


def _why_best(picture: Picture, best: str, needs: Needs, rules: Rules, loads: Mapping[str, Load]) -> str:
    said = {"first": "it comes first", "random": f"it was drawn with the seed {rules.seed!r} for {needs.label!r}"}
    text = said.get(rules.strategy) or _said(picture, best, needs, rules, loads)
    return f"{rules.strategy}: {text}"


def _why_behind(picture: Picture, node: str, best: str, needs: Needs, rules: Rules, loads: Mapping[str, Load]) -> str:
    """Return why a node that fits was not taken."""
    if rules.nodes and node not in rules.nodes and best in rules.nodes:
        return "it fits, but is none of the preferred nodes"
    if len(loads[node].apart) > len(loads[best].apart):
        return f"it fits, but {_names(loads[node].apart)} is there (preferred anti-affinity)"
    if len(loads[node].together) < len(loads[best].together):
        return f"it fits, but {_names(loads[best].together)} is on {best} (affinity)"
    said = {"first": f"it fits, but {best} comes first", "random": f"it fits, but {best} was drawn"}
    return said.get(rules.strategy) or _said(picture, node, needs, rules, loads)


def _none_fits(refused: Mapping[str, str], without_bridge: Needs | None) -> FleetError:
    answer = "; ".join(f"{name}: {reason}" for name, reason in sorted(refused.items())) or "no node is visible"
    if without_bridge is not None:
        return ConfigurationError(
            attempted=f"No node has {', '.join(sorted(without_bridge.bridges))} and whatever else is needed",
            answer=answer,
            next_step="Name a bridge that is there; the token needs Sys.Audit on the node, or SDN.Use, to see one",
            reason="unknown bridge",
            details={"nodes": dict(refused)},
        )
    return NodeUnhealthy(
        attempted="No node could be chosen",
        answer=answer,
        next_step="Name a node, loosen placement, or change what the VM needs",
        reason="no node fits",
        details={"nodes": dict(refused)},
    )


def _require_known(picture: Picture, needs: Needs, rules: Rules) -> None:
    """Raise ConfigurationError for a storage or a node that nothing in the picture is called like."""
    known = {row.storage for row in picture.storages}
    for storage in sorted(set(needs.storages) - known):
        raise ConfigurationError(
            attempted=f"Storage '{storage}' could not be used",
            answer=f"the cluster has {', '.join(sorted(known)) or 'no storage this token may see'}",
            next_step="Name one of them; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    for node in sorted({*rules.nodes, *rules.exclude} - picture.nodes.keys()):
        raise ConfigurationError(
            attempted=f"Node '{node}' of placement could not be used",
            answer=f"the cluster has {', '.join(sorted(picture.nodes)) or 'no node this token may see'}",
            next_step="Name its nodes only",
            reason="unknown node",
        )


def require_storage(picture: Picture, storage: str, node: str, content: str) -> None:
    """Raise ConfigurationError unless a storage is usable on a node for that content."""
    found = picture.storage_on(storage, node)
    attempted = f"Storage '{storage}' could not be used on node {node}"
    if found is None:
        there = sorted({row.storage for row in picture.storages if row.node == node})
        raise ConfigurationError(
            attempted=attempted,
            answer=f"the node has {', '.join(there) or 'no storage this token may see'}",
            next_step="Name one of them; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    if not found.available:
        raise ConfigurationError(
            attempted=attempted,
            answer="it is not available there",
            next_step="Check it in Datacenter > Storage",
            reason="storage unavailable",
        )
    if content not in found.content:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"it takes {', '.join(sorted(found.content))}, not {content}",
            next_step=f"Choose a storage with content {content}",
            reason="storage content",
        )
