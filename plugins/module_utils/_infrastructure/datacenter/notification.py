# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of notification endpoints and matchers (pve-manager: PVE/API2/Cluster/Notifications.pm).

An endpoint is a target that messages are sent to: mail, SMTP, Gotify or a webhook. A matcher chooses
the endpoints of a message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.find.names import ENDPOINT as ENDPOINTS
from ..._foundation.cluster.find.names import USER, require_listed
from ..._foundation.core import validate
from ..._foundation.core.errors import Conflict, ValidationFailed
from ..._foundation.core.propstring import sub_keys
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run, run_info
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import flag_field, host_field, number_field, secret, text_field

TYPES = ("gotify", "sendmail", "smtp", "webhook")
_ALL = Call(("cluster", "notifications", "endpoints", "{type}"))
MATCHERS = ("cluster", "notifications", "matchers")
BUILTIN = "mail-to-root"
_MAIL, _SMTP, _GOTIFY, _HOOK = ("sendmail", "smtp"), ("smtp",), ("gotify",), ("webhook",)
BUILTIN_MATCHER = "default-matcher"


def list_field(option: str, **more: Any) -> Field:
    """Return a field for a set of texts, a list in PVE; an empty set removes the property."""
    return Field(
        option,
        option.replace("_", "-"),
        want=frozenset,
        read=lambda items: frozenset(str(item) for item in items or ()),
        send=lambda items: sorted(items) or None,
        show=sorted,
        **more,
    )


def encoded(text: Any) -> str:
    """Return a text in base64, as PVE stores the body and the headers of a webhook."""
    return base64.b64encode(str(text).encode()).decode()


def decoded(text: Any) -> str:
    """Return the text that is encoded in base64; any other text is returned unchanged."""
    try:
        return base64.b64decode(str(text or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return str(text)


def _headers(items: Iterable[Any] | None) -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for item in items or ():
        parts = sub_keys(str(item))
        found.add((parts.get("name", ""), decoded(parts.get("value"))))
    return frozenset(found)


def _send_headers(headers: Iterable[tuple[str, str]]) -> list[str] | None:
    return [f"name={name},value={encoded(value)}" for name, value in sorted(headers)] or None


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal before the first write. A deletion and users need one request each, other
    changes none.
    """
    if change.deletes:
        require_custom(ENDPOINT, desired, BUILTIN)
        matchers = client.get(*MATCHERS, attempted="Could not list the matchers") or []
        require_unused(desired, matchers)
    elif desired.keys["type"] in _MAIL:
        require_recipient(desired, {**change.before, **change.sets})
    require_listed(client, "mailto_user", USER, change.sets.get("mailto_user") or ())
    return ()


def require_recipient(desired: DesiredResource, values: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for mails to no one (proxmox-notify: api/smtp.rs, add_endpoint)."""
    if not values.get("mailto") and not values.get("mailto_user"):
        raise ValidationFailed(
            f"{ENDPOINT.label(desired.keys)} was not changed: it would have no recipient",
            "Set mailto or mailto_user",
            "mailto",
        )


def require_custom(table: Table, desired: DesiredResource, builtin: str) -> None:
    """Raise ValidationFailed for the deletion of the built-in object: PVE only resets it (pure)."""
    if desired.keys["name"] == builtin:
        raise ValidationFailed(
            f"{table.label(desired.keys)} was not deleted: it is a part of Proxmox VE, which "
            "would reset it instead",
            "Set disable=true",
            "built in",
        )


def require_unused(desired: DesiredResource, matchers: Iterable[Mapping[str, Any]]) -> None:
    """Raise Conflict if a matcher sends messages to the endpoint (pure)."""
    name = desired.keys["name"]
    users = sorted(str(row["name"]) for row in matchers if name in (row.get("target") or ()))
    if users:
        raise Conflict(
            f"{ENDPOINT.label(desired.keys)} was not deleted: messages are sent to it by matcher "
            f"{', '.join(users)}",
            "Take it out of target of the matchers first",
            "in use",
            details={"matchers": users},
        )


ENDPOINT = Table(
    kind="notification_endpoint",
    title="notification endpoint",
    label_as="notification endpoint '{name}'",
    keys=(Key("type", "type", lambda value, _what: value), Key("name", "name", validate.config_id)),
    fields=(
        text_field("comment"),
        flag_field("disable"),
        list_field("mailto", variants=_MAIL),
        list_field("mailto_user", variants=_MAIL),
        text_field("from_address", required=_SMTP, variants=_MAIL),
        text_field("author", variants=_MAIL),
        host_field("server", required=True, variants=(*_SMTP, *_GOTIFY)),
        number_field("server_port", 0, name="port", optional=True, variants=_SMTP),
        text_field("mode", default="tls", variants=_SMTP),
        text_field("username", variants=_SMTP),
        text_field("webhook_url", name="url", required=True, variants=_HOOK),
        text_field("method", required=True, variants=_HOOK),
        Field(
            "headers",
            "header",
            want=lambda values: frozenset((key, str(value)) for key, value in values.items()),
            read=_headers,
            send=_send_headers,
            show=dict,
            variants=_HOOK,
        ),
        Field(
            "body",
            "body",
            read=decoded,
            send=lambda text: encoded(text) if text else None,
            variants=_HOOK,
        ),
    ),
    secrets=(secret("smtp_password", "password", _SMTP), secret("token", "token", _GOTIFY)),
    variant="type",
    digest=("PUT",),
    unset_as_list=True,
    list_call=_ALL,
    read_call=Call((*_ALL.path, "{name}")),
    create_call=Call(_ALL.path, {"name": "{name}"}),
    rows=lambda answer, keys: [{**row, "type": keys["type"]} for row in answer or []],
    precheck=precheck,
)


def run_endpoint(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring an endpoint to the desired state and return the outcome; send a test message after a
    change if the task asks for it.
    """
    result = run(ENDPOINT, params, client, check_mode)
    is_present = result.values.get(ENDPOINT.kind) is not None
    if result.changed and is_present and params.get("test") and not check_mode:
        client.write(
            "POST",
            *("cluster", "notifications", "targets", params["name"], "test"),
            attempted=f"The endpoint was changed, but a test message to '{params['name']}' failed",
        )
    return result


def run_endpoint_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the endpoints of one type or of all types; one request for each type."""
    kinds = [params["type"]] if params.get("type") else list(TYPES)
    found: list[Any] = []
    for kind in kinds:
        one = run_info(ENDPOINT, {**params, "type": kind}, client, check_mode)
        found += one.values[ENDPOINT.plural]
    return Result(False, {ENDPOINT.plural: found})


def precheck_matcher(
    client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise a refusal before the first write; one request if targets are set."""
    if change.deletes:
        require_custom(MATCHER, desired, BUILTIN_MATCHER)
    require_listed(client, "target", ENDPOINTS, change.sets.get("target") or ())
    return ()


MATCHER = Table(
    kind="notification_matcher",
    title="notification matcher",
    keys=(Key("name", "name", validate.config_id),),
    fields=(
        text_field("comment"),
        flag_field("disable"),
        list_field("target"),
        text_field("mode", default="all"),
        flag_field("invert_match"),
        list_field("match_severity"),
        list_field("match_field"),
        list_field("match_calendar"),
    ),
    digest=("PUT",),
    unset_as_list=True,
    list_call=Call(MATCHERS),
    read_call=Call((*MATCHERS, "{name}")),
    create_call=Call(MATCHERS, {"name": "{name}"}),
    precheck=precheck_matcher,
)
