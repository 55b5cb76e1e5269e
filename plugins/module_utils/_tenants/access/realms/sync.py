# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module realm_sync (pve-access-control: API2/Domains.pm, sync).

PVE writes "updating" for each user even without a difference. So users, groups and grants are
compared before and after. In check mode its dry run lists the additions and removals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.api.tasks import task_log
from ...._foundation.core import validate
from ...._foundation.core.errors import (
    AuthenticationError,
    FleetError,
    PermissionDenied,
    TaskFailed,
)
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import (
    Execution,
    FailureVerdict,
    Resource,
    apply_plan,
    attempted,
    diff_of,
)
from ...._foundation.resource.own_loss import LOGIN, NOT_ACCEPTED, RIGHTS, OwnLoss, require_allowed
from ...._foundation.resource.plan import Plan, Step
from ..own_loss import TaskLogin
from .realm import kinds_of_realms, require_directory

_LINE = re.compile(r"(adding|overwriting|updating|remove) (user|group) '(.+)'")
_PURGE = re.compile(r"purge (user|group)s '(.+)' ACL entries")
_BEGIN = re.compile(r"\(dry test run\) starting sync ")
Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class RealmAccounts:
    """The accounts of one realm: users and groups by name, and their grants.

    `grants` are the subjects of access control entries, by the text of the entry in messages.
    """

    users: Rows = field(default_factory=dict)
    groups: Rows = field(default_factory=dict)
    grants: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, list[str]]:
        """Return the names, for a diff."""
        return {
            "users": sorted(self.users),
            "groups": sorted(self.groups),
            "grants": sorted(self.grants),
        }


def read_accounts(client: Api, realm: str) -> RealmAccounts:
    """Return the accounts of a realm; three requests.

    The access control list only has entries that the caller may see.
    """
    users = client.get("access", "users", full=1, attempted="Could not list the users") or []
    groups = client.get("access", "groups", attempted="Could not list the groups") or []
    entries = client.get("access", "acl", attempted="Could not read the rights") or []
    grants: dict[str, tuple[str, str]] = {}
    for entry in entries:
        kind, who = str(entry["type"]), str(entry["ugid"])
        is_group = kind == "group"
        name, end = (who, f"-{realm}") if is_group else (who.partition("!")[0], f"@{realm}")
        if name.endswith(end):
            text = f"{entry['roleid']} for {kind} {who} on {entry['path']}"
            grants[text] = (kind, who)
    return RealmAccounts(
        users=_named(users, "userid", f"@{realm}"),
        groups=_named(groups, "groupid", f"-{realm}"),
        grants=grants,
    )


def _named(rows: Iterable[Mapping[str, Any]], key: str, end: str) -> dict[str, Mapping[str, Any]]:
    """Return a realm's rows by name, without the groups of users: rows of groups list members."""
    by_name = {str(row[key]): row for row in rows}
    return {name: {**row, "groups": None} for name, row in by_name.items() if name.endswith(end)}


def foreseen(before: RealmAccounts, log: Iterable[str]) -> RealmAccounts:
    """Return the accounts of a realm that the log of a dry run predicts (pure)."""
    users, groups = dict(before.users), dict(before.groups)
    rows = {"user": users, "group": groups}
    lost: set[tuple[str, str]] = set()
    for line in log:
        found, purged = _LINE.fullmatch(line), _PURGE.fullmatch(line)
        if purged:
            lost.add((purged[1], purged[2]))
        if not found:
            continue
        verb, kind, name = found.groups()
        if verb == "remove":
            rows[kind].pop(name, None)
            lost.add((kind, name))
        else:
            rows[kind].setdefault(name, {})
    grants = dict(before.grants)
    for text, (kind, name) in before.grants.items():
        # an entry of a token goes with the token's user
        is_gone = name.partition("!")[0] not in users if kind == "token" else (kind, name) in lost
        if is_gone:
            del grants[text]
    return RealmAccounts(users, groups, grants)


def changes(before: Rows, after: Rows, known: bool) -> dict[str, list[str] | None]:
    """Return the added, removed and updated names; updates are unknown unless `known` (pure)."""
    updated = [name for name in before if name in after and before[name] != after[name]]
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "updated": sorted(updated) if known else None,
    }


