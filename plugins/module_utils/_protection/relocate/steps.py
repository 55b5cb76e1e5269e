# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests of each step of a move, and the state of both sides after it (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._foundation.resource.plan import Step
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import (
    ARCHIVE,
    COMPLETE,
    OFFLINE,
    ONLINE,
    PROVEN,
    RESTART,
    RETURNED,
    VOID,
    MoveRecord,
    notes_with,
    site_word,
)
from ..._guests.kinds.words import CONTAINER
from .archive import ArchivePlace
from .belongings import (
    Belongings,
    JoinOptions,
    SiteObjects,
    belongings_of,
    parse_belongings,
    plan_join_ha,
    plan_join_jobs,
    plan_leave,
    sid_of,
)
from .decide import (
    CLEAR,
    DROP_SOURCE,
    DROP_TARGET,
    FINISH,
    HOLD,
    LOCK_SOURCE,
    MOVE,
    PROVE,
    RELEASE_SOURCE,
    RELEASE_TARGET,
    RESTORE,
    RESUME_TARGET,
    RETURN,
    REVOKE,
    SHUT_DOWN,
    SOURCE,
    START_SOURCE,
    START_TARGET,
    TARGET,
    UNLOCK_TARGET,
    SideState,
)

RECORD, POOL, STOP = "record", "pool", "stop"
STOP_SOURCE, BACK_UP, TAKE_BACK = "stop source", "back up", "take back"
TEMPLATE = "template"
_WORDS = {ONLINE: "online", OFFLINE: "offline", RESTART: "with a restart"}
# Options that the tunnel takes out of the configuration that it writes.
_NOT_SENT = frozenset(
    ("digest", "lock", CONTAINER.type, "meta", "parent", "unprivileged", "arch", "vmgenid")
)


@dataclass(frozen=True)
class Destination:
    """The place of a guest at the target, and the maps of its storages and bridges.

    `endpoint` has the token of the target, and is never shown. `room` has the bytes of C(memory),
    and of C(storages) by name. `archive` is set for a guest that moves by an archive.
    """

    vmid: int
    node: str
    storages: Mapping[str, str]
    bridges: Mapping[str, str]
    endpoint: str = field(default="", repr=False)
    bwlimit: int | None = None
    room: Mapping[str, Any] = field(default_factory=dict)
    archive: ArchivePlace | None = None


@dataclass(frozen=True)
class SiteStep(Step):
    """A step at one of the sites: SOURCE or TARGET."""

    at: str = SOURCE


def _at_site(step: Step, at: str) -> SiteStep:
    return SiteStep(**vars(step), at=at)


@dataclass(frozen=True)
class MoveSide:
    """One side of a move while its steps are planned: the state, the node, the VMID, the label, the
    configuration, the pool and the objects of the site. The digest is empty for a side that does
    not exist yet.
    """

    state: SideState
    node: str
    vmid: int
    label: str
    config: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None
    pool: str = ""
    objects: SiteObjects = field(default_factory=SiteObjects)

    def with_record(self, record: MoveRecord | None) -> MoveSide:
        """Return the side with another record."""
        config = {**self.config, "description": notes_with(self.config, record)}
        return replace(self, state=replace(self.state, record=record), config=config)

    def with_state(self, **changes: Any) -> MoveSide:
        """Return the side with another state."""
        return replace(self, state=replace(self.state, **changes))


