"""Runs the table: each write of each scenario with each fault, and judges the result."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.fast_time import fast_time
from tests.modules.estate_lab import Lab, open_lab

from .faults import FAULTS, KNOWN, Fault, Write, read_faults, theirs
from .killed import run_killed
from .scenarios import BYSTANDERS, CT_TEMPLATE, SCENARIOS, VMID, Scenario
from .world import VmState, World, read_world

# Seconds of virtual time that a run may take: the time-out of a task and of its lock, and retries.
DEADLINE = 300.0
_TRIES = 5
_LOGIN = "/access/ticket"  # by a password: no write of the module
QUICK = ("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0", "--cleanup-s", "0")

_TASKS = {
    ("POST", "/nodes/{node}/qemu"): "qmcreate",
    ("POST", "/nodes/{node}/qemu/{vmid}/clone"): "qmclone",
    ("POST", "/nodes/{node}/qemu/{vmid}/config"): "qmconfig",
    ("PUT", "/nodes/{node}/qemu/{vmid}/resize"): "resize",
    ("POST", "/nodes/{node}/qemu/{vmid}/move_disk"): "qmmove",
    ("POST", "/nodes/{node}/qemu/{vmid}/migrate"): "qmigrate",
    ("POST", "/nodes/{node}/qemu/{vmid}/template"): "qmtemplate",
    ("DELETE", "/nodes/{node}/qemu/{vmid}"): "qmdestroy",
    ("POST", "/nodes/{node}/qemu/{vmid}/status/start"): "qmstart",
    ("POST", "/nodes/{node}/qemu/{vmid}/status/stop"): "qmstop",
    ("POST", "/nodes/{node}/qemu/{vmid}/status/shutdown"): "qmshutdown",
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reboot"): "qmreboot",
    ("POST", "/nodes/{node}/qemu/{vmid}/status/reset"): "qmreset",
    ("POST", "/nodes/{node}/qemu/{vmid}/snapshot"): "qmsnapshot",
    ("DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}"): "qmdelsnapshot",
    ("POST", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback"): "qmrollback",
    ("POST", "/nodes/{node}/lxc"): "vzcreate",
    ("POST", "/nodes/{node}/lxc/{vmid}/clone"): "vzclone",
    ("PUT", "/nodes/{node}/lxc/{vmid}/resize"): "resize",
    ("POST", "/nodes/{node}/lxc/{vmid}/move_volume"): "move_volume",
    ("POST", "/nodes/{node}/lxc/{vmid}/migrate"): "vzmigrate",
    ("POST", "/nodes/{node}/lxc/{vmid}/template"): "vztemplate",
    ("DELETE", "/nodes/{node}/lxc/{vmid}"): "vzdestroy",
    ("POST", "/nodes/{node}/lxc/{vmid}/status/start"): "vzstart",
    ("POST", "/nodes/{node}/lxc/{vmid}/status/stop"): "vzstop",
    ("POST", "/nodes/{node}/lxc/{vmid}/status/shutdown"): "vzshutdown",
    ("POST", "/nodes/{node}/lxc/{vmid}/status/reboot"): "vzreboot",
    ("POST", "/nodes/{node}/lxc/{vmid}/snapshot"): "vzsnapshot",
    ("DELETE", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}"): "vzdelsnapshot",
    ("POST", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback"): "vzrollback",
    ("POST", "/nodes/{node}/storage/{storage}/download-url"): "download",
    ("POST", "/nodes/{node}/vzdump"): "vzdump",
    ("POST", "/access/domains/{realm}/sync"): "auth-realm-sync",
    ("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}"): "imgdel",
}


# A clone is about the new guest, not about the template in its path.
_SOURCES = (9000, CT_TEMPLATE)


@dataclass(frozen=True)
class Finding:
    """A mistake in one combination; findings are counted by `kind`."""

    kind: str
    fault: str
    write: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.fault} at {self.write}: {self.text}"


@dataclass
class Report:
    """The result of the table."""

    writes: int = 0
    faults: set[str] = field(default_factory=set)
    combinations: int = 0
    findings: list[Finding] = field(default_factory=list)

    def line(self) -> str:
        """Return the one line that says it all."""
        counts = Counter(finding.kind for finding in self.findings)
        numbers = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
        return (
            f"{self.combinations} combinations of {self.writes} writes and"
            f" {len(self.faults)} faults: {numbers}"
        )


def is_known(write: Write, fault: Fault, kind: str) -> bool:
    """Return whether that is one of the ends that PVE leaves no way out of for the next run."""
    return kind in ("not reached", "leaked", "wrong category") and any(
        write.scenario.key == scenario and fault.key in faults for scenario, faults, _why in KNOWN
    )


def _without_times(steps: Iterable[str]) -> set[str]:
    """Return the steps without the second in the name of an archive, which no two runs share."""
    return {re.sub(r"\d{4}(_\d\d){2}-\d\d(_\d\d){2}", "TIME", step) for step in steps}


def _without_runs(found: dict[str, Any]) -> dict[str, Any]:
    """Return the objects without the run that has created the token of a tenant, in its comment."""
    same: dict[str, Any] = json.loads(re.sub(r", run [0-9a-f]{12}", "", json.dumps(found)))
    return same


def _without_disk_numbers(found: dict[str, Any]) -> dict[str, Any]:
    """Return the objects without the numbers of disks: a restore over a container makes the new
    volumes before it frees the old ones, so that the numbers alternate (pve-container:
    API2/LXC.pm, create_vm).
    """
    text = re.sub(r"(-disk-)\d+", r"\1N", json.dumps(found))
    numbered: dict[str, Any] = json.loads(text)
    return numbered


KINDS = ("lost", "duplicated", "foreign", "false successes", "unreported")


@dataclass(frozen=True)
class Baseline:
    """A scenario's run without faults; `done` are the steps that it reports.

    `end` is the cluster after the run that follows a fault.
    """

    writes: tuple[Write, ...]
    world: World
    done: frozenset[str]
    end: World


@contextmanager
def open_table() -> Iterator[Lab]:
    """A cluster for the table."""
    with open_lab(*QUICK) as lab:
        yield lab


def baseline(lab: Lab, scenario: Scenario) -> Baseline:
    """Run a scenario without faults until no write was sent again; return the writes and their
    result.

    On a busy machine an answer may come too late, and its write is then sent again. One run shows
    that this did not happen if it made each request once, else two runs that made the same writes.
    """
    known = _run_without_faults(lab, scenario)
    if max(_requests(known).values(), default=1) == 1:
        return known
    for _try in range(_TRIES):
        again = _run_without_faults(lab, scenario)
        if _requests(again) == _requests(known):
            return again
        known = again
    raise AssertionError(f"{scenario.key}: no two of {_TRIES + 1} runs made the same writes")


def _requests(base: Baseline) -> Counter[tuple[str, str]]:
    """Return how often each request was made; a list makes its writes in any order."""
    return Counter((write.method, write.route) for write in base.writes)


def _run_without_faults(lab: Lab, scenario: Scenario) -> Baseline:
    lab.simulator.reset()
    with fast_time():
        scenario.prepare(lab)
        lab.simulator.reset_log()
        result = lab.run(scenario.module, **scenario.options)
    assert not result.get("failed"), (scenario.key, result)
    log = [row for row in lab.simulator.log() if row["route"] != _LOGIN]
    world = end = read_world(lab)
    assert any(row["method"] != "GET" for row in log), f"{scenario.key} writes nothing"
    if scenario.ending:
        last = lab.run(scenario.module, **scenario.last_options)
        assert not last.get("failed"), (scenario.key, last)
        end = read_world(lab)
    made = world.named(scenario.name, scenario.tenant) if scenario.name else []
    vmid = VMID if VMID in (scenario.there.keys() | scenario.containers.keys()) else None
    if made:
        vmid = made[0].vmid
    counted: Counter[tuple[str, str]] = Counter()
    writes: list[Write] = []
    look: tuple[str, int] | None = None
    reads: dict[str, None] = {}  # since the last write
    for row in log:
        key = (row["method"], row["path"])
        counted[key] += 1
        if row["method"] == "GET":
            reads[row["route"]] = None
            if re.search(rf"/(?:qemu|lxc)/{vmid}/", row["path"]):
                look = (row["path"], counted[key])
            continue
        assert row["status"] == 200, f"{scenario.key}: {row}"
        number = len(writes)
        about = _about(row, vmid)
        task = _TASKS.get((row["method"], row["route"]))
        if task is not None and scenario.module in ("restore", "failover", "drill"):
            task = task.replace("create", "restore")
        if row["route"].endswith("/status/suspend"):
            task = "qmsuspend" if "todisk" in str(row["params"]) else "qmpause"
        digest = "digest" in (row["params"] or {})
        nth = counted[key]
        write = Write(scenario, number, *key, row["route"], nth, about, task, digest, look)
        if write.destroys:
            assert look is not None, f"{write.label}: the VM was not read right before"
        writes.append(write)
        look = None
        reads.clear()
    writes[-1] = replace(writes[-1], reads=tuple(reads))
    return Baseline(tuple(writes), world, frozenset(reported(result)), end)


def reported(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the steps that a result reports: done, or sent with an outcome that is not known."""
    error = result.get("error") or {}
    for part in (result, error, *(result.get("vms") or ())):
        if isinstance(part, Mapping):
            yield from part.get("done") or ()
            yield from (part.get("error") or {}).get("unverified") or ()
    yield from error.get("unverified") or ()


