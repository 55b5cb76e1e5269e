# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of a cluster that name a guest: its HA resource and HA rules, replication jobs and
backup jobs (pure).

They are recorded before the move, removed at the source because Proxmox VE refuses it otherwise,
and created again on the side on which the guest stays.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.resource.decide import build_plan, compare
from ..._foundation.resource.plan import Step
from ..._foundation.resource.table import DesiredResource, Table
from ..._guests.kinds.kind import Kind
from ..._infrastructure.datacenter.ha.resource import HA_RESOURCE
from ..._infrastructure.datacenter.ha.rule import HA_RULE, PLACE
from ..._infrastructure.datacenter.ha.sids import KINDS as SID_KINDS
from ..._infrastructure.datacenter.ha.sids import vmid_of
from ..._infrastructure.datacenter.replication import REPLICATION
from ..backup.job.table import BACKUP_JOB

Row = Mapping[str, Any]
JOIN, LEAVE = "join ", "leave "
"""The first words of the actions of steps that create objects, and of steps that remove them."""

_GROUP = "group"  # of Proxmox VE 8; later versions have rules
_NODES = "failback"  # of a resource since Proxmox VE 9
_REPLICATED = "zfspool"


@dataclass(frozen=True)
class SiteObjects:
    """The objects of a site, as Proxmox VE lists them, by their IDs: HA resources, HA rules,
    replication jobs that their node does not remove, and backup jobs.
    """

    resources: Mapping[str, Row] = field(default_factory=dict)
    rules: Mapping[str, Row] = field(default_factory=dict)
    has_rules: bool = True
    replicas: Mapping[str, Row] = field(default_factory=dict)
    backups: Mapping[str, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class Belongings:
    """The objects that name a guest at its source. `rules` has the rules of its HA resource by
    name, without their resources; a group of Proxmox VE 8 counts as a rule. `replicas` has the
    replication jobs by their numbers, `backups` the IDs of the backup jobs that name its VMID.
    """

    ha: Row | None = None
    rules: Mapping[str, Row] = field(default_factory=dict)
    replicas: Mapping[str, Row] = field(default_factory=dict)
    backups: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ha or self.replicas or self.backups)

    def render(self) -> str:
        """Return the text for the record of a move, empty if there are none."""
        if not self:
            return ""
        text = json.dumps(vars(self), sort_keys=True, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def merged(self, earlier: Belongings) -> Belongings:
        """Return these with the objects that an earlier run has recorded and removed."""
        return Belongings(
            self.ha or earlier.ha,
            {**earlier.rules, **self.rules},
            {**earlier.replicas, **self.replicas},
            tuple(sorted({*earlier.backups, *self.backups})),
        )


def parse_belongings(text: str) -> Belongings:
    """Return the belongings in a record. Notes can have any text there: it counts as none."""
    try:
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        ha = None if values["ha"] is None else dict(values["ha"])
        rules, replicas = (
            {str(name): dict(row) for name, row in values[key].items()}
            for key in ("rules", "replicas")
        )
        return Belongings(ha, rules, replicas, tuple(map(str, values["backups"])))
    except (binascii.Error, ValueError, TypeError, KeyError, AttributeError):
        return Belongings()


def sid_of(kind: Kind, vmid: int) -> str:
    """Return the ID of a guest as an HA resource."""
    return f"{SID_KINDS[kind.type]}:{vmid}"


def belongings_of(sid: str, objects: SiteObjects) -> Belongings:
    """Return the belongings of a guest with this ID."""
    resource = objects.resources.get(sid)
    replicas: dict[str, Row] = {}
    for name, job in objects.replicas.items():
        vmid, _dash, number = name.partition("-")
        if vmid == str(vmid_of(sid)):
            replicas[number] = _recorded(REPLICATION, job)
    backups = [name for name, job in objects.backups.items() if _names(job, vmid_of(sid))]
    rest = (replicas, tuple(sorted(backups)))
    if resource is None:
        return Belongings(None, {}, *rest)
    rules: dict[str, Row] = {}
    if resource.get(_GROUP):
        rules[str(resource[_GROUP])] = {"type": _GROUP}
    for name, rule in objects.rules.items():
        if sid in HA_RULE.values(rule)["resources"]:
            rules[name] = _recorded(HA_RULE, rule)
    return Belongings({"state": "started", **_recorded(HA_RESOURCE, resource)}, rules, *rest)


def _names(job: Row, vmid: int) -> bool:
    return vmid in BACKUP_JOB.values(job)["vms"]


def _recorded(table: Table, row: Row) -> dict[str, Any]:
    return {one.property: row[one.property] for one in table.fields if one.property in row}


@dataclass(frozen=True)
class JoinOptions:
    """The HA rule and the node for replicas at a side by the one at the source, the nodes of the
    side, and its storages. An empty name leaves a rule or a job out.
    """

    rules: Mapping[str, str] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    replicas: Mapping[str, str] = field(default_factory=dict)
    storages: Mapping[str, Row] = field(default_factory=dict)

    def name_of(self, rule: str) -> str:
        """Return the name of a rule at the side, empty for none."""
        return self.rules.get(rule, rule)

    def replica_nodes(self, own: Belongings, node: str, storages: Iterable[str]) -> dict[str, str]:
        """Return the target of each replication job of a guest on this node, by its number, without
        jobs that end: volumes of type zfspool can be replicated, to another node.
        """
        rows = [self.storages.get(name, {}) for name in storages]
        local = [row for row in rows if not row.get("shared")]
        if not local or any(row.get("type") != _REPLICATED for row in local):
            return {}
        found: dict[str, str] = {}
        for number, job in sorted(own.replicas.items()):
            name = str(job.get("target"))
            target = self.replicas.get(name, name)
            if target in self.nodes - {node, *found.values()}:
                found[number] = target
        return found

    def find_problems(self, own: Belongings, there: SiteObjects, site: str) -> list[str]:
        """Return a sentence about each rule of a guest that its site cannot have."""
        problems: list[str] = []
        for rule, values in sorted(own.rules.items()):
            name = self.name_of(rule)
            if not name or name in there.rules or not there.has_rules:
                continue
            missing = sorted(_nodes_of(values) - self.nodes)
            why = f"site {site} has no HA rule {name}"
            if values.get("type") != PLACE:
                problems.append(f"it is in HA rule {rule}, and {why} (ha_rules)")
            elif missing:
                nodes = ", ".join(missing)
                problems.append(f"it is in HA rule {rule}, {why}, and no node {nodes} (ha_rules)")
        return problems


def _nodes_of(rule: Row) -> set[str]:
    return {item.partition(":")[0] for item in HA_RULE.values(rule)["nodes"]}


def plan_leave(sid: str, objects: SiteObjects) -> list[Step]:
    """Return the steps that remove the objects of a guest which refuse its move."""
    steps: list[Step] = []
    if sid in objects.resources:
        absent = DesiredResource({"sid": sid}, present=False)
        steps += _steps(HA_RESOURCE, f"{LEAVE}{sid}", absent, {})
    for number in sorted(belongings_of(sid, objects).replicas):
        name = f"{vmid_of(sid)}-{number}"
        absent = DesiredResource({"id": name}, present=False)
        steps += _steps(REPLICATION, f"{LEAVE}{name}", absent, {})
    return steps


def plan_join_ha(
    sid: str, own: Belongings, objects: SiteObjects, options: JoinOptions
) -> list[Step]:
    """Return the steps that create the HA resource of a guest, and add it to its rules."""
    if own.ha is None:
        return []
    steps: list[Step] = []
    names = {options.name_of(rule): rule for rule in sorted(own.rules) if options.name_of(rule)}
    if sid not in objects.resources:
        state = HA_RESOURCE.values(own.ha)["request_state"]
        values = {**_values(HA_RESOURCE, own.ha), "request_state": state}
        values.pop(_NODES if not objects.has_rules else _GROUP, None)
        if not objects.has_rules and names:
            values[_GROUP] = next(iter(names))
        desired = DesiredResource({"sid": sid}, values=values)
        steps += _steps(HA_RESOURCE, f"{JOIN}{sid}", desired, None)
    for name, rule in names.items() if objects.has_rules else ():
        steps += _join_rule(sid, name, own.rules[rule], objects.rules.get(name))
    return steps


def plan_join_jobs(
    sid: str, own: Belongings, objects: SiteObjects, nodes: Mapping[str, str]
) -> list[Step]:
    """Return the steps that create the replication jobs of a guest, with a target by the number of
    each, and add its VMID to backup jobs of the same IDs that have a list of guests.
    """
    steps: list[Step] = []
    vmid = vmid_of(sid)
    present = belongings_of(sid, objects).replicas
    for number in sorted(nodes.keys() - present.keys()):
        values = {**_values(REPLICATION, own.replicas[number]), "target": nodes[number]}
        desired = DesiredResource({"id": f"{vmid}-{number}"}, values=values)
        steps += _steps(REPLICATION, f"{JOIN}{vmid}-{number}", desired, None)
    for name in own.backups:
        job = objects.backups.get(name)
        known = frozenset() if job is None else BACKUP_JOB.values(job)["vms"]
        if known and vmid not in known:
            desired = DesiredResource({"name": name}, values={"vms": known | {vmid}})
            steps += _steps(BACKUP_JOB, f"{JOIN}backup {name}", desired, job)
    return steps


def find_left_behind(
    own: Belongings, there: SiteObjects, options: JoinOptions, nodes: Mapping[str, str]
) -> list[str]:
    """Return the belongings that do not come along, in words."""
    found = [f"HA rule {rule}" for rule in sorted(own.rules) if not options.name_of(rule)]
    for number in sorted(own.replicas.keys() - nodes.keys()):
        found.append(f"replication to {own.replicas[number].get('target')}")
    for name in own.backups:
        job = there.backups.get(name)
        if job is None or not BACKUP_JOB.values(job)["vms"]:
            found.append(f"backup job {name}")
    return found


def _join_rule(sid: str, name: str, rule: Row, there: Row | None) -> list[Step]:
    """Return the step that adds a guest to a rule, or creates the rule with it."""
    if there is None and rule.get("type") != PLACE:
        return []  # an affinity of one guest does not exist
    values = _values(HA_RULE, rule if there is None else {"type": there.get("type")})
    desired = DesiredResource(
        {"name": name}, values=values, members={"resources": frozenset((sid,))}
    )
    steps = _steps(HA_RULE, f"{JOIN}{name}", desired, there)
    digest = {} if there is None else {"digest": there.get("digest")}
    return [replace(one, data={**one.data, **digest}) for one in steps]


def forms_of_join(step: Step, sid: str) -> list[Step]:
    """Return the requests of a step that creates an object, in their approved forms: other guests that
    join the rule first change its list, or have created it.
    """
    if step.path[1] == "backup":
        return [replace(step, data={**step.data, "vmid": str(vmid_of(sid))})]
    if "resources" not in step.data:
        return [step]
    own = replace(step, data={**step.data, "resources": sid})
    if step.method != "POST":
        return [own]
    data = {"type": step.data["type"], "resources": sid}
    path = (*step.path, str(step.data["rule"]))
    return [own, replace(own, method="PUT", path=path, data=data)]


def _values(table: Table, row: Row) -> dict[str, Any]:
    """Return the values that differ from the defaults."""
    defaults = table.values({})
    members = {group.option for group in table.members}
    found: dict[str, Any] = {}
    for option, value in table.values(row).items():
        if value != defaults[option] and option not in members:
            found[option] = value
    return found


def _steps(table: Table, action: str, desired: DesiredResource, there: Row | None) -> list[Step]:
    actual = None if there is None else table.values(there)
    plan = build_plan(table, desired, actual, compare(table, desired, actual))
    return [replace(one, action=action, reread=True) for one in plan.steps]
