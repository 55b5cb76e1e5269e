# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Making a VM: decide where and under which number, check, create, and finish what was begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._cluster.picture import Picture
from .._cluster.placement import Needs, choose_node, require_node
from .._cluster.vmids import lowest_free
from .._core.errors import Conflict, NotFound, TaskTimeout, ValidationFailed
from .actual import Actual, read_actual
from .apply import carry_out
from .checks import bridges_of, check_bridges, check_change, check_pool
from .config import Change, changes
from .marker import split_notes
from .model import Desired, Plan, Step
from .plan import clone_of, plan_clone, plan_create, plan_update
from .source import Origin, check_images, read_origin

if TYPE_CHECKING:
    from .._api.client import Client

# How many numbers are tried when others take them first.
_NUMBERS = 50


@dataclass(frozen=True)
class Draft:
    """A VM about to be made: where, which number, from what, and the plan."""

    desired: Desired
    origin: Origin
    node: str
    vmid: int
    plan: Plan
    run: str
    identity: str
    shared: frozenset[str]
    images: Mapping[str, int]  # slot -> bytes


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
    check_pool(client, desired.pool, picture)
    origin = read_origin(client, desired, picture)
    wish = origin.wish
    change = _change(wish, origin)
    node = wish.node or _place(client, wish, origin, change, picture)
    check_change(client, change, node, picture)
    if origin.template is not None:
        inherited = bridges_of(origin.template.target) - bridges_of(change.sets)
        kept = {
            key: text
            for key, text in origin.template.target.items()
            if key not in change.sets and key not in change.deletes
        }
        check_bridges(client, inherited & bridges_of(kept), node)
    images = check_images(client, wish, node)
    vmid = wish.vmid or lowest_free(wish.vmid_range, picture.taken)
    draft = Draft(wish, origin, node, vmid, Plan(), run, identity, picture.shared_storages, images)
    return replace(draft, plan=_plan(draft))


def _change(desired: Desired, origin: Origin) -> Change:
    if origin.template is None:
        return changes(desired, {}, new=True)
    template = origin.template
    copy = clone_of(template, vmid=template.vmid, node=template.node, data={"description": "", "name": desired.name})
    return changes(desired, copy.target)


def _place(client: Client, desired: Desired, origin: Origin, change: Change, picture: Picture) -> str:
    """Return the node the settings name, if it is up, or else the least used one that has what is needed."""
    memory = int(desired.parts.get("memory", {}).get("current") or 0) << 20
    needs = Needs(storages=change.drives.storages, only=origin.nodes, memory=memory)
    default = client.default_node
    if default and origin.nodes is None:
        require_node(picture, default)
        return default
    return choose_node(picture, needs).node


def _plan(draft: Draft) -> Plan:
    if draft.origin.template is None:
        return plan_create(
            draft.desired, vmid=draft.vmid, node=draft.node, identity=draft.identity, images=draft.images
        )
    return plan_clone(
        draft.desired,
        draft.origin.template,
        vmid=draft.vmid,
        node=draft.node,
        full=draft.origin.full,
        run=draft.run,
        shared=draft.shared,
    )


def create(client: Client, draft: Draft, *, timeout: int) -> tuple[Draft, list[str], list[str]]:
    """Make the VM and return the draft as it was carried out, what was done, and warnings.

    Where the number was ours to choose and somebody was faster, the next one is taken.
    """
    lost: set[int] = set()
    while True:
        try:
            done, warnings = _create_once(client, draft, timeout)
        except Conflict:
            if draft.desired.vmid is not None or len(lost) >= _NUMBERS:
                raise
            lost.add(draft.vmid)
            taken = {int(row["vmid"]) for row in client.get("cluster", "resources", type="vm")}
            vmid = lowest_free(draft.desired.vmid_range, taken | lost)
            draft = replace(draft, vmid=vmid)
            draft = replace(draft, plan=_plan(draft))
            continue
        return draft, done, warnings


def _create_once(client: Client, draft: Draft, timeout: int) -> tuple[list[str], list[str]]:
    wish = replace(draft.desired, vmid=draft.vmid, node=draft.node, reboot="never")
    first = draft.plan.steps[0]
    at = [str(first.data.get("target") or first.path[1])]

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
        # A clone inherits its template's password, and PVE does not show it: ours is written once, whatever is there.
        written = any("cipassword" in step.data for step in done)
        policy = "on_create" if written else "always"
        return plan_update(replace(wish, update_password=policy), actual, shared=draft.shared)

    return carry_out(
        client,
        draft.plan,
        replan=replan,
        timeout=timeout,
        happened=lambda: _is_ours(client, draft, at[0], timeout) or None,
    )


def _is_ours(client: Client, draft: Draft, node: str, timeout: int) -> bool:
    """Tell whether a create or clone whose answer was lost has made the VM, and wait until it is complete.

    While a clone runs its configuration says nothing but the lock; then it has our run in its notes, or a new VM the
    uuid we gave it. Raises Conflict where the number is somebody else's.
    """
    deadline = client.clock.monotonic() + timeout
    while True:
        try:
            config = client.get("nodes", node, "qemu", draft.vmid, "config")
        except NotFound:
            return False
        ours = split_notes(config.get("description"))[1].run == draft.run or f"uuid={draft.identity}" in str(
            config.get("smbios1", "")
        )
        lock = config.get("lock")
        if ours and not lock:
            return True
        if not ours and lock not in ("clone", "create"):
            raise Conflict(
                attempted=f"VM {draft.vmid} was left alone",
                answer="another VM has that number",
                next_step="Choose another vmid, or leave it out",
                reason="taken vmid",
            )
        if client.clock.monotonic() > deadline:
            raise TaskTimeout(
                attempted=f"VM {draft.vmid} is still being made",
                answer=f"its lock ({lock}) is held for more than {timeout} s",
                next_step="Look at the task list of the node, then run this again: it goes on from there",
                reason="lock",
            )
        client.clock.sleep(1.0)
