# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module token: a simple resource with a secret, which PVE returns only once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..._foundation.api.interface import Api, PlanBook
from ..._foundation.core.clock import Clock
from ..._foundation.core.errors import (
    AuthenticationError,
    Conflict,
    FleetError,
    NetworkError,
    NotFound,
    NotSupported,
    PermissionDenied,
    ValidationFailed,
)
from ..._foundation.core.result import Result
from ..._foundation.resource.decide import read_desired
from ..._foundation.resource.engine import after_writes, attempted
from ..._foundation.resource.own_loss import LOGIN, NOT_ACCEPTED, OwnLoss, require_allowed
from ..._foundation.resource.run import ResourceReading, read_values, run
from ..._foundation.resource.table import DesiredResource, ResourceChange
from .acl import held_on, read_roles, require_givable
from .grants import Grant, read_grant
from .token import TOKEN, precheck_token, token_id

# pve-access-control 9.1.0, part of PVE 9.2: a token can get a new secret and keeps its rights.
_REGENERATES_SINCE = (9, 2)
_USER_SEGMENTS = 3  # of the path /access/users/USER
_WAY_OUT = (
    "The secret of the token is not known to anyone: set state=rotated to give it another one"
    " (Proxmox VE 9.2), or delete it with state=absent and create it again"
)


def run_token(
    params: Mapping[str, Any],
    client: Api,
    check_mode: bool = False,
    reading: ResourceReading | None = None,
) -> Result:
    """Bring a token to the desired state; the result has its secret if PVE returned one.

    The first plan uses `reading` if the caller has one.
    """
    keeper = SecretKeeper(client)
    rotates = params.get("state") == "rotated"
    _require_rotated(params, rotates)
    try:
        if rotates:
            result = rotate(params, keeper, check_mode)
        else:
            result = _run(params, keeper, check_mode, reading)
    except FleetError as error:
        if keeper.secret is None:
            raise
        # A failed task shows everything that it returns, so it must not return the secret.
        raise error.on(next_step=_WAY_OUT, retryable=False) from error
    values = {**result.values, "secret": keeper.secret}
    return replace(result, values=values, warnings=(*result.warnings, *keeper.warnings))


def _run(
    params: Mapping[str, Any],
    keeper: SecretKeeper,
    check_mode: bool,
    reading: ResourceReading | None = None,
) -> Result:

    def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
        _require_owner(desired, change, keeper.owner_is_missing)
        return precheck_token(client, desired, change)

    return run(replace(TOKEN, precheck=precheck), params, keeper, check_mode, reading)


def _require_rotated(params: Mapping[str, Any], rotates: bool) -> None:
    if params.get("successor") and not rotates:
        raise _refused_successor("successor was refused", "it goes with state=rotated only")


def _require_owner(desired: DesiredResource, change: ResourceChange, is_missing: bool) -> None:
    if is_missing and change.creates:
        raise NotFound(
            f"Token '{token_id(desired.keys)}' was not created: there is no user "
            f"'{desired.keys['owner']}'",
            "Create the user first",
            "unknown user",
        )


def rotate(params: Mapping[str, Any], keeper: SecretKeeper, check_mode: bool) -> Result:
    """Give a token a new secret or, if this PVE cannot do that, create a successor.

    The secret is replaced last: from then on the caller may have no valid login.
    """
    keys = read_desired(TOKEN, params).keys
    began = f"Token '{token_id(keys)}' was not rotated"
    known = read_values(TOKEN, keeper, keys)
    if known is None:
        raise NotFound(
            f"{began}: there is no such token", "Create it with state=present", "unknown token"
        )
    if keeper.version() < _REGENERATES_SINCE:
        return _succeed(params, keeper, known, began, check_mode)
    if params.get("successor"):
        raise _refused_successor(
            began, "this Proxmox VE gives a token another secret, and needs no successor"
        )
    warning = _own_secret(params, keeper, keys, began)
    result = _run({**params, "state": "present"}, keeper, check_mode)
    summary = f"Give token '{token_id(keys)}' another secret"
    done = list(result.values["done"])
    if not check_mode:
        with after_writes(done):
            _regenerate(keeper, keys, summary)
        keeper.note(summary)
        done.append(summary)
    plan = [*result.values["plan"], summary]
    return replace(
        result,
        changed=True,
        values={**result.values, "plan": plan, "done": done},
        warnings=(*result.warnings, *warning),
    )


