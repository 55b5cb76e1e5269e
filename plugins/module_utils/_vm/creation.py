# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a VM: decide where and under which number, check, create, and finish what was begun."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._cluster.bridges import KnownBridges
from .._cluster.lookup import guard_tenant
from .._cluster.picture import Picture
from .._cluster.placement import Choice, Needs, require_node, why_not
from .._cluster.quota import Figures
from .._cluster.scene import Scene
from .._cluster.tenant import parse_tags
from .._cluster.vmids import Band, advice, lowest_free, next_free
from .._core.errors import Conflict, FleetError, NotFound, TaskTimeout, ValidationFailed
from .actual import Actual, read_actual
from .apply import carry_out
from .checks import bridges_of, check_bridges, check_change, check_cpus, check_pool, check_version
from .config import Change, apply_to, changes
from .limits import check_quota, figures_of, settle
from .marker import split_notes
from .model import Desired, Plan, Step
from .neighbours import PLACE_TAKEN, keep_place
from .placing import needs_of, place_new
from .plan import plan_update
from .plan_new import clone_of, plan_clone, plan_create
from .source import Origin, check_images, guard_drives, guard_volumes, read_origin
from .twins import nameless, newcomers, yield_to_twin

if TYPE_CHECKING:
    from .._api.client import Client

# How many numbers are tried when others take them first, and how many places.
_NUMBERS, _PLACES = 50, 5
# Steps after which the VM still only becomes what it shall be: what it counts is known when they are done.
_BUILDING = frozenset(("create", "clone", "config", "cloudinit", "resize", "move_disk", "pool"))


@dataclass(frozen=True)
class Draft:
    """A VM about to be made: where and why there, which number, from what, and the plan."""

    desired: Desired
    origin: Origin
    choice: Choice
    needs: Needs
    bridges: KnownBridges
    vmid: int
    plan: Plan
    run: str
    identity: str
    shared: frozenset[str]
    images: Mapping[str, int]  # slot -> bytes
    figures: Figures  # what it will count against a quota
    siblings: frozenset[int]  # the tenant's VMs that were there before, where there is a quota
    known: frozenset[int]  # all VMs that were there before
    suspects: frozenset[int]  # VMs that others make, of which one may be the VM that is meant
    config: Mapping[str, str]  # what its configuration will be

    @property
    def node(self) -> str:
        return self.choice.node

    @property
    def band(self) -> Band:
        bands = self.desired.bands
        return bands.template if self.desired.state == "template" else bands.automatic


def prepare(client: Client, desired: Desired, picture: Picture, *, run: str, identity: str) -> Draft:
    """Return the draft of a new VM after every check that needs no write. Raises FleetError."""
    if not desired.name and desired.source is None and not desired.disks:
        raise ValidationFailed(
            attempted=f"{desired.label} was not created",
            answer="there is no such VM, and nothing says what it should be",
            next_step="Check the vmid, or give name and source or disks",
            reason="unknown VM",
        )
    if desired.node:
        require_node(picture, desired.node)
    guard_volumes(desired, picture)
    check_pool(client, desired.pool, picture)
    origin = read_origin(client, desired, picture)
    wish, bridges = origin.wish, KnownBridges(client)
    change, config = _outcome(wish, origin)
    check_version(client, f"New {wish.label}", change.sets)
    guard_drives(wish, change.sets, origin.template.target if origin.template is not None else {}, picture)
    needs = replace(needs_of(wish, config, change), only=origin.nodes)
    choice = place_new(client, wish, needs, picture, bridges)
    check_change(bridges, change, choice.node, picture)
    check_bridges(bridges, bridges_of(config), choice.node)
    if wish.state == "started":
        check_cpus(f"New {wish.label}", config, choice.node, picture)
    images = check_images(client, wish, choice.node)
    figures = figures_of(config, images, template=wish.state == "template")
    label = f"New {wish.label}"
    siblings = check_quota(client, wish, label, picture, vmid=None, before=Figures(), after=figures)
    draft = Draft(
        wish,
        origin,
        choice,
        needs,
        bridges,
        0,
        Plan(),
        run,
        identity,
        picture.shared_storages,
        images,
        figures,
        siblings,
        frozenset(picture.vms),
        nameless(picture),
        config,
    )
    return _numbered(draft, wish.vmid or lowest_free(draft.band, picture.taken))


