# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module realm_sync (pve-access-control: API2/Domains.pm, sync).

PVE writes "updating" for each user whether anything differs or not. So users, groups and grants are
compared before and after. In check mode its dry run tells who would come and go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._api.tasks import task_log
from .._core import validate
from .._core.errors import TaskFailed
from .._core.result import Result
from .._resource.engine import Resource, apply_plan
from .._resource.execute import Execution, attempted
from .._resource.plan import Plan, Step
from .._resource.protocols import Api
from .._resource.result import diff_of
from .realm import require_directory

_LINE = re.compile(r"(adding|overwriting|updating|remove) (user|group) '(.+)'")
_PURGE = re.compile(r"purge (user|group)s '(.+)' ACL entries")
_BEGIN = re.compile(r"\(dry test run\) starting sync ")
Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Accounts:
    """What a cluster has of one realm: users and groups by name, and their entries in the access
    control list, as messages name them.
    """

    users: Rows = field(default_factory=dict)
    groups: Rows = field(default_factory=dict)
    grants: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def shown(self) -> dict[str, list[str]]:
        """Return the names, for a diff."""
        return {
            "users": sorted(self.users),
            "groups": sorted(self.groups),
            "grants": sorted(self.grants),
        }


def read_accounts(client: Api, realm: str) -> Accounts:
    """Return what the cluster has of a realm; three requests.

    The access control list has what the caller may see.
    """
    users = client.get("access", "users", full=1, attempted="Could not list the users") or []
    groups = client.get("access", "groups", attempted="Could not list the groups") or []
    entries = client.get("access", "acl", attempted="Could not read the rights") or []
    grants: dict[str, tuple[str, str]] = {}
    for entry in entries:
        kind, who = str(entry["type"]), str(entry["ugid"])
        if _belongs(kind, who, realm):
            text = f"{entry['roleid']} for {kind} {who} on {entry['path']}"
            grants[text] = (kind, who)
    return Accounts(
        users=_named(users, "userid", f"@{realm}"),
        groups=_named(groups, "groupid", f"-{realm}"),
        grants=grants,
    )


def _belongs(kind: str, who: str, realm: str) -> bool:
    if kind == "group":
        return who.endswith(f"-{realm}")
    return who.partition("!")[0].endswith(f"@{realm}")


def _named(rows: Iterable[Mapping[str, Any]], key: str, end: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of a realm by name; who is in a group is in that of the group."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        name = str(row[key])
        if name.endswith(end):
            found[name] = {**row, "groups": None}
    return found


def foreseen(before: Accounts, log: Iterable[str]) -> Accounts:
    """Return what a realm would have after the run that wrote this log of a dry run (pure)."""
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
    grants = {text: who for text, who in before.grants.items() if not _is_lost(who, lost, users)}
    return Accounts(users, groups, grants)


def _is_lost(who: tuple[str, str], lost: set[tuple[str, str]], users: Rows) -> bool:
    """Return whether an entry goes: purged, or that of a token whose user goes."""
    kind, name = who
    if kind == "token":
        return name.partition("!")[0] not in users
    return who in lost


def changes(before: Rows, after: Rows, known: bool) -> dict[str, list[str] | None]:
    """Return the names that came, went and differ; those that differ may not be `known` (pure)."""
    updated = [name for name in before if name in after and before[name] != after[name]]
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "updated": sorted(updated) if known else None,
    }


def run_realm_sync(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Take over users and groups from the directory of a realm; check mode does a dry run."""
    name = validate.realm(params["name"], "name")
    require_directory(client, name)
    return apply_plan(RealmSync(client, name, params), check_mode)


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

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return Plan() if done else self.plan

    def happened(self, step: Step) -> Callable[[], None]:
        """Return the look after a lost answer, which finds nothing: to synchronize twice leads to
        the same as to do so once.
        """
        return lambda: None

    def preview(self) -> Result:
        """Return what PVE's dry run tells."""
        (step,) = self.plan.steps
        dry = replace(step, data={**step.data, "dry-run": 1})
        sent = self.send(dry)
        log = task_log(self.client, str(sent.answer))
        if not any(_BEGIN.match(line) for line in log):
            raise TaskFailed(
                attempted=attempted(step.summary),
                answer="the log of the dry run cannot be read",
                next_step="Use a user or token that may read its own tasks, and run this again",
                reason="no log",
                upid=str(sent.answer),
            )
        return self._result(foreseen(self.known, log), known=False)

    def report(self, execution: Execution) -> Result:
        result = self._result(read_accounts(self.client, self.name), known=True)
        values = {**result.values, "done": list(execution.done)}
        return replace(result, values=values, warnings=execution.warnings)

    def _result(self, after: Accounts, known: bool) -> Result:
        users = changes(self.known.users, after.users, known)
        groups = changes(self.known.groups, after.groups, known)
        removed = sorted(self.known.grants.keys() - after.grants.keys())
        is_changed = any((*users.values(), *groups.values(), removed))
        plan = Plan()
        if is_changed:
            plan = replace(self.plan, before=self.known.shown(), after=after.shown())
        shown = {"name": self.name, "users": users, "groups": groups, "grants_removed": removed}
        values = {"realm_sync": shown, "plan": self.plan.summaries, "done": []}
        return Result(is_changed, values, diff_of(plan, f"realm '{self.name}'"))


def _options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the request says; what is left out is as the realm has it."""
    data: dict[str, Any] = {}
    if params.get("scope") is not None:
        data["scope"] = params["scope"]
    if params.get("remove_vanished") is not None:
        data["remove-vanished"] = ";".join(params["remove_vanished"]) or "none"
    if params.get("enable_new") is not None:
        data["enable-new"] = int(params["enable_new"])
    return data