def _own_secret(
    params: Mapping[str, Any], keeper: SecretKeeper, keys: Mapping[str, str], began: str
) -> tuple[str, ...]:
    """Return a warning if the token is the login of the task.

    Raises Conflict unless the task allows it.
    """
    if keeper.login != token_id(keys):
        return ()
    loss = OwnLoss(f"{NOT_ACCEPTED} with its present secret", LOGIN)
    allow_self = bool(params.get("allow_self"))
    return (require_allowed(loss, keeper.login, began, allow_self=allow_self),)


def _regenerate(keeper: SecretKeeper, keys: Mapping[str, str], summary: str) -> None:
    """Request a new secret, and another one after a lost answer, which voids the lost secret."""
    path = TOKEN.update_call.path_for(keys)
    try:
        keeper.write("PUT", *path, data={"regenerate": 1}, attempted=attempted(summary))
    except AuthenticationError as error:
        if keeper.answer_was_lost:
            raise _lost(attempted(summary)) from error
        raise


def _succeed(
    params: Mapping[str, Any],
    keeper: SecretKeeper,
    known: Mapping[str, Any],
    began: str,
    check_mode: bool,
) -> Result:
    """Create the successor of a token, with its settings and its rights."""
    name = params.get("successor")
    if not name:
        raise NotSupported(
            f"{began}: this Proxmox VE cannot give a token another secret, which came with 9.2",
            "Set successor to the name of a second token that takes over",
            "no regenerate",
        )
    described = TOKEN.show(read_desired(TOKEN, params).keys, known)
    settings = {one.option: described[one.option] for one in TOKEN.fields}
    settings["expire"] = settings["expire"] or "never"
    given = {option: params[option] for option in settings if params.get(option) is not None}
    wanted = {**params, **settings, **given, "name": name, "state": "present"}
    keys = read_desired(TOKEN, wanted).keys
    if read_values(TOKEN, keeper, keys) is not None:
        raise Conflict(
            f"{began}: token '{token_id(keys)}' exists, and its secret cannot be read",
            "Delete it with state=absent, or choose another successor",
            "exists",
        )
    rights = read_rights(keeper, str(described["token_id"]), token_id(keys), began)
    result = _run(wanted, keeper, check_mode)
    plan, done = list(result.values["plan"]), list(result.values["done"])
    for right in rights:
        plan.append(right.summary())
        if not check_mode:
            give(keeper, right, done)
            done.append(right.summary())
    return replace(result, values={**result.values, "plan": plan, "done": done})


def _refused_successor(attempted: str, why: str) -> ValidationFailed:
    return ValidationFailed(f"{attempted}: {why}", "Leave out successor", "successor")