def _about(row: Mapping[str, Any], vmid: int | None) -> int | None:
    """Return the number of the guest that a write is about: of a clone, the number of the new one;
    `vmid` is the number of the subject, for writes that name no other guest.
    """
    found = re.search(r"/(?:qemu|lxc)/(\d+)", row["path"])
    if found and int(found[1]) not in _SOURCES:
        return int(found[1])
    newid = (row["params"] or {}).get("newid")
    return vmid if newid is None else int(newid)


class _Runs(NamedTuple):
    """The results of both runs, the seconds that the first one took, and the world after each."""

    first: Mapping[str, Any]
    taken: float
    between: World
    second: Mapping[str, Any]
    after: World


def combine(lab: Lab, base: Baseline, write: Write, fault: Fault) -> list[Finding]:
    """Run one combination, and again if the fault did not occur.

    A list makes its requests in any order, and a task may end before the first look at it: then the
    result of the run proves nothing.
    """
    for _try in range(_TRIES):
        findings = _combine_once(lab, base, write, fault)
        if findings is not None:
            return findings
    if fault.is_read and write.scenario.module == "vms":
        return []
    return [Finding("not met", fault.key, write.label, f"not in {_TRIES} runs")]


def _combine_once(lab: Lab, base: Baseline, write: Write, fault: Fault) -> list[Finding] | None:
    """Run the task with the fault, then the same task without, and judge both; None if the fault
    did not occur.
    """
    scenario = write.scenario
    options = {**scenario.options, **fault.options}
    lab.simulator.reset()
    with fast_time() as clock:
        for control in fault.earlier(write):
            lab.simulator.ask(*control)
        scenario.prepare(lab)
        before = read_world(lab)
        for control in fault.late:
            lab.simulator.ask(*control)
        for rule in fault.rules(write):
            lab.simulator.fault(**rule)
        started = clock.monotonic()
        first, met = _first_run(lab, write, fault, options)
        taken = clock.monotonic() - started
        lab.simulator.clear_faults()
        for control in fault.after:
            lab.simulator.ask(*control)
        await_forgotten(lab)
        if fault.is_read:
            await_tasks(lab)
        between = read_world(lab)
        second = lab.run(scenario.module, **scenario.last_options)
    if not met:
        return None
    judge = Judge(base, write, fault, before)
    judge.both(fault, _Runs(first, taken, between, second, read_world(lab)))
    return [finding for finding in judge.findings if not is_known(write, fault, finding.kind)]