def run_realm_sync(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Synchronize users and groups from the directory of a realm; check mode does a dry run."""
    name = validate.realm(params["name"], "name")
    kinds = kinds_of_realms(client)
    require_directory(kinds, name, f"Realm '{name}' was not synchronized")
    return apply_plan(RealmSync(client, name, params), check_mode)


def own_loss(before: RealmAccounts, after: RealmAccounts, caller: TaskLogin) -> OwnLoss | None:
    """Return the rights that the login of the task loses between two states of a realm (pure)."""
    if caller.user in before.users and caller.user not in after.users:
        return OwnLoss(NOT_ACCEPTED, LOGIN)
    groups = {name for name, row in before.groups.items() if caller.user in _members(row)}
    own = {("user", caller.user), ("token", caller.who), *(("group", name) for name in groups)}
    gone = before.grants.keys() - after.grants.keys()
    lost = sorted(text for text in gone if before.grants[text] in own)
    if lost:
        return OwnLoss(f"loses {'; '.join(lost)}", RIGHTS)
    return None


def _members(group: Mapping[str, Any]) -> list[str]:
    return str(group.get("users") or "").split(",")


class RealmSync(Resource[Result]):
    """One run of the synchronization of a realm."""

    def __init__(self, client: Api, name: str, params: Mapping[str, Any]) -> None:
        self.client = client
        self.name = name
        self.timeout = validate.count(params["task_timeout"], 300, "task_timeout")
        step = Step(
            "sync",
            f"Synchronize realm '{name}'",
            "POST",
            ("access", "domains", name, "sync"),
            _options(params),
        )
        self.plan = Plan((step,))
        self.known = read_accounts(client, name)
        self.foreseen: RealmAccounts | None = None
        self.own_warnings = self._own_warnings(params)

    def _own_warnings(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """Return a warning if the run takes rights away from the login of the task.

        A dry run checks this if the login belongs to this realm or to one of its groups, and the
        run may remove users or rights. Raises Conflict unless the task allows it.
        """
        caller = TaskLogin(self.client.login)
        vanished = params.get("remove_vanished")
        may_remove = vanished is None or not {"entry", "acl"}.isdisjoint(vanished)
        in_group = any(caller.user in _members(row) for row in self.known.groups.values())
        is_concerned = caller.user in self.known.users or in_group
        if not (may_remove and is_concerned):
            return ()
        self.foreseen = self._dry_run()
        loss = own_loss(self.known, self.foreseen, caller)
        if loss is None:
            return ()
        attempted = f"Refused to synchronize realm '{self.name}'"
        allow_self = bool(params.get("allow_self"))
        return (require_allowed(loss, caller.who, attempted, allow_self=allow_self),)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return Plan() if done else self.plan

    def confirm_write(self, step: Step) -> Callable[[], None]:
        """Return the check after a lost answer. It finds nothing: a repetition is harmless."""
        return lambda: None

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        """Return DONE if the run has removed the login of the task and the task allows that.

        PVE writes all users, groups and rights at once, at the end of the task (API2/Domains.pm,
        sync). So the removal of the login shows that everything else is written too.
        """
        if self.own_warnings and error.upid and isinstance(error, AuthenticationError):
            return FailureVerdict.DONE
        return FailureVerdict.FAILED

    def tolerate(self, step: Step, error: FleetError) -> str:
        return f"{step.summary}: this login was removed by task {error.upid} and cannot follow it"

    def preview(self) -> Result:
        """Return the result that PVE's dry run predicts."""
        after = self.foreseen
        if after is None:
            after = self._dry_run()
        result = self._result(after, known=False)
        return replace(result, warnings=self.own_warnings)

    def _dry_run(self) -> RealmAccounts:
        """Return the accounts that the realm would have after the run. Raises FleetError."""
        (step,) = self.plan.steps
        dry = replace(step, data={**step.data, "dry-run": 1})
        sent = self.send(dry)
        log = task_log(self.client, str(sent.answer))
        if not any(_BEGIN.match(line) for line in log):
            raise TaskFailed(
                f"{attempted(step.summary)}: the log of the dry run cannot be read",
                "Use a user or token that may read its own tasks, and run this again",
                "no log",
                upid=str(sent.answer),
            )
        return foreseen(self.known, log)

    def report(self, execution: Execution) -> Result:
        warnings = [*self.own_warnings, *execution.warnings]
        try:
            after = read_accounts(self.client, self.name)
        except (AuthenticationError, PermissionDenied):
            if self.foreseen is None or not self.own_warnings:
                raise
            after = self.foreseen
            text = f"This login cannot verify realm '{self.name}': the result is that of a dry run"
            warnings.append(text)
        result = self._result(after, known=True)
        values = {**result.values, "done": list(execution.done)}
        return replace(result, values=values, warnings=tuple(warnings))

    def _result(self, after: RealmAccounts, known: bool) -> Result:
        users = changes(self.known.users, after.users, known)
        groups = changes(self.known.groups, after.groups, known)
        removed = sorted(self.known.grants.keys() - after.grants.keys())
        is_changed = any((*users.values(), *groups.values(), removed))
        plan = Plan()
        if is_changed:
            plan = replace(self.plan, before=self.known.as_dict(), after=after.as_dict())
        synced = {"name": self.name, "users": users, "groups": groups, "grants_removed": removed}
        values = {"realm_sync": synced, "plan": self.plan.summaries, "done": []}
        return Result(is_changed, values, diff_of(plan, f"realm '{self.name}'"))


def _options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the request; omitted options keep the defaults of the realm."""
    data: dict[str, Any] = {}
    if params.get("scope") is not None:
        data["scope"] = params["scope"]
    if params.get("remove_vanished") is not None:
        data["remove-vanished"] = ";".join(params["remove_vanished"]) or "none"
    if params.get("enable_new") is not None:
        data["enable-new"] = int(params["enable_new"])
    return data