def confirm(client: Client, draft: Draft, picture: Picture) -> Draft:
    """Return the draft as it stands in a newer picture: number and node are kept where they still will do.

    Raises FleetError where the new VM is not possible any more.
    """
    wish, rules = draft.desired, draft.desired.rules
    row = picture.nodes.get(draft.node)
    if wish.node or row is None:
        require_node(picture, draft.node)
    elif why_not(picture, draft.node, draft.needs, rules) is not None:
        draft = replace(draft, choice=place_new(client, wish, draft.needs, picture, draft.bridges))
    taken = draft.vmid in picture.taken and wish.vmid is None
    siblings = check_quota(client, wish, f"New {wish.label}", picture, vmid=None, before=Figures(), after=draft.figures)
    vmid = lowest_free(draft.band, picture.taken) if taken else draft.vmid
    return _numbered(replace(draft, siblings=siblings), vmid)


def _outcome(desired: Desired, origin: Origin) -> tuple[Change, dict[str, str]]:
    """Return what changes against an empty VM or a copy of the template, and the configuration that makes."""
    if origin.template is None:
        change = changes(desired, {}, new=True)
        return change, apply_to(change, {})
    template = origin.template
    copy = clone_of(template, vmid=template.vmid, node=template.node, data={"description": "", "name": desired.name})
    change = changes(desired, copy.target)
    return change, apply_to(change, copy.target)


def _numbered(draft: Draft, vmid: int) -> Draft:
    """Return the draft with that VMID and the plan for it."""
    if draft.origin.template is None:
        plan = plan_create(draft.desired, vmid=vmid, node=draft.node, identity=draft.identity, images=draft.images)
    else:
        plan = plan_clone(
            draft.desired,
            draft.origin.template,
            vmid=vmid,
            node=draft.node,
            full=draft.origin.full,
            run=draft.run,
            shared=draft.shared,
        )
    note = advice(vmid, draft.desired.bands) if draft.desired.vmid is not None else None
    return replace(draft, vmid=vmid, plan=replace(plan, warnings=(*plan.warnings, note)) if note else plan)


def create(
    client: Client, draft: Draft, *, timeout: int, scene: Scene, rng: random.Random | None = None
) -> tuple[Draft, list[str], list[str]]:
    """Make the VM and return the draft as it was carried out, what was done, and warnings.

    Where the number was ours to choose and somebody was faster, a fresh look decides on another one, and on the node.
    So it does where somebody took the place that was chosen.
    """
    lost: set[int] = set()
    places = 1
    rng = rng or random.Random()
    while True:
        try:
            done, warnings = _create_once(client, draft, timeout, scene)
        except Conflict as error:
            displaced = error.reason == PLACE_TAKEN and _is_placed(draft) and places < _PLACES
            places += displaced
            if not displaced and (not _lost_race(error) or draft.desired.vmid is not None or len(lost) >= _NUMBERS):
                raise
            lost.add(draft.vmid)
            draft = _after_loss(client, draft, scene.now(), lost, rng)
            scene.claim(draft.vmid, draft.node)
            continue
        return draft, done, warnings


def _lost_race(error: Conflict) -> bool:
    """Tell whether somebody else has the number and nothing was made."""
    return error.reason in ("vmid taken", "taken vmid") and not error.details.get("done")


def _is_placed(draft: Draft) -> bool:
    """Tell whether the node can be chosen anew: images and ISOs were looked for on the one that was chosen."""
    return not any(disk.import_from or disk.volume for disk in draft.desired.disks)


def _after_loss(client: Client, draft: Draft, picture: Picture, lost: set[int], rng: random.Random) -> Draft:
    vmid = draft.desired.vmid or next_free(draft.band, picture.taken | lost, len(lost), rng)
    if _is_placed(draft):
        # Those who lost together saw the same picture: now they see what the winners did.
        choice = place_new(client, draft.desired, draft.needs, picture, draft.bridges)
        draft = replace(draft, choice=choice)
    draft = replace(draft, suspects=draft.suspects | newcomers(picture, draft.known, vmid))
    return _numbered(draft, vmid)