class SecretKeeper:
    """A client that keeps the secret in the answer to a write of a token.

    If that answer is lost, the secret is lost too: this is an error, and no second token is
    created. A read that fails after the creation is only a warning: an error would lose the secret.
    """

    def __init__(self, client: Api) -> None:
        self._client = client
        self.version, self.release = client.version, client.release
        self.privileges = client.privileges
        self.task = client.task
        self.note = client.note
        self.secret: str | None = None
        self.answer_was_lost = False  # whether an answer to a write was lost
        self.owner_is_missing = False
        self.warnings: list[str] = []
        self._created: tuple[tuple[str | int, ...], Mapping[str, Any]] | None = None

    @property
    def login(self) -> str:
        return self._client.login

    @property
    def plan_book(self) -> PlanBook:
        return self._client.plan_book

    @property
    def clock(self) -> Clock:
        return self._client.clock

    def get(self, *segments: str | int, **more: Any) -> Any:
        """Return the answer to a GET.

        PVE answers 403 for a token whose user does not exist: that becomes NotFound here.
        """
        try:
            return self._client.get(*segments, **more)
        except PermissionDenied as error:
            if self._created is None and len(segments) > _USER_SEGMENTS:
                self._require_owner(*segments[:_USER_SEGMENTS])
            return self._in_place_of(error, segments)
        except FleetError as error:
            return self._in_place_of(error, segments)

    def _in_place_of(self, error: FleetError, segments: tuple[str | int, ...]) -> Mapping[str, Any]:
        """Return the settings from the creation of the token in place of its failed read.

        Raises the error of any other read.
        """
        if self._created is None or self._created[0] != segments:
            raise error
        self.warnings.append(f"The token was created, but reading it failed: {error.message}")
        return self._created[1]

    def _require_owner(self, *segments: str | int) -> None:
        """Raise NotFound if the user does not exist; a hidden user is accepted."""
        try:
            self._client.get(*segments)
        except NotFound:
            self.owner_is_missing = True
            raise
        except PermissionDenied:
            return

    def write(
        self,
        method: str,
        *segments: str | int,
        attempted: str = "",
        confirm: Callable[[], Any] | None = None,
        **more: Any,
    ) -> Any:
        """Return the answer to a write, and keep the secret in it."""

        def confirm_lost() -> Any:
            self.answer_was_lost = True
            return confirm() if confirm is not None else None

        try:
            answer = self._client.write(
                method, *segments, attempted=attempted, confirm=confirm_lost, **more
            )
        except Conflict as error:
            if self.answer_was_lost and method == "POST":
                raise _lost(attempted) from error
            raise
        if isinstance(answer, Mapping) and answer.get("value"):
            self.secret = str(answer["value"])
            if method == "POST":
                self._created = segments, answer.get("info") or {}
        elif method == "POST":
            raise _lost(attempted)
        return answer


def _lost(attempted: str) -> FleetError:
    return NetworkError(
        f"{attempted}: the token exists, but the answer with its secret was lost, and Proxmox VE "
        "tells a secret only once",
        _WAY_OUT,
        "lost secret",
        retryable=False,
        dispatched=True,
    )


class GrantOnPath(NamedTuple):
    """A role on a path."""

    path: str
    grant: Grant

    def summary(self) -> str:
        """Return the summary of the step for a result."""
        return f"Add {self.grant.role} on {self.path} for token '{self.grant.who}'"


def read_rights(client: Api, token: str, successor: str, began: str) -> list[GrantOnPath]:
    """Return the rights of a token for its successor; `began` begins the message of a refusal.

    Raises PermissionDenied before any write if the caller cannot see all rights, which PVE does not
    report (API2/ACL.pm, read_acl), or cannot give one of them.
    """
    _require_all_visible(held_on(client, "/access"), began)
    found: list[GrantOnPath] = []
    for entry in client.get("access", "acl", attempted="Could not read the rights") or []:
        grant = read_grant(entry)
        if (grant.kind, grant.who) == ("token", token):
            found.append(GrantOnPath(str(entry["path"]), grant._replace(who=successor)))
    if found:
        roles = read_roles(client)
        for path in sorted({right.path for right in found}):
            grants = [right.grant for right in found if right.path == path]
            require_givable(held_on(client, path), roles, grants, (), began)
    return sorted(found)


def _require_all_visible(held: Collection[str], began: str) -> None:
    """Raise PermissionDenied if the privileges held on /access do not show all rights."""
    if "Sys.Audit" not in held:
        raise PermissionDenied(
            f"{began}: Proxmox VE does not show all rights without Sys.Audit on /access, and the "
            "successor would lack those",
            "Use a user or token with Sys.Audit on /access",
            "not all rights",
            details={"privileges": ["Sys.Audit"]},
        )


def give(client: Api, right: GrantOnPath, done: Sequence[str]) -> None:
    """Give a token one role; a repetition is harmless. Errors list the steps done before."""
    data: Mapping[str, Any] = {
        "path": right.path,
        "roles": right.grant.role,
        "tokens": right.grant.who,
        "propagate": int(right.grant.propagate),
    }
    with after_writes(done):
        client.write("PUT", "access", "acl", data=data, attempted=attempted(right.summary()))
    client.note(right.summary())
