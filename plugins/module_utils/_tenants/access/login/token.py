# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A token whose login is kept in a file, because Proxmox VE returns its secret only once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.core.errors import Conflict, FleetError, ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.resource.decide import read_desired
from ...._foundation.resource.run import ResourceReading, read_resource
from ..run_token import run_token
from ..token import TOKEN, token_id
from .credentials import LoginKeeper, require_writable, site_of


def run_login(
    params: Mapping[str, Any],
    client: Client,
    check_mode: bool = False,
    reading: ResourceReading | None = None,
) -> Result:
    """Bring a token to the desired state, and write its login to the file that the task names.

    The first plan uses `reading` if the caller has one.
    """
    work = partial(run_token, params, client, check_mode, reading)
    keys = read_desired(TOKEN, params).keys
    token = token_id(keys)
    keeper = LoginKeeper.open(params, keys["name"], "token", token)
    if keeper.place is None:
        return work()
    _require_own_file(keeper, token)
    if params.get("successor"):
        raise _refused("successor", token, "its login is not kept in a file; leave out one of them")
    state = params.get("state")
    if state == "absent":
        result, steps = work(), keeper.summary_of_removal
        if not check_mode:
            keeper.remove()
        return _extended(result, steps, check_mode)
    is_new = (reading or read_resource(TOKEN, client, keys)).values is None
    if state != "rotated" and not is_new:
        _require_login(keeper, token)
        return work()
    require_writable(keeper.place)
    if check_mode:
        return _with_step(keeper, work(), check_mode)
    if is_new:
        keeper.reserve(client.connection, again=True)
    else:
        keeper.require_room(client.connection)
    try:
        result = work()
    except FleetError:
        keeper.release()
        raise
    secret = result.values["secret"]
    if secret is None:  # another run created the token first
        keeper.release()
        _require_login(LoginKeeper.open(params, keys["name"], "token", token), token)
        return result
    _keep(keeper, client, keys, secret)
    return _with_step(keeper, result, check_mode)


def run_declared(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a token of a cluster file to the desired state; the result never contains its secret.

    Raises ValidationFailed if the secret would be lost.
    """
    keys = read_desired(TOKEN, params).keys
    reading = None
    if check_mode and _is_missing(client, keys):
        reading = ResourceReading()
    _require_not_rotated(params, keys)
    is_kept = params.get("credentials_file") or params.get("state") == "absent"
    if not is_kept:
        _require_existing(reading or read_resource(TOKEN, client, keys), keys)
    return run_login(params, client, check_mode, reading)


def _require_not_rotated(params: Mapping[str, Any], keys: Mapping[str, str]) -> None:
    if params.get("state") == "rotated":
        raise _refused("state", token_id(keys), "module token rotates it, and a file does not")


def _require_existing(reading: ResourceReading, keys: Mapping[str, str]) -> None:
    if reading.values is None:
        why = "the token is new, and its secret would be lost; set the file for its login"
        raise _refused("credentials_file", token_id(keys), why)


def _is_missing(client: Client, keys: Mapping[str, str]) -> bool:
    """Return whether the list of users contains the owner of a token, but not the token.

    The owner may be a planned user that does not exist yet. PVE answers 403 for the token of such a
    user, so the token is not read.
    """
    call = TOKEN.list_call
    rows = client.get(*call.path_for(keys), params=call.data_for(keys)) or []
    owned = [row.get("tokens") or [] for row in rows if row["userid"] == keys["owner"]]
    return bool(owned) and all(one["tokenid"] != keys["name"] for one in owned[0])


def _refused(option: str, token: str, why: str) -> ValidationFailed:
    return ValidationFailed(
        f"Token '{token}' was not changed: {why.partition('; ')[0]}",
        f"Correct {option}: {why.partition('; ')[2] or 'leave it out'}",
        option,
    )


def _require_own_file(keeper: LoginKeeper, token: str) -> None:
    if keeper.place is None or keeper.login is None or keeper.login[0] == token:
        return
    raise Conflict(
        f"credentials_file {keeper.place.path} was not used: it has the login of token "
        f"{keeper.login[0]}",
        "Choose another file, or move this one away",
        "another file",
    )


def _require_login(keeper: LoginKeeper, token: str) -> None:
    if keeper.place is None or keeper.login is not None:
        return
    raise Conflict(
        f"Token '{token}' was not changed: it exists, and {keeper.place.path} does not have its "
        "login; Proxmox VE returns a secret only once",
        "Set state=rotated to give it another secret, or leave out credentials_file",
        "lost secret",
    )


def _keep(keeper: LoginKeeper, client: Client, keys: Mapping[str, str], secret: str) -> None:
    """Write the login. Raises FleetError with a next step: the token already has the new secret."""
    try:
        keeper.keep(site_of(keys["name"], client.connection, token_id(keys), secret))
    except FleetError as error:
        step = "Correct the cause, then set state=rotated to give the token another secret"
        raise error.on(next_step=step) from error


def _with_step(keeper: LoginKeeper, result: Result, check_mode: bool) -> Result:
    """Return the result with the step that writes the login, and without the secret."""
    step = f"Write the login to {keeper.place.path}" if keeper.place else ""
    return _extended(result, [step], check_mode)


def _extended(result: Result, steps: list[str], check_mode: bool) -> Result:
    done = [] if check_mode else steps
    values = {
        **result.values,
        "secret": None,
        "plan": [*result.values["plan"], *steps],
        "done": [*result.values["done"], *done],
    }
    return replace(result, changed=result.changed or bool(steps), values=values)