def _first_run(
    lab: Lab, write: Write, fault: Fault, options: Mapping[str, Any]
) -> tuple[Mapping[str, Any], bool]:
    """Return the result of the run with the fault, and whether the fault occurred."""
    if fault.kills:
        return run_killed(lab, write, fault.kills == "after", options)
    result = lab.run(write.scenario.module, **options)
    done = [bool(rule["done"]) for rule in lab.simulator.ask("GET", "/faults")]
    return result, all(done) if fault.is_read else any(done)


def await_forgotten(lab: Lab) -> None:
    """Wait for tasks at work that no node knows any more: no run can find them."""
    while lab.simulator.ask("GET", "/tasks")["forgotten"]:
        time.sleep(0.01)


def await_tasks(lab: Lab) -> None:
    """Wait for the tasks at work: a run that cannot read how they end leaves them behind."""
    while any("endtime" not in row for row in lab.client.get("cluster", "tasks")):
        time.sleep(0.01)


class Judge:
    """Compares the cluster with the allowed results."""

    def __init__(self, base: Baseline, write: Write, fault: Fault, before: World) -> None:
        self.base = base
        self.write = write
        self.fault = fault
        self.before = before
        self.findings: list[Finding] = []

    def found(self, kind: str, text: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(kind, self.fault.key, self.write.label, text))

    def both(self, fault: Fault, runs: _Runs) -> None:
        """Judge the run with the fault, and the run after it."""
        if fault.is_read:
            self.unread(runs.first)
        else:
            self.failure(runs.first)
        if runs.taken > DEADLINE:
            self.found("too long", f"{runs.taken:.0f} s")
        if not runs.first.get("failed") and not fault.alters:
            self.reached("false successes", runs.between, self.base.world)
        if fault.alters:
            self.explained(runs.second)
        else:
            self.rerun(runs.second, runs.after)
        self.harm(runs.between)
        self.harm(runs.after, planned_again=True)

    def failure(self, result: Mapping[str, Any]) -> None:
        """The first run: it has the right category, or has not failed."""
        if "exception" in result and "Traceback" in str(result["exception"]):
            self.found("wrong category", str(result["exception"])[-600:])
        elif not result.get("failed"):
            if self.fault.must_fail:
                self.found("false successes", f"it did not fail: {result.get('plan')}")
        elif result["error"]["category"] not in self.fault.categories:
            self.found("wrong category", f"{result['error']['category']}: {result['msg']}")

    def unread(self, result: Mapping[str, Any]) -> None:
        """The first run, whose writes are done: if it fails, it reports all of them."""
        if "exception" in result:
            self.found("wrong category", str(result["exception"])[-600:])
        if not result.get("failed"):
            return
        if not result["changed"]:
            self.found("unreported", f"changed is false: {result['msg']}")
        missing = _without_times(self.base.done) - _without_times(reported(result))
        if missing:
            self.found("unreported", f"{sorted(missing)}: {result['msg']}")

    def reached(self, kind: str, world: World, goal: World) -> None:
        """The cluster equals the result of a run without faults."""
        different = list(differences(self._goal(goal), self._goal(world)))
        if different:
            self.found(kind, "; ".join(different))

    def rerun(self, result: Mapping[str, Any], world: World) -> None:
        """The second run reaches the state."""
        if result.get("failed"):
            self.found("not reached", f"the next run fails: {result['msg']}")
        else:
            self.reached("not reached", world, self.base.end)
        leaked = world.leaked() - self.base.end.leaked()
        if leaked:
            self.found("leaked", ", ".join(sorted(leaked)))
        left = world.vms.keys() - self.base.end.vms.keys()
        if self.write.scenario.ending and left:
            self.found("leaked", f"guests {sorted(left)}")

    def explained(self, result: Mapping[str, Any]) -> None:
        """If the fault changed the VM, the second run may fail, but with a cause."""
        if result.get("failed") and result["error"]["category"] in ("InternalError", "ApiError"):
            self.found("wrong category", f"the next run: {result['msg']}")

    def harm(self, world: World, planned_again: bool = False) -> None:
        """No other VM changed, none is lost, none is there twice."""
        for vmid, vm in self.before.vms.items():
            if vmid == VMID or vmid in self._meant():
                continue
            kind = "foreign" if theirs(vm) else "lost"
            if _without_clone_lock(world.vms.get(vmid)) != vm:
                self.found(kind, f"VM {vmid} is not what it was")
        for vmid in BYSTANDERS:
            if vmid == self.write.vmid and self.fault.key.startswith("deleted"):
                continue
            own = {key for key in self.before.volumes if f"-{vmid}-" in key[1]}
            if not own <= set(world.volumes):
                self.found("lost", f"volumes of VM {vmid}")
        name, tenant = self.write.scenario.name, self.write.scenario.tenant
        if name is not None and len(world.named(name, tenant)) > 1:
            numbers = [vm.vmid for vm in world.named(name, tenant)]
            self.found("duplicated", f"{name} of {tenant}: {numbers}")
        self._reused(world)
        self._subject(world, planned_again)

    def _meant(self) -> set[int]:
        """The numbers of VMs that the task itself may change."""
        meant = {VMID}
        for vmid, vm in self.before.vms.items():
            if vm.name == f"replace-{VMID}":  # holds the old root of the subject
                meant.add(vmid)
        for item in self.write.scenario.options.get("vms", ()):
            if isinstance(item, dict) and item.get("name") == "neighbour":
                meant.add(20101)
        for option in ("disks", "mounts"):
            items = self.write.scenario.options.get(option, ())
            meant |= {item["target_vmid"] for item in items if "target_vmid" in item}
        return meant

    def _reused(self, world: World) -> None:
        """A VM that another client created with the VMID is unchanged."""
        if self.fault.key not in ("deleted and its number reused", "number taken"):
            return
        vm = world.vms.get(self.write.vmid or 0)
        if vm is None or vm.name != "theirs" or "tenant_globex" not in vm.tags:
            self.found("foreign", f"VM {self.write.vmid} of another tenant: {vm}")
        elif f"ceph:vm-{self.write.vmid}-disk-0" not in {name for _node, name in world.volumes}:
            self.found("foreign", f"the disk of VM {self.write.vmid} of another tenant is gone")
        elif vm.config.get("cores") != "1" or vm.running:
            self.found("foreign", f"VM {self.write.vmid} of another tenant was changed")

    def _subject(self, world: World, planned_again: bool) -> None:
        """The subject and its disks are there, unless the task or the fault removes them."""
        old = self.before.vms.get(VMID)
        if old is None or self.fault.key.startswith("deleted"):
            return
        stays = VMID in self.base.world.vms
        gone = VMID not in world.vms
        # A new plan may prune the VM under its new name: the list does not have that name either.
        # An unfinished VM is removed because of its marker, regardless of its name.
        scenario = self.write.scenario
        by_choice = scenario.options.get("prune") or scenario.module == "tidy"
        pruned = planned_again and by_choice
        if gone and self.fault.key == "renamed" and not pruned:
            self.found("foreign", f"VM {VMID} was removed, although it was renamed")
        if gone and self.fault.key == "given to another tenant":
            self.found("foreign", f"VM {VMID} was removed, although it is another tenant's")
        if not stays:
            return
        if gone and not planned_again and self._is_kept(world):
            return
        if gone or world.vms[VMID].identity != old.identity:
            self.found("lost", f"VM {VMID}")
        kept = {key for key in self.before.volumes if f"-{VMID}-" in key[1]}
        # PVE writes a cloud-init drive again from the configuration.
        kept = {key for key in kept if not key[1].endswith("-cloudinit")}
        kept &= set(self.base.world.volumes)
        missing = kept - set(world.volumes)
        if missing and not self.fault.alters:
            self.found("lost", f"volumes {sorted(name for _node, name in missing)}")

    def _is_kept(self, world: World) -> bool:
        """Whether the restore of a container has failed, so that PVE has removed it, and a new
        archive has its state before (pve-container: API2/LXC.pm, create_vm). The next run must
        bring it back.
        """
        if self.write.scenario.module != "restore" or VMID not in self.write.scenario.containers:
            return False
        archives = {key for key in world.volumes if f"vzdump-lxc-{VMID}-" in key[1]}
        return bool(archives - set(self.before.volumes))

    def _goal(self, world: World) -> dict[str, Any]:
        """The objects of the task, in a form that can be compared."""
        scenario = self.write.scenario
        found: dict[str, Any] = {"access": world.access}
        if scenario.name is None:
            found["pools"] = world.pools
        names = {scenario.name, "neighbour"} - {None}
        for name in sorted(str(one) for one in names):
            vms = world.named(name, scenario.tenant)
            found[name] = [vm.comparable() for vm in vms]
        if scenario.module == "evacuation":
            node = scenario.options["node"]
            found["on the node"] = sorted(
                vmid for vmid, vm in world.vms.items() if vm.node == node and vm.running
            )
        if scenario.module == "restore":
            found = _without_disk_numbers(found)
        if scenario.module == "tenant":
            found = _without_runs(found)
        if scenario.module == "storage_download":
            found["files"] = sorted(name for _node, name in world.volumes if ":import/" in name)
        return found


