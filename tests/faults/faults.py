"""Faults of a write, as rules of the simulator, and the allowed results.

The texts of refusals are PVE's own, from `../shared/pve/BEHAVIOUR.md` and PVE's source, which is
named beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .scenarios import MINE, VMID, Scenario, bystander
from .world import VmState

# Allowed in addition to the fault's own categories: the run may still have reached the state.
LOST = ("NetworkError", "NodeUnhealthy", "TaskTimeout")
KILLED = "Killed"  # instead of a category: a killed process has no result


@dataclass(frozen=True)
class Write:
    """One write of a scenario's fault-free run: the `nth` with that method and path."""

    scenario: Scenario
    number: int  # its place among the writes of the run
    method: str
    path: str
    route: str
    nth: int
    vmid: int | None  # of the VM that it is about
    task: str | None  # the type of its task
    has_digest: bool  # PVE itself refuses it when the VM changed since it was read
    look: tuple[str, int] | None  # the last GET about the VM before it: path, and which of them
    reads: tuple[str, ...] = ()  # of the last write: the routes of the GETs after it

    @property
    def label(self) -> str:
        return f"{self.scenario.key}: {self.number + 1}. {self.method} {self.route}"

    @property
    def pattern(self) -> str:
        """A regular expression for the path."""
        return f"^{re.escape(self.path)}$"

    @property
    def makes_vm(self) -> bool:
        """Whether it is the write that makes a VM: before it, none has the number."""
        if self.method != "POST" or "confirm" in self.scenario.options:
            return False
        return self.route.endswith(("/clone", "/nodes/{node}/qemu", "/nodes/{node}/lxc"))

    @property
    def moves_guest(self) -> bool:
        """Whether its task moves a guest or one of its volumes: a long one on real storages."""
        return self.task in _MOVING

    @property
    def is_of_guest(self) -> bool:
        """Whether its path is that of a VM or a container."""
        return re.search(r"/(?:qemu|lxc)/\d", self.path) is not None

    @property
    def control(self) -> str:
        """The path of its guest in the simulator's own interface."""
        kind = "containers" if "/lxc" in self.path else "vms"
        return f"/{kind}/{self.vmid}"

    @property
    def destroys(self) -> bool:
        """Whether it destroys something that cannot be restored, without a comparison by PVE
        itself.
        """
        if not self.is_of_guest:
            return False
        return self.method == "DELETE" or self.route.endswith(("/rollback", "/template"))

    @property
    def allocates(self) -> bool:
        """Whether its task takes room of a storage."""
        return self.task in _ALLOCATING


_ALLOCATING = (
    *("qmclone", "qmcreate", "qmmove", "resize", "download", "qmsnapshot"),
    *("vzclone", "vzcreate", "vzsnapshot", "move_volume"),
)

_MOVING = ("qmigrate", "vzmigrate", "qmmove", "move_volume")

Rules = Callable[[Write], list[dict[str, Any]]]


@dataclass(frozen=True)
class Fault:
    """One fault.

    `rules` are the simulator's. `categories` may be the category of the failure, `must_fail` says
    that the run cannot succeed. `alters` says that the fault itself changes the VM: then the result
    may differ from a run without faults, but no other VM may be harmed.
    """

    key: str
    rules: Rules
    categories: tuple[str, ...] = LOST
    must_fail: bool = False
    applies: Callable[[Write], bool] = lambda _write: True
    alters: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    after: tuple[tuple[str, str, Any], ...] = ()  # control requests that end it
    earlier: Callable[[Write], list[tuple[str, str, Any]]] = lambda _write: []  # before all
    late: tuple[tuple[str, str, Any], ...] = ()  # when everything is prepared
    kills: str = ""  # the process dies "before" or "after" the write
    is_read: bool = False  # it meets the reads after the last write, which is done

    @property
    def kind(self) -> str:
        """The key, without the route of a read."""
        return self.key.partition(":")[0]


def _rule(**what: Any) -> Rules:
    def rules(write: Write) -> list[dict[str, Any]]:
        return [{"method": write.method, "path": write.pattern, "nth": write.nth, **what}]

    return rules