@dataclass(frozen=True)
class MoveSides:
    """Both sides of a move, the ID and the clusters that a new record gets, the destination of a guest that is still
    to move, and the pool at the target. `archived` is the archive with the last state of the source,
    or empty. Times are in seconds.
    """

    kind: Kind
    source: MoveSide
    target: MoveSide
    origin: str
    site: str
    pool: str
    destination: Destination | None
    new_id: str
    clusters: str
    now: int
    timeout: int
    shutdown_timeout: int
    join: JoinOptions = field(default_factory=JoinOptions)
    own: Belongings = field(default_factory=Belongings)
    archived: str = ""

    @property
    def by_archive(self) -> ArchivePlace | None:
        """The storage of the archive, None unless the guest is still to move by one."""
        return None if self.destination is None else self.destination.archive

    @property
    def replica_nodes(self) -> Mapping[str, str]:
        """The node to which each replication job copies the guest at the target, by its number."""
        node, storages = self.target.node, self.kind.storages_in(self.target.config)
        if self.destination is not None:
            node, storages = self.destination.node, [*self.destination.storages.values()]
        return self.join.replica_nodes(self.belongings, node, storages)

    @property
    def belongings(self) -> Belongings:
        """The belongings at the source, also recorded and removed ones."""
        known = self.source.state.record or self.target.state.record
        present = belongings_of(sid_of(self.kind, self.source.vmid), self.source.objects)
        recorded = parse_belongings("" if known is None else known.belongings)
        return present.merged(recorded).merged(self.own)

    @property
    def record(self) -> MoveRecord:
        """The record of the migration that the next step starts, or that has moved the guest."""
        known = self.source.state.record or self.target.state.record
        if self.destination is None and known is not None:
            return known
        runs = self.source.state.executes
        mode = OFFLINE
        if runs:
            mode = RESTART if self.kind.has_rootfs else ONLINE
        if self.by_archive is not None:  # the run before has stopped it
            mode = ARCHIVE
            runs = runs or (known is not None and (known.mode, known.ran) == (ARCHIVE, True))
        return MoveRecord(
            id=self.new_id if known is None or known.state else known.id,
            source=self.source.vmid,
            site=site_word(self.site),
            target=self.target.vmid if self.destination is None else self.destination.vmid,
            mode=mode,
            ran=runs,
            began=self.now,
            origin=site_word(self.origin),
            belongings=self.belongings.render(),
            clusters=self.clusters,
        )


Planned = tuple[list[SiteStep], MoveSides]


def plan_step(step: str, sides: MoveSides) -> Planned:
    """Return the requests of a step of `decide`, and both sides after it."""
    return _STEPS[step](sides)


def _step(
    sides: MoveSides, at: str, action: str, summary: str, *path: str, **more: Any
) -> SiteStep:
    """Return a step on the guest at a site; each is planned from a reading after the last one."""
    side = sides.source if at == SOURCE else sides.target
    method = more.pop("method", "POST")
    whole = (*sides.kind.path(side.node, side.vmid), *path)
    step = Step(action, summary, method, whole, timeout=sides.timeout, reread=True, **more)
    return _at_site(step, at)


def _write_record(
    sides: MoveSides, at: str, action: str, record: MoveRecord | None, summary: str
) -> tuple[SiteStep, MoveSides]:
    """Return the step that writes a record into the notes of a side."""
    side = sides.source if at == SOURCE else sides.target
    changed = side.with_record(record)
    notes = changed.config["description"]
    data: dict[str, Any] = {"description": notes} if notes else {"delete": "description"}
    if side.digest:
        data["digest"] = side.digest
    step = _step(sides, at, action, summary, "config", method="PUT", data=data, is_task=False)
    return step, _with(sides, at, replace(changed, digest=None))


def _with(sides: MoveSides, at: str, side: MoveSide) -> MoveSides:
    return replace(sides, source=side) if at == SOURCE else replace(sides, target=side)


def _object_steps(sides: MoveSides, at: str, steps: list[Step]) -> list[SiteStep]:
    site = sides.origin if at == SOURCE else sides.site
    return [_at_site(replace(one, summary=f"{one.summary} at site {site}"), at) for one in steps]


def _release(at: str) -> Callable[[MoveSides], Planned]:
    """Return the planner of the step that takes a side out of HA."""

    def plan(sides: MoveSides) -> Planned:
        side = sides.source if at == SOURCE else sides.target
        steps = plan_leave(sid_of(sides.kind, side.vmid), side.objects)
        released = replace(side.with_state(managed=False), objects=SiteObjects())
        return _object_steps(sides, at, steps), _with(sides, at, released)

    return plan


def _join(sides: MoveSides, at: str) -> tuple[list[SiteStep], MoveSides]:
    """Return the steps that create the belongings of the guest at a side."""
    side = sides.source if at == SOURCE else sides.target
    options = sides.join if at == TARGET else JoinOptions()
    own, sid = sides.belongings, sid_of(sides.kind, side.vmid)
    nodes = sides.replica_nodes
    if at == SOURCE:  # its backup jobs still name it
        own = replace(own, backups=())
        nodes = {number: str(job["target"]) for number, job in own.replicas.items()}
    steps = plan_join_ha(sid, own, side.objects, options)
    steps += plan_join_jobs(sid, own, side.objects, nodes)
    joined = side.with_state(managed=side.state.managed or own.ha is not None)
    return _object_steps(sides, at, steps), _with(sides, at, joined)


