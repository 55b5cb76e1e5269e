# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of a client that the engine needs, with the place at which a run shows each plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..core.errors import FleetError, NotApproved, ValidationFailed
from .protocols import Reader
from .request import Request

if TYPE_CHECKING:
    from .upid import TaskResult


class PlanBook:
    """Keeps the plans of a task for their approval, or holds the task to an approved plan. This one
    keeps nothing, and accepts everything.
    """

    digest = ""
    """The digest of an approved plan, empty without one."""
    is_used = False
    """Whether the task has a plan to keep or to apply."""

    def keep(self, plan: Any, guest: Any = None) -> None:
        """Keep the plan of one resource that a run would carry out."""

    def agree(self, plan: Any, guest: Any = None) -> None:
        """Raise NotApproved if the plan of one resource, right before its first write, is not the
        approved one.
        """

    def require(self, request: Request) -> None:
        """Raise NotApproved for a write that an approved plan does not have."""

    def note_found(self, vmid: int) -> None:
        """Note that the run has found a guest of an approved plan."""

    def place_of(self, kind: str, tenant: str, name: str) -> tuple[int, str] | None:
        """Return the VMID and the node of a new guest in an approved plan, None without one."""
        return None

    def vmid_of_copy(self, hostname: str) -> int | None:
        """Return the VMID of a temporary container in an approved plan, None without one."""
        return None

    def target_of(self, vmid: int) -> str | None:
        """Return the node to which an approved plan moves a guest, None if it does not."""
        return None

    def compared(self, text: str, vmid: int, key: tuple[str, str, str] = ("", "", "")) -> str:
        """Return why a guest has no plan, after its values in an approved plan. Without such a plan,
        return the text. `key` has the kind, the tag of the tenant and the name.
        """
        return text

    def explain(
        self, error: FleetError, vmid: int, key: tuple[str, str, str] = ("", "", "")
    ) -> FleetError:
        """Return the refusal of a guest with its values in an approved plan; the error of a
        failed request is returned unchanged.
        """
        if isinstance(error, NotApproved) or error.method or error.retryable:
            return error
        answer = self.compared(error.answer or error.reason, vmid, key)
        return error if answer in (error.answer, error.reason) else error.on(answer=answer)

    def decided_at(self, now: float) -> float:
        """Return the time of the decisions, in seconds since the epoch: with an approved plan, the
        time at which it was made.
        """
        return now


def require_no_approval(book: PlanBook, subject: str, reason: str) -> None:
    """Raise ValidationFailed if a plan is to be kept or applied for a subject that has no plan of
    requests.
    """
    if not book.is_used:
        return
    raise ValidationFailed(
        f"Nothing was done: plan_file and apply_plan are not possible for {subject}: {reason}",
        "Leave them out",
        "plan options",
    )


class Api(Reader, Protocol):
    """Reads and writes under the rules for writes; `Client` does."""

    @property
    def login(self) -> str:
        """The user, or the full name of the token, of the task."""

    @property
    def plan_book(self) -> PlanBook:
        """The keeper of plans."""

    def get(
        self,
        *segments: str | int,
        params: Mapping[str, Any] | None = None,
        tries: int | None = None,
        attempted: str = "",
        **query: Any,
    ) -> Any:
        """Return the answer to a GET of the path with these segments. Raises FleetError."""

    def write(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        confirm: Callable[[], Any] | None = None,
        again: Callable[[], None] | None = None,
    ) -> Any:
        """Return the answer to a write; `confirm` checks the state after a lost answer, and `again`
        may raise before the write is sent once more. Raises FleetError.
        """

    def task(
        self,
        method: str,
        *segments: str | int,
        data: Mapping[str, Any] | None = None,
        attempted: str = "",
        timeout: float = 300.0,
        confirm: Callable[[], Any] | None = None,
    ) -> TaskResult:
        """Start a task with a write, and return its result. Raises FleetError."""

    def note(self, summary: str) -> None:
        """Record a step that was carried out."""

    def privileges(self) -> Mapping[str, Any]:
        """Return the privileges of the login by path; read once in a task."""

    def version(self) -> tuple[int, int]:
        """Return major and minor number of Proxmox VE; read once."""

    def release(self) -> tuple[int, ...]:
        """Return all numbers of the version of Proxmox VE; read once."""