def _steer(control: Callable[[Write], list[list[Any]]]) -> Rules:
    def rules(write: Write) -> list[dict[str, Any]]:
        return _rule(steer=control(write))(write)

    return rules


def _task(**what: Any) -> Rules:
    def rules(write: Write) -> list[dict[str, Any]]:
        return [{"task": write.task, "nth": write.nth, **what}]

    return rules


def _unseen(control: Callable[[Write], list[list[Any]]]) -> Rules:
    """Steer at the last moment at which the run can still notice it.

    With a digest PVE compares when it does the write. Without one, the last moment is the look at
    the VM right before the write: nothing protects against a change between the two. A write that
    destroys has such a look; others have it if they are the first.
    """

    def rules(write: Write) -> list[dict[str, Any]]:
        if write.has_digest or write.look is None:
            return _steer(control)(write)
        path, nth = write.look
        rule = {"method": "GET", "path": f"^{re.escape(path)}$", "nth": nth}
        return [{**rule, "steer": control(write)}]

    return rules


def _about_vm(write: Write) -> bool:
    return write.vmid is not None and write.is_of_guest


def _is_of_vm(write: Write) -> bool:
    """Whether it changes a VM: another client moves and restores only these in the simulator."""
    return _changes_vm(write) and "/qemu/" in write.path


def _changes_vm(write: Write) -> bool:
    """Whether a VM is there that it is about."""
    return _about_vm(write) and not write.makes_vm


def _can_notice(write: Write) -> bool:
    """Whether the run, or PVE by the digest, looks at the VM between another write and this one."""
    return _changes_vm(write) and (write.has_digest or write.look is not None)


def _has_task(write: Write) -> bool:
    return write.task is not None


def _changes_subject(write: Write) -> bool:
    """Whether it changes a VM that existed before. Tidy, power and a list that prunes look for VMs
    with a tag or a marker: they warn about a VM that a restore writes. Rebalance chooses other VMs.
    """
    scenario = write.scenario
    if scenario.module in ("tidy", "power", "rebalance") or scenario.options.get("prune"):
        return False
    is_there = write.vmid == VMID and VMID in scenario.there
    return is_there and _is_of_vm(write)


def _can_notice_restore(write: Write) -> bool:
    """Whether the last look reads the VM. Before a snapshot it reads the abilities of the storages;
    PVE's lock on the configuration file then protects a VM under restore from the write.
    """
    return _can_notice(write) and not write.route.endswith("/snapshot")


def _restored(begins: bool) -> tuple[tuple[str, str, Any], ...]:
    """Root restores that VM from a backup, or has done so."""
    return (("PUT", f"/vms/{VMID}", {"restored": begins}),)


def _node(write: Write) -> str:
    return write.path.split("/")[2]


def _foreign(write: Write) -> dict[str, Any]:
    return bystander(write.vmid or 0, "globex", "theirs", "pve1")


def _reused(write: Write) -> list[list[Any]]:
    path = f"/vms/{write.vmid}"
    return [["DELETE", write.control, None], ["POST", path, _foreign(write)]]


def _config(**config: Any) -> Callable[[Write], list[list[Any]]]:
    return lambda write: [["PUT", write.control, {"config": config}]]


def _renamed(write: Write) -> list[list[Any]]:
    option = "hostname" if "/lxc" in write.path else "name"
    return [["PUT", write.control, {"config": {option: "renamed"}}]]


def _restart(write: Write) -> list[dict[str, Any]]:
    """pveproxy is restarted: this connection is closed, and so are the next two."""
    more = [["POST", "/faults", {"drop": "before", "times": 2}]]
    return _rule(drop="before", steer=more)(write)


def _vanished(write: Write) -> list[dict[str, Any]]:
    """The first look at the task finds that the node does not know it (Tasks.pm: no such task)."""
    path = f"/tasks/UPID:[^/]*:{write.task}:"
    return [{"method": "GET", "path": path, "steer": [["DELETE", "/tasks", None]]}]


def _ghost(write: Write) -> list[tuple[str, str, Any]]:
    """Another VM had the number a moment ago, and listings still show its name."""
    path = f"/vms/{write.vmid}"
    return [
        ("POST", path, bystander(write.vmid or 0, "globex", "ghost", "pve3")),
        ("PUT", "/settings", {"lag_s": 30}),
        ("DELETE", path, None),
    ]