def _move(sides: MoveSides) -> Planned:
    """The record is written first, unless the source has one of the same move. Proxmox VE refuses
    to move an HA resource.
    """
    steps: list[SiteStep] = []
    wanted, known = sides.record, sides.source.state.record
    place = sides.destination or Destination(0, "", {}, {})
    if known is None or not wanted.is_same_move(known):
        summary = f"Record the move of {sides.source.label} in its notes"
        step, sides = _write_record(sides, SOURCE, RECORD, wanted, summary)
        steps.append(step)
    record = sides.source.state.record or wanted
    more, sides = _release(SOURCE)(sides)
    steps += more
    if place.archive is not None:
        more, sides = _back_up(sides, place.archive, record)
        return [*steps, *more], sides
    data: dict[str, Any] = {
        "target-endpoint": place.endpoint,
        "target-vmid": place.vmid,
        "target-storage": _pairs(place.storages),
        "target-bridge": _pairs(place.bridges) or "1",
        "bwlimit": place.bwlimit,
    }
    data |= {ONLINE: {"online": 1}, RESTART: {"restart": 1}}.get(record.mode, {})
    data = {key: value for key, value in data.items() if value is not None}
    summary = (
        f"Move {sides.source.label} {_WORDS[record.mode]} to site {sides.site} as {place.vmid} on node"
        f" {place.node}"
    )
    steps.append(_step(sides, SOURCE, MOVE, summary, "remote_migrate", data=data))
    power = "running" if record.ran else "stopped"
    target = replace(
        sides.target,
        state=SideState(power, "", record),
        config=sides.source.config,
        node=place.node,
        vmid=place.vmid,
    )
    source = sides.source.with_state(power="stopped", lock="migrate")
    return steps, replace(sides, source=source, target=target)


def _back_up(sides: MoveSides, place: ArchivePlace, record: MoveRecord) -> Planned:
    """Return the steps that stop the source and back it up. The backup of a guest that was started
    again in between does not stop it, and is not used.
    """
    steps: list[SiteStep] = []
    if sides.source.state.executes:
        steps, sides = _power(SOURCE, STOP_SOURCE, "shutdown", "Shut down", "stopped")(sides)
    source = sides.source
    data: dict[str, Any] = {"vmid": source.vmid, "storage": place.here, "remove": 0}
    notes = f"{{{{guestname}}}}, move {record.id}, configuration {source.digest or ''}"
    data |= {"compress": "zstd", "notes-template": notes}
    summary = f"Back up {source.label} to storage {place.here}, to move it by its archive"
    path = ("nodes", source.node, "vzdump")
    step = Step(BACK_UP, summary, "POST", path, data, timeout=sides.timeout, reread=True)
    archived = f"{place.there}:backup/vzdump-{sides.kind.type}-{source.vmid}-0.vma"
    return [*steps, _at_site(step, SOURCE)], replace(sides, archived=archived)


def _restore(sides: MoveSides) -> Planned:
    """The notes have the record also if a disk is left out, which adds a line to them."""
    place, kind, source = sides.destination or Destination(0, "", {}, {}), sides.kind, sides.source
    archive = place.archive or ArchivePlace("", "")
    data: dict[str, Any] = {
        "vmid": place.vmid,
        "ostemplate" if kind.has_rootfs else "archive": sides.archived,
        "restore": 1 if kind.has_rootfs else None,
        "storage": archive.storage or None,
        "pool": sides.pool or None,
        "bwlimit": place.bwlimit,
        "description": source.config.get("description"),
    }
    for slot, bridge in kind.bridges_in(source.config).items():
        if place.bridges.get(bridge, bridge) != bridge:
            data[slot] = _on_bridge(source.config[slot], bridge, place.bridges)
    data = {key: value for key, value in data.items() if value is not None}
    summary = (
        f"Restore {source.label} at site {sides.site} as {place.vmid} on node {place.node}, from its"
        f" archive on {archive.there}"
    )
    path = ("nodes", place.node, kind.type)
    step = Step(RESTORE, summary, "POST", path, data, timeout=sides.timeout, reread=True)
    record = source.state.record or sides.record
    target = replace(
        sides.target,
        state=SideState("stopped", "", record),
        config=source.config,
        node=place.node,
        vmid=place.vmid,
        pool=sides.pool or sides.target.pool,
    )
    return [_at_site(step, TARGET)], replace(sides, target=target)


