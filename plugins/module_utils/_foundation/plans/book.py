# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps the plan of a task in check mode, and holds a run to its approved plan.

Both see the same plans at the same place, right before the first write of a resource. A run plans
from a new reading, with the VMIDs and nodes of the approved plan, and a plan that is not the
approved one is refused: nothing is decided again. See docs/decisions/0033-a-plan-that-was-approved.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.access.privileges import Privileges
from ..api.interface import PlanBook
from ..api.request import Request
from ..core.errors import FleetError, NotApproved, PermissionDenied
from ..core.propstring import sub_keys
from ..core.texts.plan_lines import describe_difference
from ..resource.plan import Plan
from ..schema.values import SECRET_CHANGES, SECRET_IS_SET, is_same_option
from .document import Change, Document, Part, PlannedGuest, plain
from .requests import STAND_IN, PlannedRequest, Secrets, area_of, parents_of, planned_request
from .scope import find_lost, find_unreachable
from .show import label_of

if TYPE_CHECKING:
    from ..cluster.state import VmRow

_NEXT = "Plan again, and have the new plan approved"
_LISTED = 5
# The modules whose tasks declare the values of guests; others move guests, and take them back.
_DECLARES = ("vms", "container_image")


class Draft(PlanBook):
    """Keeps the plans of a task in check mode. Safe to use from several threads.

    `created` is when the plan is made, in seconds since the epoch.
    """

    is_used = True

    def __init__(self, secrets: Secrets, created: int) -> None:
        self._secrets = secrets
        self._created = created
        self._changes: dict[tuple[str, str, str], list[Change]] = {}

    def keep(self, plan: Plan, guest: PlannedGuest | None = None) -> None:
        """Keep the plan of one resource."""
        change = change_of(plan, guest, self._secrets)
        if not change.requests:
            return
        key = change.guest.key if change.guest is not None else ("~", "", "")
        known = self._changes.setdefault(key, [])
        if change not in known:
            known.append(change)

    def decided_at(self, now: float) -> float:
        """Return when the plan is made."""
        return self._created

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes by guest, then in the order of their plans."""
        return tuple(change for key in sorted(self._changes) for change in self._changes[key])


class Approved(PlanBook):
    """Holds a task to its part of the approved document: refuses every plan and every write that
    it does not have. `refused` are the refusals that check mode foresees.
    """

    is_used = True

    def __init__(self, part: Part, document: Document, secrets: Secrets) -> None:
        self._part = part
        self._created = document.created
        self.digest = document.digest
        self.login = part.login
        self._secrets = secrets
        self.refused: list[NotApproved] = []
        self._requests = [request for one in part.changes for request in one.requests]
        self._stand_ins = {one.path for one in self._requests if one.method == STAND_IN}
        self._new_paths = {one.created_path for one in self._requests}
        # Each write is looked up in these, and compared with the few requests that can be the same.
        self._by_area: dict[str, list[PlannedRequest]] = {}
        self._changes_by_path: dict[str, list[Change]] = {}
        for change in part.changes:
            for request in change.requests:
                self._by_area.setdefault(area_of(request.path), []).append(request)
                self._changes_by_path.setdefault(request.path, []).append(change)
        self._guests = {one.guest.key: one for one in part.changes if one.guest is not None}
        self._vmids = {one.guest.vmid: one for one in part.changes if one.guest is not None}
        self._labels = {one.label: one for one in part.changes if one.label}
        self._shown: set[int] = set()  # the guests that this run has found

    def note_found(self, vmid: int) -> None:
        """Note that the run has found a guest, so it is not lost."""
        self._shown.add(vmid)

    def place_of(self, kind: str, tenant: str, name: str) -> tuple[int, str] | None:
        """Return the VMID and the node of a guest in the approved plan, None if it has none."""
        change = self._guests.get((kind, tenant, name))
        if change is None or change.guest is None:
            return None
        self._shown.add(change.guest.vmid)
        return change.guest.vmid, change.guest.node

    def vmid_of_copy(self, hostname: str) -> int | None:
        """Return the VMID of a temporary container in the approved plan, None if it has none."""
        copies = (one.data for one in self._requests if one.data.get("hostname") == hostname)
        return next((int(data["newid"]) for data in copies if "newid" in data), None)

    def target_of(self, vmid: int) -> str | None:
        """Return the node to which the approved plan moves a guest, None if it does not."""
        change = self._vmids.get(vmid)
        if change is None or change.before.get("node") == change.after.get("node"):
            return None
        target = change.after.get("node")
        return str(target) if target else None

    def compared(self, text: str, vmid: int, key: tuple[str, str, str] = ("", "", "")) -> str:
        """Return why a guest has no plan, after the VMID and the node that were planned for it."""
        found = self._vmids.get(vmid) or self._guests.get(key)
        if found is None or found.guest is None:
            return text
        node = found.after.get("node") or found.guest.node
        planned = f"planned VMID {found.guest.vmid} on node {node}, now "
        return text if text.startswith(planned) else f"{planned}{text}"

    def decided_at(self, now: float) -> float:
        """Return when the plan was made."""
        return self._created

    def keep(self, plan: Plan, guest: PlannedGuest | None = None) -> None:
        """Note the refusal of a run that would carry out this plan."""
        try:
            self.agree(plan, guest)
        except NotApproved as error:
            self.refused.append(error)

    def agree(self, plan: Plan, guest: PlannedGuest | None = None) -> None:
        """Raise NotApproved unless the approved plan has these requests, and the resource has not
        changed since. An interrupted run has done the first requests of a plan.
        """
        now = change_of(plan, guest, self._secrets)
        if guest is not None and (now.requests or now.before):
            self._shown.add(guest.vmid)
        if guest is not None and not now.requests:
            self._require_reached(now)
        if all(self._is_known(request) for request in now.requests):
            return
        label = label_of(now)
        approved = self._approved(now)
        if approved is None:
            raise self._unplanned(now)
        differences = _guests_differ(approved.guest, guest)
        differences += _requests_differ(approved.requests, now.requests)
        differences += _values_differ(approved, now)
        if differences:
            raise _differs(label, differences, _summaries(approved), _summaries(now))

    def _unplanned(self, now: Change) -> NotApproved:
        """Return the refusal of a plan that the approved one does not have, or has for a guest with
        the same VMID, which has another name or tag now.
        """
        found = self._vmids.get(now.guest.vmid) if now.guest is not None else None
        if found is None or found.guest is None or now.guest is None:
            steps = _summaries(now)
            text = f"nothing was planned for it, now it needs: {', '.join(steps[:_LISTED])}"
            return _differs(label_of(now), [text], [], steps)
        planned, text = found.guest, f"it is {now.guest.kind} {label_of(now)}"
        answer = f"planned VMID {planned.vmid} as {planned.kind} {label_of(found)}, now {text}"
        return _differs(label_of(now), [answer], _summaries(found), _summaries(now))

    def _require_reached(self, now: Change) -> None:
        """Raise NotApproved if a run has nothing to do for a guest whose values are not as approved:
        its marker or its options in the estate have changed. `now` has its values.
        """
        approved = self._approved(now)
        if approved is None or not approved.before or self._part.task not in _DECLARES:
            return
        missing = {
            key: value
            for key, value in approved.after.items()
            if value != approved.before.get(key)
            and not _is_reached(key, value, now.before.get(key, value))
        }
        if missing:
            values = describe_difference({key: now.before[key] for key in missing}, missing)
            text = f"nothing is to do for it now, and it lacks {', '.join(values)}"
            raise _differs(label_of(now), [text], _summaries(approved), [])

    def lost(self, read: Callable[[], Mapping[int, VmRow]]) -> dict[str, NotApproved]:
        """Return the refusals of guests that this run has not found, and which are not there as
        approved, by label. `read` returns the listing; it is called if there are such guests.
        """
        vmids = self._vmids.keys() - self._shown
        rest = [one for vmid, one in self._vmids.items() if vmid in vmids]
        if self._part.task == "vms":  # which reports each guest that it creates
            rest = [one for one in rest if one.before]
        may_go = self._part.task != "relocate"  # which has found each guest that is complete
        found = find_lost(rest, read(), may_go=may_go) if rest else ()
        return {
            label_of(one): _differs(label_of(one), [text], _summaries(one), [])
            for one, text in found
        }

    def require_reachable(self, login: str, vmids: Collection[int], held: Privileges) -> None:
        """Raise PermissionDenied if this login, which did not make the plan, can neither see nor
        create some of its guests. `vmids` are the guests that it sees.
        """
        hidden = list(find_unreachable(self._vmids.values(), vmids, held))
        if not hidden:
            return
        names = ", ".join(map(label_of, hidden[:_LISTED]))
        more = f" and {len(hidden) - _LISTED} more" if len(hidden) > _LISTED else ""
        raise PermissionDenied(
            f"Nothing was done: {self.login} has made the plan, and {login} has no rights on "
            f"these guests of it: {names}{more}",
            "Apply it with a login that has them, or plan again with this login",
            "guests of others in the plan",
        )

    def _approved(self, now: Change) -> Change | None:
        if now.guest is not None:
            same = self._vmids.get(now.guest.vmid)  # names are not unique without a tenant
            if same is not None and same.guest is not None and same.guest.key == now.guest.key:
                return same
            return self._guests.get(now.guest.key)
        first = now.requests[0]
        same_path = [
            one
            for path in (first.path, first.path_on_any_node)
            for one in self._changes_by_path.get(path, ())
            if any(first.is_like(request) for request in one.requests)
        ]
        for one in same_path:
            if not _requests_differ(one.requests, now.requests):
                return one
        if now.label:
            return self._labels.get(now.label)
        return same_path[0] if same_path else None

    def _is_known(self, request: PlannedRequest) -> bool:
        """Return whether an approved step, which was compared as a whole, stands for a request."""
        return not self._stand_ins.isdisjoint(parents_of(request.path))

    def require(self, request: Request) -> None:
        """Raise NotApproved for a write that the approved plan does not have."""
        sent = planned_request(request.method, request.segments, request.values, self._secrets)
        # An interrupted run can leave an empty guest, which a run removes before it creates the guest
        # again. The plan of a removal, which is compared as a whole, needs the removal itself.
        takes_back = sent.method == "DELETE" and sent.path in self._new_paths
        if takes_back or self._is_known(sent):
            return
        areas = dict.fromkeys((area_of(sent.path), area_of(sent.path_on_any_node)))
        approved = [one for area in areas for one in self._by_area.get(area, ())]
        differences = _requests_differ(approved, [sent])
        if differences:
            raise _differs(f"{sent.method} {sent.path}", differences, [], [])


def change_of(plan: Plan, guest: PlannedGuest | None, secrets: Secrets) -> Change:
    """Return the plan of one resource in the form that is kept (pure)."""
    requests = tuple(
        planned_request(step.method, step.path, step.data, secrets, step.summary)
        for step in plan.steps
    )
    before = plain(plan.before)
    if guest is not None and plan.after and "vmid" not in plan.after:  # it exists already
        before = {**dict.fromkeys(plan.after), **before}  # a value that is not set is missing
    return Change(requests, before, plain(plan.after), guest, plan.label)


def _guests_differ(planned: PlannedGuest | None, now: PlannedGuest | None) -> list[str]:
    """Return the difference of two guests with one name and VMID, if it is known. A run that was
    interrupted has written a part of their identity, so only the words of both are compared.
    """
    if planned is None or now is None:
        return []
    was, found = (sub_keys(",".join(guest.identity.split())) for guest in (planned, now))
    differing = sorted(key for key in was.keys() & found.keys() if was[key] != found[key])
    if not differing:
        return []
    texts = [" ".join(f"{key}={one[key]}" for key in differing) for one in (was, found)]
    return [f"planned for the guest with {texts[0]}, now there is one with {texts[1]}"]


def _requests_differ(
    approved: Sequence[PlannedRequest], now: Sequence[PlannedRequest]
) -> list[str]:
    """Return the differences, empty if the approved requests have the same effect."""
    found: list[str] = []
    unplanned: list[str] = []
    for request in now:
        if request.is_among(approved):
            continue
        name = request.summary or f"{request.method} {request.path}"
        alike = [one for one in approved if request.is_like(one)]
        if not alike:
            unplanned.append(name)
            continue
        alike = [one for one in alike if one.path == request.path] or alike
        given = {key: value for one in alike for key, value in one.data.items()}
        if request.method == "PUT":  # which can have a part of the values
            given = {key: given[key] for key in request.data if key in given}
        values = ", ".join(describe_difference(given, request.data))
        found.append(f"{name}: planned and now differ in {values}")
    return [*_unplanned_steps(approved, unplanned), *found]


def _unplanned_steps(approved: Sequence[PlannedRequest], names: Sequence[str]) -> list[str]:
    """Return the text about steps that were not planned, with the first ones that were."""
    if not names:
        return []
    planned = [one.summary for one in approved if one.summary and one.summary not in names]
    text = f"not planned: {', '.join(names)}"
    return [f"{text} (planned: {', '.join(planned[:_LISTED])})" if planned else text]


def _values_differ(approved: Change, now: Change) -> list[str]:
    """Return the values of the plan that have changed since it was made."""
    found: list[str] = []
    is_removed = not now.after
    for key, value in now.before.items():
        if value == now.after.get(key):
            continue
        if key not in approved.before:
            if is_removed:  # such as a disk, whose data would go too
                added = ", ".join(describe_difference({}, {key: value}))
                found.append(f"changed since it was planned: {added}")
            continue
        was = approved.before[key]
        if now.after.get(key) == was:  # the way back, whose requests are in the plan
            continue
        if is_removed and (_is_rest(was, value) or (key, value) == ("status", "stopped")):
            continue  # the first steps of an interrupted removal
        if value != was and not _is_reached(key, approved.after.get(key), value):
            texts = describe_difference({key: was}, {key: value})
            found += [f"changed since it was planned: {text}" for text in texts]
    return found


def _is_reached(key: str, planned: Any, now: Any) -> bool:
    """Return whether a value is as planned, by its meaning. PVE adds parts, such as the MAC address
    of a NIC, and shows of a secret only that it is set.
    """
    if planned == SECRET_CHANGES:
        return bool(now == SECRET_IS_SET)
    if isinstance(planned, Mapping) and isinstance(now, Mapping):
        return all(_is_reached(name, value, now.get(name)) for name, value in planned.items())
    if isinstance(planned, (str, int)) and isinstance(now, (str, int)):
        return is_same_option(key, str(planned), str(now))
    return bool(planned == now)


def _is_rest(was: Any, value: Any) -> bool:
    """Return whether a list has lost members, which the same plan removes before."""
    return isinstance(was, list) and isinstance(value, list) and all(one in was for one in value)


def _summaries(change: Change) -> list[str]:
    return [one.summary for one in change.requests]


def _differs(
    label: str, differences: Sequence[str], planned: Sequence[str], now: Sequence[str]
) -> NotApproved:
    details: Mapping[str, Any] = {"planned": list(planned), "now": list(now)}
    return NotApproved(
        f"The plan of {label} is not the approved one: {'; '.join(differences)}",
        _NEXT,
        "not the approved plan",
        details=details,
    )


def all_refusals(refused: Sequence[NotApproved]) -> FleetError:
    """Return one error with the differences of all plans that are not approved."""
    if len(refused) == 1:
        return refused[0]
    answers = "; ".join(f"{one.attempted}: {one.answer}" for one in refused)
    return NotApproved(
        f"{len(refused)} plans are not the approved ones: {answers}",
        _NEXT,
        "not the approved plan",
        details={
            key: [text for one in refused for text in one.details[key]]
            for key in ("planned", "now")
        },
    )