def _slow(write: Write) -> list[dict[str, Any]]:
    """The task runs longer than the run waits, and still runs when the next run begins."""
    if write.task is None:
        return []
    return _rule(delay_ms=1, steer=[["PUT", "/settings", {"task_ms": f"{write.task}=600"}]])(write)


_STALE = [("PUT", "/settings", {"lag_s": 30})]
_FRESH = (("PUT", "/settings", {"lag_s": 0}),)
_LOCKED = "VM is locked (backup)"  # AbstractConfig.pm, check_lock
_LOCK_FILE = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
_QUORUM = (("PUT", "/cluster", {"quorate": True}),)
_UP = tuple(("PUT", f"/nodes/pve{number}", {"online": True}) for number in (2, 3))


def _is_one_of_many(write: Write) -> bool:
    """Whether the write is one of many steps, of which a killed run leaves the rest."""
    return write.scenario.module in ("evacuation", "rebalance", "power")


FAULTS: tuple[Fault, ...] = (
    Fault("refused", _rule(status=500, message="no reason at all"), ("ApiError",), must_fail=True),
    Fault("dropped before", _rule(drop="before")),
    Fault("dropped after", _rule(drop="after")),
    Fault("answer cut in half", _rule(cut=9)),
    Fault("answer too late", _rule(delay_ms=1300), options={"timeout": 1}),
    Fault("500 got timeout", _rule(status=500), (*LOST, "Locked", "ApiError")),
    *(Fault(f"status {status}", _rule(status=status)) for status in (502, 503, 595, 596, 599)),
    Fault("status 503 for long", _rule(status=503, times=None), must_fail=True),
    Fault(
        "locked for a moment", _rule(status=500, message=_LOCKED, times=2), (), applies=_changes_vm
    ),
    Fault(
        "locked for long",
        _rule(status=500, message=_LOCKED, times=None),
        ("Locked",),
        must_fail=True,
        applies=_changes_vm,
    ),
    Fault("lock file", _rule(status=500, message=_LOCK_FILE), (), applies=_about_vm),
    Fault(
        "lock time-out in the task",
        _task(fail=_LOCK_FILE),
        ("Locked", "TaskFailed"),  # a migration always ends as "migration aborted"
        applies=_has_task,
    ),
    Fault(
        "task fails",
        _task(fail="command 'qm' failed: exit code 1"),
        ("TaskFailed",),
        must_fail=True,
        applies=_has_task,
    ),
    Fault("task warns", _task(warn="something is odd"), (), applies=_has_task),
    Fault("task vanishes", _vanished, (*LOST, "NotFound", "TaskFailed"), applies=_has_task),
    Fault(
        "storage full",
        _task(fail="lvcreate error: insufficient free space (10 extents)"),
        ("QuotaExceeded",),
        must_fail=True,
        applies=lambda write: write.allocates,
    ),
    Fault(
        "node down",
        _steer(lambda write: [["PUT", f"/nodes/{_node(write)}", {"online": False}]]),
        (*LOST, "TaskFailed", "Conflict"),
        applies=lambda write: _changes_vm(write) and _node(write) != "pve1",
        after=_UP,
    ),
    Fault(
        "quorum lost",
        _steer(lambda _write: [["PUT", "/cluster", {"quorate": False}]]),
        ("NodeUnhealthy", "TaskFailed", "NetworkError"),
        after=_QUORUM,
    ),
    Fault(
        "ticket expired",
        _rule(status=401, message="permission denied - invalid PVE ticket"),
        (),
        options={
            "token_id": None,
            "token_secret": None,
            "user": "root@pam",
            "password": "fleetpw123",
        },
    ),
    Fault("pveproxy restarted", _restart),
    *(
        Fault(
            f"killed {when}",
            lambda write: _slow(write) if write.makes_vm or write.moves_guest else [],
            (KILLED,),
            applies=lambda write: write.makes_vm or write.moves_guest or _is_one_of_many(write),
            kills=when,
        )
        for when in ("before", "after")
    ),
    Fault(
        "task outlasts its time limit",
        _slow,
        ("TaskTimeout",),
        applies=lambda write: (write.makes_vm or write.moves_guest) and _has_task(write),
        options={"task_timeout": 1},
    ),
    Fault(
        "moved by HA",
        _steer(lambda write: [["PUT", f"/vms/{write.vmid}", {"node": "pve3"}]]),
        (*LOST, "Conflict", "NotFound", "TaskFailed"),
        applies=_is_of_vm,
        alters=True,
    ),
    Fault("changed", _unseen(_config(onboot="1")), ("Conflict",), applies=_can_notice, alters=True),
    Fault("renamed", _unseen(_renamed), ("Conflict", "NotFound"), applies=_can_notice, alters=True),
    Fault(
        "given to another tenant",
        _unseen(_config(tags="tenant_globex")),
        ("Conflict", "NotFound"),
        applies=_can_notice,
        alters=True,
    ),
    Fault(
        "deleted",
        _unseen(lambda write: [["DELETE", write.control, None]]),
        ("Conflict", "NotFound", "TaskFailed", "ConfigurationError", "ValidationFailed"),
        applies=_can_notice,
        alters=True,
    ),
    Fault(
        "deleted and its number reused",
        _unseen(_reused),
        ("Conflict", "NotFound", "TaskFailed", "ConfigurationError", "ValidationFailed"),
        applies=_can_notice,
        alters=True,
    ),
    Fault(
        "being restored",
        lambda _write: [{"method": "GET", "path": "^/cluster/resources$", "delay_ms": 1}],
        ("Locked",),
        must_fail=True,
        applies=lambda write: write.number == 0 and _changes_subject(write),
        late=_restored(True),
        after=_restored(False),
    ),
    Fault(
        "a restore begins",
        _unseen(lambda _write: [list(control) for control in _restored(True)]),
        ("Locked",),
        must_fail=True,
        applies=lambda write: _can_notice_restore(write) and _changes_subject(write),
        after=_restored(False),
    ),
    Fault(
        "number taken",
        _steer(lambda write: [["POST", f"/vms/{write.vmid}", _foreign(write)]]),
        (),
        applies=lambda write: write.makes_vm,
        alters=True,
    ),
    Fault("listing of before", _rule(delay_ms=1), (), late=tuple(_STALE), after=_FRESH),
    Fault(
        "listing older than the VM",
        _rule(delay_ms=1),
        (),
        earlier=lambda _write: _STALE,
        after=_FRESH,
    ),
    Fault(
        "a removed VM's name",
        _rule(delay_ms=1),
        (),
        earlier=_ghost,
        applies=lambda write: write.vmid is not None,
        after=_FRESH,
    ),
)