def _on_bridge(nic: str, bridge: str, bridges: Mapping[str, str]) -> str:
    """Return a NIC on the bridge of the target."""
    return nic.replace(f"bridge={bridge}", f"bridge={bridges.get(bridge, bridge)}")


def tunnel_request(actual: Actual, place: Destination) -> SiteStep:
    """Return the first request that the source sends to the target with the token of the target
    (qemu-server: QemuMigrate.pm, prepare; pve-container: LXC/Migrate.pm, prepare).
    """
    path = (*actual.kind.path(place.node, place.vmid), "mtunnel")
    data = {"storages": ",".join(sorted(set(place.storages.values())))}
    return _at_site(Step("tunnel", f"Receive {actual.label}", "POST", path, data), TARGET)


def arrival_request(actual: Actual, place: Destination) -> SiteStep:
    """Return the change of the empty target by the command C(config) of the tunnel: the token needs
    the rights on all options of the guest (qemu-server: API2/Qemu.pm, mtunnel, update_vm_api;
    pve-container: API2/LXC.pm, mtunnel, check_ct_modify_config_perm).
    """
    kind = actual.kind
    data = {key: value for key, value in actual.target.items() if key not in _NOT_SENT}
    for key, value in data.items():
        volume, comma, rest = str(value).partition(",")
        storage = place.storages.get(volume.partition(":")[0])
        if storage is not None and ":" in volume:
            name = "cloudinit" if "cloudinit" in volume else "disk-0"
            data[key] = f"{storage}:vm-{place.vmid}-{name}{comma}{rest}"
    for slot, bridge in kind.bridges_in(actual.target).items():
        data[slot] = _on_bridge(data[slot], bridge, place.bridges)
    path = (*kind.path(place.node, place.vmid), "config")
    return _at_site(
        Step("arrive", f"Write the options of {actual.label}", "PUT", path, data), TARGET
    )


def _pairs(names: Mapping[str, str]) -> str:
    return ",".join(f"{source}:{target}" for source, target in sorted(names.items()))


def _revoke(sides: MoveSides) -> Planned:
    record = (sides.source.state.record or sides.record).with_state(VOID, sides.now)
    summary = f"Record that {sides.target.label} is incomplete, in the notes of its source"
    step, sides = _write_record(sides, SOURCE, VOID, record, summary)
    return [step], sides


def _power(
    at: str, action: str, command: str, words: str, power: str
) -> Callable[[MoveSides], Planned]:
    """Return the planner of a step that changes the power state of a side."""

    def plan(sides: MoveSides) -> Planned:
        side = sides.source if at == SOURCE else sides.target
        more: dict[str, Any] = {}
        if action in (SHUT_DOWN, STOP_SOURCE):
            more = {"data": {"timeout": sides.shutdown_timeout}}
        step = _step(sides, at, action, f"{words} {side.label}", "status", command, **more)
        steps = _take_back(sides) if action == START_SOURCE else []
        if side.state.power == "postmigrate":  # a start needs a new process
            steps.append(_step(sides, at, STOP, f"Stop {side.label}", "status", "stop"))
        return [*steps, step], _with(sides, at, side.with_state(power=power))

    return plan


def _take_back(sides: MoveSides) -> list[SiteStep]:
    """Return the step that makes a source a guest again, if root has released it as a template."""
    source = sides.source
    if str(source.config.get(TEMPLATE) or "0") == "0":
        return []
    summary = f"Make the template {source.label} a guest again"
    data = {"delete": TEMPLATE}
    step = _step(
        sides, SOURCE, TAKE_BACK, summary, "config", method="PUT", data=data, is_task=False
    )
    return [step]


def _drop(at: str, action: str) -> Callable[[MoveSides], Planned]:
    """Return the planner of a step that removes a guest."""

    def plan(sides: MoveSides) -> Planned:
        side = sides.source if at == SOURCE else sides.target
        steps = _take_back(sides) if at == TARGET else []
        if side.state.power != "stopped":
            steps.append(_step(sides, at, STOP, f"Stop {side.label}", "status", "stop"))
        data = {"purge": 1, "destroy-unreferenced-disks": 1}
        steps.append(_step(sides, at, action, f"Remove {side.label}", method="DELETE", data=data))
        return steps, _with(sides, at, replace(side, state=SideState()))

    return plan