def _create_once(client: Client, draft: Draft, timeout: int, scene: Scene) -> tuple[list[str], list[str]]:
    wish = replace(draft.desired, vmid=draft.vmid, node=draft.node, reboot="never")
    first = draft.plan.steps[0]
    at = [str(first.data.get("target") or first.path[1])]
    seen: list[Actual] = []

    def read(status: str | None) -> Actual:
        try:
            return read_actual(client, draft.vmid, at[0], status=status, pool=wish.pool)
        except NotFound:
            if at[0] == draft.node:
                raise
            at[0] = draft.node  # it has been migrated
            return read_actual(client, draft.vmid, at[0], status=status, pool=wish.pool)

    def replan(done: list[Step], uncertain: bool) -> Plan:
        # Nobody but us knows the VM: it is off until the plan's last step.
        actual = read(None if uncertain else "stopped")
        if not seen:
            _require_ours(draft, actual.target)
            scene.made(draft.vmid)
        seen.append(actual)
        # A clone inherits its template's password, and PVE does not show it: ours is written once, whatever is there.
        written = any("cipassword" in step.data for step in done)
        policy = "on_create" if written else "always"
        return plan_update(replace(wish, update_password=policy), actual, shared=draft.shared)

    within = _keep_within(client, draft, scene, lambda: _remove(client, draft, read(None), seen, timeout))
    done, warnings = carry_out(
        client,
        draft.plan,
        replan=replan,
        timeout=timeout,
        happened=lambda: _is_ours(client, draft, at[0], timeout) or None,
        before=lambda step: None if step.action in _BUILDING else within(),
    )
    within()
    return done, warnings


def _keep_within(client: Client, draft: Draft, scene: Scene, remove: Callable[[], None]) -> Callable[[], None]:
    """Return what looks, once, whether the new VM still is right although others made some too: name, quota, place."""
    settled: list[bool] = []

    def within() -> None:
        if settled:
            return
        settled.append(True)
        label = f"New VM '{draft.desired.name or ''}' ({draft.vmid}) on node {draft.node}"
        yield_to_twin(scene, draft.desired, draft.vmid, draft.suspects, remove)
        if draft.desired.limits is not None:
            settle(client, draft.desired, label, draft.vmid, draft.figures, draft.siblings, remove)
        needs = replace(draft.needs, vmid=draft.vmid)
        keep_place(scene, draft.desired, needs, draft.node, label, known=draft.known, remove=remove)

    return within


def _remove(client: Client, draft: Draft, actual: Actual, seen: list[Actual], timeout: int) -> None:
    """Remove the VM that this run made, after a proof that it is still that one. Raises Conflict where it is not."""
    desired = draft.desired
    guard_tenant(actual.label, parse_tags(actual.target.get("tags")), desired.tenant_tag, desired.tenant_prefix)
    if not seen or actual.live.get("smbios1") != seen[-1].target.get("smbios1"):
        raise _not_ours(draft.vmid)
    client.task(
        "DELETE",
        *("nodes", actual.node, "qemu", draft.vmid),
        data={"purge": 1, "destroy-unreferenced-disks": 1},
        attempted=f"Could not remove {actual.label}",
        timeout=timeout,
    )


def _is_marked(draft: Draft, config: Mapping[str, object]) -> bool:
    """Tell whether a configuration bears our run in its notes, or the uuid that we gave a VM that is no clone."""
    notes = str(config.get("description") or "")
    return split_notes(notes)[1].run == draft.run or f"uuid={draft.identity}" in str(config.get("smbios1", ""))


def _require_ours(draft: Draft, config: Mapping[str, object]) -> None:
    if not _is_marked(draft, config):
        raise _not_ours(draft.vmid)


def _not_ours(vmid: int) -> FleetError:
    return Conflict(
        attempted=f"VM {vmid} was left alone",
        answer="another VM has that number",
        next_step="Choose another vmid, or leave it out",
        reason="taken vmid",
    )


def _is_ours(client: Client, draft: Draft, node: str, timeout: int) -> bool:
    """Tell whether a create or clone whose answer was lost has made the VM, and wait until it is complete.

    While a clone runs its configuration says nothing but the lock. Raises Conflict where the number is somebody else's.
    """
    deadline = client.clock.monotonic() + timeout
    while True:
        try:
            config = client.get("nodes", node, "qemu", draft.vmid, "config")
        except NotFound:
            return False
        ours, lock = _is_marked(draft, config), config.get("lock")
        if ours and not lock:
            return True
        if not ours and lock not in ("clone", "create"):
            raise _not_ours(draft.vmid)
        if client.clock.monotonic() > deadline:
            raise TaskTimeout(
                attempted=f"VM {draft.vmid} is still being made",
                answer=f"its lock ({lock}) is held for more than {timeout} s",
                next_step="Look at the task list of the node, then run this again: it goes on from there",
                reason="lock",
            )
        client.clock.sleep(1.0)