# Faults of all reads after the last write: the changes are made.
_UNREAD: Mapping[str, Mapping[str, Any]] = {
    "read refused": {"status": 500, "message": "no reason at all"},
    # pve-access-control, RPCEnvironment.pm: check
    "read forbidden": {"status": 403, "message": "Permission check failed (/, Sys.Audit)"},
    "read dropped": {"drop": "before"},
    "read of a node that is down": {"status": 595, "message": "No route to host"},
}


def read_faults(write: Write) -> list[Fault]:
    """Return the faults of every route that is read after the last write."""
    return [
        _unread(f"{key}: {route}", route, what)
        for route in write.reads
        for key, what in _UNREAD.items()
    ]


def _unread(key: str, route: str, what: Mapping[str, Any]) -> Fault:
    """Return the fault that meets each read of a route once the last write is sent."""
    pattern = re.sub(r"\\\{\w+\\\}", ".+", re.escape(route))
    rule = {"method": "GET", "path": f"^{pattern}$", "times": None, **what}
    return Fault(key, _steer(lambda _write: [["POST", "/faults", rule]]), is_read=True)


_TASK_BREAKS = ("lock time-out in the task", "task fails", "quorum lost")

# Cases in which the next run cannot reach the state because of leftovers of PVE itself: scenario,
# faults, reason. The error of each names the next step. docs/promises.md lists them.
KNOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    *(
        (
            scenario,
            ("dropped after", "answer cut in half"),
            "PVE shows neither the token of the SDN lock nor its holder (SDN.pm, lock_sdn_config)",
        )
        for scenario in (
            *("create networks", "change a network", "remove networks"),
            *("create a fabric", "change a fabric", "remove a fabric"),
        )
    ),
    *(
        (
            scenario,
            ("number taken",),
            "the VMID is part of the approved plan, so that no other is chosen",
        )
        for scenario in (
            *("an approved list", "an approved failover"),
            "an approved image of a container",
        )
    ),
    (
        "replace the image",
        (
            *("a restore begins", "locked for long", "node down", "quorum lost", "refused"),
            *("status 503 for long", "storage full", "task fails", "task vanishes"),
        ),
        (
            "PVE shows of a disk neither its origin nor its time: until the notes are written, the"
            " next run replaces the disk once more, and leaves the first one as an unused disk"
        ),
    ),
    *(
        (
            scenario,
            ("quorum lost",),
            (
                "PVE renames a volume before it writes the configuration of its new owner, and"
                " creates one before that of the holder (pve-container: API2/LXC.pm, move_volume)"
            ),
        )
        for scenario in ("replace the root of a container", "an approved image of a container")
    ),
    (
        "restore in place with a copy",
        ("task vanishes",),
        (
            "without the log of the task, nothing shows that the copy is newer than the last run of"
            " the guest, so that the next run asks for another name or for its removal"
        ),
    ),
    (
        "roll back",
        _TASK_BREAKS,
        (
            "PVE keeps the lock of a rollback that failed in the middle (AbstractConfig.pm,"
            " snapshot_rollback), and has stopped the VM by then; only root can remove the lock"
        ),
    ),
    (
        "roll back to before the tenant",
        (
            *_TASK_BREAKS,
            "answer too late",
            "refused",
            "status 503 for long",
            "locked for long",
            "node down",
        ),
        (
            "a rollback takes the tenant's tag away until the run has set it again; the next run"
            " needs adopt=true"
        ),
    ),
    (
        "hibernate",
        _TASK_BREAKS,
        (
            "PVE keeps the lock of a hibernation that failed (QemuServer.pm, vm_suspend: leave"
            " suspending lock, to indicate something went wrong)"
        ),
    ),
    (
        "remove a snapshot",
        _TASK_BREAKS,
        "PVE keeps the lock of a deletion that failed (AbstractConfig.pm, snapshot_delete)",
    ),
    (
        "remove a container's snapshot",
        _TASK_BREAKS,
        "PVE keeps the lock of a deletion that failed (AbstractConfig.pm, snapshot_delete)",
    ),
    (
        "roll a container back",
        _TASK_BREAKS,
        (
            "PVE keeps the lock of a rollback that failed in the middle (AbstractConfig.pm,"
            " snapshot_rollback), and has stopped the container by then"
        ),
    ),
    *(
        (
            scenario,
            ("quorum lost",),
            (
                "the volume has its new size, and the configuration the old one; PVE refuses to set"
                " the size that the volume has (pve-container: API2/LXC.pm, resize_vm)"
            ),
        )
        for scenario in ("grow a container", "move and grow a mount point")
    ),
    (
        "remove a mount point",
        ("refused", "status 503 for long", "locked for long", "node down", "quorum lost"),
        (
            "PVE unmounts a volume in one request and destroys it in another one; no later run"
            " knows which unused volume is left of it (pve-container: LXC/Config.pm,"
            " vmconfig_apply_pending)"
        ),
    ),
    (
        "convert a container into a template",
        ("quorum lost",),
        (
            "the volumes are base volumes, and the configuration has their old names"
            " (pve-container: LXC.pm, template_create)"
        ),
    ),
    (
        "restart a container for a change",
        ("quorum lost",),
        "PVE has stopped the container and cannot start it; no later run knows that it ran",
    ),
    (
        "change and reboot",
        ("quorum lost",),
        "PVE has stopped the VM and cannot start it; no later run knows that it ran",
    ),
)


def theirs(machine: VmState) -> bool:
    """Whether a VM is another tenant's."""
    return bool(machine.tags) and MINE not in machine.tags