def _prove(sides: MoveSides) -> Planned:
    """The guest is put into its pool before it is proven, and gets its belongings before that is
    recorded.
    """
    steps: list[SiteStep] = []
    target = sides.target
    if sides.pool and sides.pool != target.pool:
        data = {"poolid": sides.pool, "vms": str(target.vmid), "allow-move": 1}
        summary = f"Put {target.label} into pool {sides.pool}"
        step = Step(POOL, summary, "PUT", ("pools",), data, is_task=False, reread=True)
        steps.append(_at_site(step, TARGET))
    more, sides = _join(sides, TARGET)
    steps += more
    record = (target.state.record or sides.record).with_state(PROVEN, sides.now)
    step, sides = _write_record(
        sides, TARGET, PROVE, record, f"Record that {target.label} is proven"
    )
    return [*steps, step], sides


def _return(sides: MoveSides) -> Planned:
    """The target must not start with its node any more."""
    record = (sides.target.state.record or sides.record).with_state(RETURNED, sides.now)
    label = sides.target.label
    summary = f"Record that {label} is given up, and remove its start with its node"
    step, sides = _write_record(sides, TARGET, RETURN, record, summary)
    deletes = ["onboot"] if str(sides.target.config.get("onboot") or "") not in ("", "0") else []
    if deletes:
        step = replace(step, data={**step.data, "delete": ",".join(deletes)})
    return [step], sides


def _finish(sides: MoveSides) -> Planned:
    """The record stays: a later run finds the guest by its former VMID."""
    record = (sides.target.state.record or sides.record).with_state(COMPLETE, sides.now)
    summary = f"Record that the move of {sides.target.label} is complete"
    step, sides = _write_record(sides, TARGET, FINISH, record, summary)
    return [step], sides


def _clear(sides: MoveSides) -> Planned:
    """The source gets its removed objects back."""
    steps, sides = _join(sides, SOURCE)
    summary = f"Remove the record of the move from {sides.source.label}"
    step, sides = _write_record(sides, SOURCE, CLEAR, None, summary)
    return [*steps, step], sides


_STEPS: Mapping[str, Callable[[MoveSides], Planned]] = {
    MOVE: _move,
    RESTORE: _restore,
    RELEASE_SOURCE: _release(SOURCE),
    RELEASE_TARGET: _release(TARGET),
    REVOKE: _revoke,
    START_SOURCE: _power(SOURCE, START_SOURCE, "start", "Start", "running"),
    START_TARGET: _power(TARGET, START_TARGET, "start", "Start", "running"),
    RESUME_TARGET: _power(TARGET, RESUME_TARGET, "resume", "Resume", "running"),
    SHUT_DOWN: _power(TARGET, SHUT_DOWN, "shutdown", "Shut down", "stopped"),
    DROP_SOURCE: _drop(SOURCE, DROP_SOURCE),
    DROP_TARGET: _drop(TARGET, DROP_TARGET),
    PROVE: _prove,
    RETURN: _return,
    FINISH: _finish,
    CLEAR: _clear,
}


@dataclass(frozen=True)
class RootCommand:
    """A command that only root can give, on a node of a site."""

    at: str
    node: str
    command: str


def root_command(step: str, sides: MoveSides) -> RootCommand | None:
    """Return the command of a step that only root can do, or None. HOLD is such a step once the
    hold time has passed.
    """
    tool, source, target = sides.kind.tool, sides.source, sides.target
    if step == UNLOCK_TARGET:
        return RootCommand(TARGET, target.node, f"{tool} unlock {target.vmid}")
    if step in _STEPS:
        return None
    command = f"{tool} unlock {source.vmid}"
    if step in (LOCK_SOURCE, HOLD) and not source.digest:
        return None  # it is only foreseen
    if step == LOCK_SOURCE:
        command = f"{tool} set {source.vmid} --lock migrate --digest {source.digest}"
    elif step == HOLD:
        command = _release_command(sides)
    return RootCommand(SOURCE, source.node, command)


def _release_command(sides: MoveSides) -> str:
    """Return the command that releases a source for its removal. It becomes a template, which no
    start accepts (qemu-server: QemuServer.pm, vm_start; pve-container: API2/LXC/Status.pm,
    vm_start). Only VMs can be changed while they are locked.
    """
    source = sides.source
    if sides.kind.has_rootfs:
        return f"sh -c 'pct unlock {source.vmid} && pct set {source.vmid} --template 1'"
    options = f"--skiplock 1 --delete lock --template 1 --digest {source.digest}"
    return f"qm set {source.vmid} {options}"
