# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The categories of failure, and the one shape in which every entry reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class FleetError(Exception):
    """A failure that a person can act on: what was attempted, what the answer was, and the next
    step.

    `dispatched` says whether a request reached Proxmox VE: False certainly not, True certainly,
    None unknown. `details` carries figures or lists that explain the failure; they appear under
    `error` in the result.
    """

    category = "InternalError"
    retryable_by_default = False

    def __init__(
        self,
        *,
        attempted: str = "",
        answer: str = "",
        next_step: str = "",
        reason: str = "",
        status: int | None = None,
        method: str = "",
        path: str = "",
        upid: str = "",
        retryable: bool | None = None,
        tries: int | None = None,
        dispatched: bool | None = None,
        log: tuple[str, ...] = (),
        parameters: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.attempted = attempted
        self.answer = answer
        self.next_step = next_step
        self.reason = reason
        self.status = status
        self.method = method
        self.path = path
        self.upid = upid
        self.retryable = self.retryable_by_default if retryable is None else retryable
        self.tries = tries
        self.dispatched = dispatched
        self.log = tuple(log)
        self.parameters = dict(parameters or {})
        self.details = dict(details or {})
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The text for people, as one line: `attempted: answer. next_step.`"""
        said = ": ".join(
            part for part in (_bare(self.attempted), _bare(self.answer or self.reason)) if part
        )
        sentences = [part + ". " for part in (said, _bare(self.next_step)) if part]
        # A question keeps its own mark.
        return "".join(sentences).replace("?. ", "? ").rstrip() or f"{self.category}."

    @property
    def came_after_changes(self) -> bool:
        """Whether something was done before the failure: C(done) of one VM, or a VM of several that
        changed.
        """
        if self.details.get("done"):
            return True
        vms = self.details.get("vms") or ()
        return any(isinstance(vm, Mapping) and vm.get("changed") for vm in vms)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._fields())

    def on(self, **more: Any) -> FleetError:
        """Return a copy that knows more, for example `error.on(attempted="Could not start VM
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
        return {"msg": self.message, "error": error}

    def _fields(self) -> dict[str, Any]:
        return {
            "attempted": self.attempted,
            "answer": self.answer,
            "next_step": self.next_step,
            "reason": self.reason,
            "status": self.status,
            "method": self.method,
            "path": self.path,
            "upid": self.upid,
            "retryable": self.retryable,
            "tries": self.tries,
            "dispatched": self.dispatched,
            "log": self.log,
            "parameters": self.parameters,
            "details": self.details,
        }


class ValidationFailed(FleetError):
    """The input is refused, by us before any request or by PVE's parameter check."""

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
    """The state of the object does not allow it: a taken VMID, a changed digest, another tenant,
    protection.
    """

    category = "Conflict"


class QuotaExceeded(FleetError):
    """A tenant's quota, a storage or a node has no room left."""

    category = "QuotaExceeded"


class NodeUnhealthy(FleetError):
    """No node fits, a node is offline, or the cluster has no quorum."""

    category = "NodeUnhealthy"


class NotSupported(FleetError):
    """This version of PVE, this storage or this guest cannot do it."""

    category = "NotSupported"


class Locked(FleetError):
    """PVE refused because of a lock and did nothing; worth another try within the lock budget."""

    category = "Locked"
    retryable_by_default = True


class NetworkError(FleetError):
    """The request or its answer was lost, or a node or proxy on the way does not answer."""

    category = "NetworkError"
    retryable_by_default = True


class TaskFailed(FleetError):
    """A PVE task ended with an error; `log` holds its last lines."""

    category = "TaskFailed"


class TaskTimeout(FleetError):
    """A PVE task still ran when the wait ended; `upid` names it."""

    category = "TaskTimeout"


class ApiError(FleetError):
    """PVE answered with an error whose text is not known."""

    category = "ApiError"


# What the code itself acts upon. A result shows the category of the parent, and `reason` is for
# people: no code compares it.


class VmidTaken(Conflict):
    """Another VM or container has the number."""


class AlreadyExists(Conflict):
    """What was to be created exists: a snapshot, a volume, a pool."""


class DigestChanged(Conflict):
    """The configuration is another one than the one that the request was made for."""


class HotplugRefused(Conflict):
    """The guest did not take the change while it runs; PVE keeps it for the next stop."""


class AlreadyRunning(Conflict):
    """The VM that was to be started runs."""


class AlreadyTemplate(Conflict):
    """The VM that was to be converted is a template."""


class ForeignTenant(Conflict):
    """The VM is not the tenant's: it may be shown only as the task itself names it."""


class PlaceTaken(Conflict):
    """Another run took the place of a new VM, which was removed again."""


class UnknownVm(NotFound):
    """There is no such VM, or it is not on the node that was asked."""


class UnknownTask(NotFound):
    """The node does not know the task: its record is gone, or belongs to another node."""


class UnknownSnapshot(NotFound):
    """The VM has no such snapshot."""


class NodeUnreachable(NetworkError):
    """The node that was asked passes the request on to a node that it does not reach."""


class DownloadFailed(TaskFailed):
    """The node could not download the file."""


class GuestNotReady(TaskTimeout):
    """The guest had no address, or its agent no answer, when the wait ended."""


def category_class(error: FleetError) -> type[FleetError]:
    """Return the class that stands for the category of an error, such as Conflict."""
    classes = (one for one in type(error).__mro__ if "category" in vars(one))
    return next(classes)


def _bare(text: str) -> str:
    """Return the text as one line without a closing full stop, ready to be joined."""
    return " ".join(text.split()).rstrip(".")


def _rebuild(cls: type[FleetError], fields: dict[str, Any]) -> FleetError:
    return cls(**fields)


def failure_of_several(errors: Sequence[FleetError], answer: str, number: int) -> FleetError:
    """Return one error for all VMs that failed of `number`; `answer` has their messages.

    Category and reason are those of the errors where they agree. The details of a request are kept
    where only one VM failed.
    """
    first = errors[0]
    categories = {category_class(error) for error in errors}
    reasons = {error.reason for error in errors}
    category = categories.pop() if len(categories) == 1 else TaskFailed
    failure = category(
        attempted=f"{len(errors)} of {number} VMs failed",
        answer=answer,
        next_step="Repair these and run again: what is done stays done",
        reason=reasons.pop() if len(reasons) == 1 else "some VMs failed",
        retryable=any(error.retryable for error in errors),
    )
    if len(errors) > 1:
        return failure
    return failure.on(status=first.status, path=first.path, upid=first.upid, log=first.log)
