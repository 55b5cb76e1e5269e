# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The categories of failure, and the common form in which every entry reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from typing import Any

from .formatting import as_sentence, printable


@dataclass(eq=False, repr=False)
class FleetError(Exception):
    """A failure that a person can act on: the attempted action, the answer, and the next step.

    A refusal is `Conflict("attempted: answer", "next step", "reason")`: the text as people read it.
    `status`, `method` and `path` belong to the request, `upid` is the task. By default the category
    decides about `retryable`. `dispatched` is whether the request of a NetworkError reached Proxmox
    VE: True, False, or None if unknown. `log` is the end of the task's log. `parameters` contains
    the cause of each refused parameter. `details` contains figures or lists that explain the
    failure; they appear under `error` in the result. `report` has the lines to print, such as one
    for each refused guest.
    """

    category = "InternalError"
    retryable_by_default = False

    refusal: InitVar[str] = ""
    next_step: str = ""
    reason: str = ""
    keywords: KW_ONLY
    attempted: str = ""
    answer: str = ""
    status: int | None = None
    method: str = ""
    path: str = ""
    upid: str = ""
    retryable: bool | None = None
    tries: int | None = None
    dispatched: bool | None = None
    log: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    report: tuple[str, ...] = ()

    def __post_init__(self, refusal: str) -> None:
        if refusal:
            self.attempted, _colon, self.answer = refusal.partition(": ")
        if self.retryable is None:
            self.retryable = self.retryable_by_default
        self.log = tuple(self.log)
        self.parameters = dict(self.parameters)
        self.details = dict(self.details)
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The text for people, as one line: `attempted: answer. next_step.`"""
        sentences = [part + ". " for part in (self.cause, _bare(self.next_step)) if part]
        # A question keeps its own mark.
        return "".join(sentences).replace("?. ", "? ").rstrip() or f"{self.category}."

    @property
    def cause(self) -> str:
        """The message without its next step: `attempted: answer`."""
        parts = (_bare(self.attempted), _bare(self.answer or self.reason))
        return as_sentence(": ".join(filter(None, parts)))

    @property
    def came_after_changes(self) -> bool:
        """Whether something was or may have been changed: a step in C(done) or C(unverified), or
        one of several VMs.
        """
        if self.details.get("done") or self.details.get("unverified"):
            return True
        vms = self.details.get("vms") or ()
        return any(isinstance(vm, Mapping) and vm.get("changed") for vm in vms)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._fields())

    def on(self, **more: Any) -> FleetError:
        """Return a copy with more fields, for example `error.on(attempted="Could not start VM
        'web1'")`.
        """
        return type(self)(**{**self._fields(), **more})

    def as_result(self) -> dict[str, Any]:
        """Return `msg` and `error` as a failed task reports them."""
        error: dict[str, Any] = {
            "category": self.category,
            "reason": self.reason or _bare(self.answer),
            "status": self.status,
            "path": self.path or None,
            "upid": self.upid or None,
            "retryable": self.retryable,
            "tries": self.tries,
        }
        if self.method:
            error["method"] = self.method
        if self.log:
            error["log"] = list(self.log)
        if self.parameters:
            error["parameters"] = dict(self.parameters)
        for key, value in self.details.items():
            error.setdefault(key, value)
        report = {"report": list(self.report)} if self.report else {}
        return {"msg": self.message, "error": error, **report}

    def _fields(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


class ValidationFailed(FleetError):
    """The input was refused, by us before any request or by PVE's parameter check."""

    category = "ValidationFailed"


class ConfigurationError(FleetError):
    """The endpoint, the site, the credentials, or a named storage, bridge, template, pool or node
    is wrong.
    """

    category = "ConfigurationError"


class AuthenticationError(FleetError):
    """PVE does not accept the credentials (401)."""

    category = "AuthenticationError"


class PermissionDenied(FleetError):
    """The caller lacks a privilege (403), or only root may do this."""

    category = "PermissionDenied"


class NotFound(FleetError):
    """A VM, snapshot, volume or other object does not exist."""

    category = "NotFound"


class Conflict(FleetError):
    """The state of the object does not allow the action: a taken VMID, a changed digest, another
    tenant, protection.
    """

    category = "Conflict"


class NotApproved(FleetError):
    """The plan of a run is not the approved one.

    No Conflict: other runs did not cause it, so no step is planned again because of it.
    """

    category = "Conflict"


class QuotaExceeded(FleetError):
    """A tenant's quota is used up, or a storage or a node has no room left."""

    category = "QuotaExceeded"


class NodeUnhealthy(FleetError):
    """No node fits, a node is offline, or the cluster has no quorum."""

    category = "NodeUnhealthy"


class NotSupported(FleetError):
    """This version of PVE, this storage or this guest does not support the action."""

    category = "NotSupported"


class Locked(FleetError):
    """PVE refused because of a lock and did nothing; retried within the lock budget."""

    category = "Locked"
    retryable_by_default = True


