# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan files of a task: check mode writes one, and a run is held to one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..api.access.privileges import Privileges
from ..api.client import Client
from ..api.settings import ConnectionSettings
from ..cluster.state import VmRow, fetch_cluster_state
from ..cluster.tenant import PREFIX
from ..core.errors import ConfigurationError, FleetError, NotApproved, ValidationFailed
from ..core.files import directory_lock, read_regular, replace_file
from ..core.result import Result
from ..core.texts.plan_lines import FAILED, PlanLine, change_lines, with_lines
from ..core.times import iso
from .book import Approved, Draft, all_refusals
from .document import FORMAT, Document, Part, read_document, refused, require_in_force
from .requests import Secrets
from .scope import require_no_repetition, require_same_choices
from .signature import require_signed, sign

_DAY = 24 * 3600
# The modules whose failure in check mode does not have the differences that the plan book has noted.
_NOTES = ("failover", "relocate")
_MAX_BYTES = 64 << 20


@dataclass
class TaskPlans:
    """The plan file that a task writes or applies; without one, its clients do not change."""

    task: str
    secret_values: Collection[str] = ()
    plan_file: str = ""
    apply_plan: str = ""
    document: Document | None = None
    check_mode: bool = False
    key: str = field(default="", repr=False)
    commit: str = ""
    signing_key: str = ""
    run: str = ""
    subject: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    drafts: dict[ConnectionSettings, Draft] = field(default_factory=dict)
    approved: list[tuple[Client, Approved]] = field(default_factory=list)

    def bound(self, client: Client) -> Client:
        """Return the client of a site, whose plans are kept or which is held to the plan."""
        connection = client.connection
        if self.document is None:
            return client
        secrets = self._secrets(connection, self.document.salt)
        if self.plan_file:
            self.drafts[connection] = Draft(secrets, self.document.created)
            return client.with_plan_book(self.drafts[connection])
        part = self._part(connection, self.document)
        book = Approved(part, self.document, secrets)
        self.approved.append((client, book))
        return client.with_plan_book(book)

    def require_reachable(self) -> None:
        """Raise PermissionDenied, before the first write, if another login has made the plan, and the
        login of the task has no rights on some of its guests.
        """
        for client, book in self.approved:
            if book.login != client.login:
                held = Privileges(client.privileges())
                book.require_reachable(client.login, _guests_at(client), held)

    def concluded(self, result: Result) -> Result:
        """Return the result, which fails if a guest of the plan is not there any more, and in check
        mode if a run of the approved plan would fail.
        """
        if not self.approved:
            return result
        foreseen = [error for _client, book in self.approved for error in book.refused]
        lost: dict[str, NotApproved] = {}
        # Module relocate notes its guests at the first site, the source of their moves.
        books = self.approved[:1] if self.task == "relocate" else self.approved
        if not (self.subject and self.task == "vms"):  # which applies such a plan guest by guest
            for client, book in books:
                lost |= book.lost(partial(_guests_at, client))
        report = result.values.get("report") or ()
        if lost and report:
            rows = [PlanLine(FAILED, key, f"not changed: {one.cause}") for key, one in lost.items()]
            values = {**result.values, "report": with_lines(report, change_lines(rows))}
            result = replace(result, values=values)
        is_noted = result.failure is None or self.task in _NOTES
        refused = [*(foreseen if self.check_mode and is_noted else ()), *lost.values()]
        if not refused:
            return result
        failure = all_refusals(refused)
        if result.failure is not None:
            answer = "; ".join(filter(None, (result.failure.answer, failure.cause)))
            failure = result.failure.on(answer=answer)
        return replace(result, failure=failure)

    def guests(self) -> list[dict[str, Any]]:
        """Return the guests that the plan to apply has for the sites of the task, of all tasks,
        with PVE's words for their kinds.
        """
        sites = {site_of(client.connection) for client, _book in self.approved}
        parts = self.document.parts if self.document is not None else ()
        changes = [one for part in parts if part.site in sites for one in part.changes]
        return [
            {
                "kind": one.guest.kind,
                "tenant": one.guest.tenant.removeprefix(self._prefix),
                "name": one.guest.name,
                "vmid": one.guest.vmid,
                "image": one.after.get("image"),
            }
            for one in changes
            if one.guest is not None
        ]

    @property
    def _prefix(self) -> str:
        return str(self.arguments.get("tenant_prefix") or PREFIX)

    def require_sites(self, connections: Collection[ConnectionSettings]) -> None:
        """Raise ValidationFailed if the plan to apply has no part for a site of the task, or was made
        for other guests.
        """
        if self.document is not None and not self.plan_file:
            for connection in connections:
                part = self._part(connection, self.document)
                require_same_choices(part, self.arguments, self.apply_plan)

    def _part(self, connection: ConnectionSettings, document: Document) -> Part:
        wanted = Part(self.task, site_of(connection), "", subject=self.subject)
        for part in document.parts:
            if part.key == wanted.key:
                return part
        known = ", ".join(sorted(one.title for one in document.parts))
        answer = f"it is for {known or 'nothing'}, and this task is {wanted.title}"
        error = refused(
            self.apply_plan, answer, "Apply it with the playbook and the site of its plan"
        )
        raise error.on(reason="no plan for this task")

    def _secrets(self, connection: ConnectionSettings, salt: str) -> Secrets:
        own = self.key or connection.token_secret or connection.password
        key = hashlib.sha256(f"{salt}:{own}".encode()).digest()
        return Secrets(key, [*self.secret_values, *connection.secrets])

    def write(self, lines: Collection[str]) -> Document | None:
        """Write the plans of the task, with its lines, and return the document; None without
        O(plan_file). Raises ConfigurationError.
        """
        if not self.plan_file or self.document is None:
            return None
        try:
            with directory_lock(self.plan_file):
                document = self._known() or self.document
                for connection, draft in self.drafts.items():
                    part = Part(
                        self.task,
                        site_of(connection),
                        connection.login,
                        draft.changes,
                        tuple(lines),
                        self._secrets(connection, document.salt).hide_all(self.arguments),
                        self.subject,
                    )
                    document = document.with_part(part, self.plan_file)
                if self.signing_key:
                    signature = sign(document.digest, self.signing_key)
                    document = replace(document, signature=signature)
                replace_file(self.plan_file, document.render(), 0o600)
        except OSError as error:
            raise _not_written(self.plan_file, error) from error
        return document

    def _known(self) -> Document | None:
        """Return the document that another task of this run has written, whose salt the hashes have.

        Raises ValidationFailed for a file that is not a plan: it is not replaced.
        """
        text = _text_of(self.plan_file)
        if not text:
            return None
        try:
            document = read_document(text, self.plan_file)
        except ValidationFailed as error:
            if FORMAT not in text:
                next_step = "Name another file, or remove this one"
                raise error.on(
                    attempted=f"{self.plan_file} is kept", next_step=next_step
                ) from error
            return None
        return document if self.run and document.run == self.run else None