def _without_clone_lock(vm: VmState | None) -> VmState | None:
    """The VM without the lock of a container that is being cloned (pve-container: API2/LXC.pm,
    clone_vm).
    """
    if vm is None or vm.config.get("lock") != "disk":
        return vm
    return replace(vm, config={key: vm.config[key] for key in vm.config.keys() - {"lock"}})


def differences(wanted: Any, found: Any, where: str = "") -> Iterator[str]:
    """Yield the differences between two values, each with its path."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            yield from differences(wanted.get(key), found.get(key), f"{where}/{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, pair in enumerate(zip(wanted, found, strict=True)):
            yield from differences(*pair, f"{where}/{index}")
    elif wanted != found:
        yield f"{where}: {wanted!r:.200} expected, {found!r:.200} found"


class Combination(NamedTuple):
    """A fault that meets a write of a scenario."""

    base: Baseline
    write: Write
    fault: Fault


def combinations(base: Baseline) -> Iterator[Combination]:
    """Return the combinations of a scenario."""
    for write in base.writes:
        for fault in (*FAULTS, *read_faults(write)):
            if fault.applies(write):
                yield Combination(base, write, fault)


def run_scenario(lab: Lab, scenario: Scenario) -> Report:
    """Run all combinations of a scenario."""
    base = baseline(lab, scenario)
    return _run(lab, [base], list(combinations(base)))


def run_part(lab: Lab, share: int, shift: int = 0) -> Report:
    """Run one of `share` combinations of each fault, from `shift` on, and at least one of each."""
    bases = [baseline(lab, scenario) for scenario in SCENARIOS]
    of_fault: dict[str, list[Combination]] = {}
    for one in itertools.chain.from_iterable(map(combinations, bases)):
        of_fault.setdefault(one.fault.kind, []).append(one)
    chosen = [
        one
        for number, same in enumerate(of_fault.values())
        for one in same[(number + shift) % min(share, len(same)) :: share]
    ]
    return _run(lab, bases, chosen)


def _run(lab: Lab, bases: list[Baseline], chosen: list[Combination]) -> Report:
    report = Report(writes=sum(len(base.writes) for base in bases), combinations=len(chosen))
    for one in chosen:
        report.faults.add(one.fault.kind)
        report.findings += combine(lab, *one)
    return report


def total(reports: list[Report]) -> Report:
    """Return all of them as one."""
    whole = Report()
    for report in reports:
        whole.writes += report.writes
        whole.faults |= report.faults
        whole.combinations += report.combinations
        whole.findings += report.findings
    return whole


__all__ = [
    "FAULTS",
    "KNOWN",
    "SCENARIOS",
    "Report",
    "open_table",
    "run_part",
    "run_scenario",
    "total",
]