class NetworkError(FleetError):
    """The request or its answer was lost, or a node or proxy on the way does not answer."""

    category = "NetworkError"
    retryable_by_default = True


class TaskFailed(FleetError):
    """A PVE task ended with an error; `log` contains its last lines."""

    category = "TaskFailed"


class TaskTimeout(FleetError):
    """A PVE task still ran when the wait ended; `upid` names it."""

    category = "TaskTimeout"


class ApiError(FleetError):
    """PVE answered with an error whose text is unknown to this collection."""

    category = "ApiError"


# Failures that code distinguishes. A result shows the category of the parent class. `reason` is for
# people: no code compares it.


class BeingRestored(Locked):
    """A restore writes the VM, which has neither name nor tags until it ends."""


class NotReached(NetworkError):
    """No connection to the server was made, so another server of its cluster may answer."""


class RestoreFailed(Conflict):
    """A failed restore has left the task's VM without name and disks."""


class VmidTaken(Conflict):
    """Another VM or container has the VMID."""


class AlreadyExists(Conflict):
    """The object of a creation exists already: a snapshot, a volume, a pool."""


class DigestChanged(Conflict):
    """The configuration has changed since the request was prepared."""


class Overtaken(Conflict):
    """Another run has applied a change since the plan was made."""


class OsdUnplaced(Conflict):
    """An OSD on a disk is not in the CRUSH map of Ceph yet."""


class PendingChanges(Conflict):
    """The configuration has changes that another run or user has not applied."""


class HotplugRefused(Conflict):
    """The running guest did not accept the change; PVE applies it at the next stop."""


class AlreadyRunning(Conflict):
    """A start failed because the VM runs already."""


class NotRunning(Conflict):
    """A step failed because the guest does not run."""


class AlreadyTemplate(Conflict):
    """A conversion failed because the VM is a template already."""


class AlreadyGrown(Conflict):
    """A disk could not grow because it has that size already."""


class AlreadyMoved(Conflict):
    """A move failed because the disk is on that storage already."""


class ForeignTenant(Conflict):
    """The VM belongs to another tenant: messages may only use the name in the task."""


class PlaceTaken(Conflict):
    """Another run took the place of a new VM, which was removed again."""


class PowerChanged(Conflict):
    """Another run has started or stopped the VM since it was read."""


class StrayGuests(Conflict):
    """A tenant has guests that are missing from the plan of its removal."""


class UnknownVm(NotFound):
    """The VM does not exist, or is not on the node that was asked."""


class UnknownTask(NotFound):
    """The node does not know the task: its record is gone, or belongs to another node."""


class UnknownSnapshot(NotFound):
    """The VM has no such snapshot."""


class NodeUnreachable(NetworkError):
    """The node that was asked cannot reach the node to which it forwards the request."""


class DownloadFailed(TaskFailed):
    """The node could not download the file."""


class GuestNotReady(TaskTimeout):
    """When the wait ended, the guest had no address, or its agent had not answered."""


def category_class(error: FleetError) -> type[FleetError]:
    """Return the class of the category of an error, such as Conflict."""
    classes = (one for one in type(error).__mro__ if "category" in vars(one))
    return next(classes)


def _bare(text: str) -> str:
    """Return the text as one printable line without a full stop at its end, to be joined with
    others.
    """
    return printable(" ".join(text.split())).rstrip(".")


def _rebuild(cls: type[FleetError], fields: dict[str, Any]) -> FleetError:
    return cls(**fields)


CONVERGES = "Run this again: it reads the state and does what is left"
"""The next step if a read failed after a write."""


def with_done(error: FleetError, done: Sequence[str], next_step: str = CONVERGES) -> FleetError:
    """Return the error with the steps that were done before it, in `error.done`.

    If a read failed, the message explains that the changes were made: only the result is missing.
    """
    if not done:
        return error
    own = error.details.get("done", ())
    # A step whose effect another run undid was repeated.
    details = {**error.details, "done": list(dict.fromkeys((*done, *own)))}
    if error.method != "GET" or own or "unverified" in details:
        return error.on(details=details)
    began = "The changes in error.done were made, and only the read after them failed"
    return _of_read(error, began, next_step).on(details=details)


def with_unverified(error: FleetError, step: str) -> FleetError:
    """Return the error with a step whose outcome is unknown, in `error.unverified`."""
    details = {**error.details, "unverified": [step]}
    if error.method != "GET" or error.upid:
        return error.on(details=details)
    began = f"It is not known whether this was done, because the read after it failed: {step}"
    return _of_read(error, began, CONVERGES).on(details=details)


def _of_read(error: FleetError, began: str, next_step: str) -> FleetError:
    steps = (_bare(error.next_step), next_step)
    return error.on(
        attempted=began,
        answer=error.cause,
        next_step=". ".join(filter(None, steps)),
        reason=error.reason or _bare(error.answer),
    )