def read_task_plans(
    task: str,
    arguments: Mapping[str, Any],
    secret_values: Collection[str],
    now: float,
    *,
    check_mode: bool,
) -> TaskPlans:
    """Return the plan files of a task, before its first request.

    Raises ValidationFailed for options that contradict each other or the mode, and for a plan that
    is not in force.
    """
    plan_file, apply_plan = (str(arguments.get(name) or "") for name in ("plan_file", "apply_plan"))
    plans = TaskPlans(task, secret_values, plan_file, apply_plan, check_mode=check_mode)
    plans.key = str(arguments.get("plan_key") or "")
    plans.commit = str(arguments.get("plan_commit") or "")
    plans.run = str(arguments.get("plan_run") or "")
    plans.signing_key = str(arguments.get("plan_signing_key") or "")
    trusted_key = str(arguments.get("plan_trusted_key") or "")
    if plan_file and apply_plan:
        raise _mistake("plan_file and apply_plan exclude each other", "Give one of them")
    if apply_plan:
        text = _text_of(apply_plan)
        if not text:
            raise refused(
                apply_plan, "there is no such file", "Make it with plan_file in check mode"
            )
        plans.document = read_document(text, apply_plan)
        if trusted_key:
            document = plans.document
            require_signed(document.digest, document.signature, trusted_key, apply_plan)
        require_in_force(plans.document, apply_plan, now)
        return plans
    if not check_mode:
        raise _mistake("plan_file is for check mode", "Run with --check, or leave out plan_file")
    require_no_repetition(arguments)
    days = int(arguments.get("plan_days") or 0)
    if not 1 <= days <= 365:
        raise _mistake(f"plan_days was refused: {days} is not between 1 and 365", "Write days")
    known = plans._known()
    if known is None:  # a plan that fails must not leave the file of an earlier one
        _remove(plan_file)
    plans.document = known or Document(
        created=int(now),
        expires=int(now) + days * _DAY,
        salt=os.urandom(16).hex(),
        commit=plans.commit,
        run=plans.run,
    )
    return plans


def _remove(path: str) -> None:
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error


def _guests_at(client: Client) -> Mapping[int, VmRow]:
    return fetch_cluster_state(client.direct()).vms


def site_of(connection: ConnectionSettings) -> str:
    """Return the site of a plan: its name, or host and port of the endpoint."""
    return connection.site or str(connection.endpoint)


def line_of(document: Document, place: str) -> str:
    """Return the line about a plan that was written."""
    return f"  plan file {place}: {document.digest[:19]}, until {iso(document.expires)}"


def _text_of(path: str) -> str:
    """Return the text of a file, empty if there is none. Raises ConfigurationError."""
    try:
        content = read_regular(path, _MAX_BYTES)
        return content.data.decode() if content is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The plan {path} was not read: {str(getattr(error, 'strerror', '') or error)}",
            "Name a file that plan_file has made",
            "plan file",
        ) from error


def _not_written(path: str, error: OSError) -> FleetError:
    return ConfigurationError(
        f"The plan {path} was not written: {error.strerror or error}",
        "Name a file in a directory that exists and that this user can write to",
        "plan file",
    )


def _mistake(answer: str, next_step: str) -> FleetError:
    return ValidationFailed(f"Nothing was done: {answer}", next_step, "plan options")
