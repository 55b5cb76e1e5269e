# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of realms, which are only read (pve-access-control: API2/Domains.pm).

The list has no secrets, and anybody may read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import ConfigurationError, Conflict, ValidationFailed
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ...._foundation.resource.values import (
    as_flag,
    flag_field,
    host_field,
    number_field,
    property_string_field,
    secret,
    text_field,
    unset_flag_field,
    words_field,
)
from ...._foundation.schema.requests import REALM_SYNC, SECOND_FACTOR

_SYNCHRONIZED = ("ldap", "ad")
_LDAP, _AD, _OPENID = ("ldap",), ("ad",), ("openid",)
_DIRECTORY = (*_LDAP, *_AD)
BUILTIN = ("pam", "pve")


def _of_name(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    rows = {str(row["realm"]): row for row in answer or []}
    return rows.get(keys["name"])


REALM = Table(
    kind="realm",
    keys=(Key("name", "realm", validate.realm),),
    fields=(),
    read_only=(
        Field("type", "type"),
        Field("comment", "comment"),
        Field("default", "default", read=as_flag(False)),
        Field("second_factor", "tfa", read=lambda text: text or None),
    ),
    read_call=Call(("access", "domains")),
    pick=_of_name,
)


def kinds_of_realms(client: Api) -> dict[str, str]:
    """Return the type of each realm by its name; one request."""
    rows = client.get("access", "domains", attempted="Could not list the realms") or []
    return {str(row["realm"]): str(row["type"]) for row in rows}


def kind_of_realm(kinds: Mapping[str, str], name: str, attempted: str, next_step: str) -> str:
    """Return the type of a realm (pure). Raises ConfigurationError if `kinds` lacks the realm."""
    if name not in kinds:
        names = ", ".join(sorted(kinds))
        raise ConfigurationError(
            f"{attempted}: there is no realm '{name}'; the cluster has "
            f"{names}{did_you_mean(name, kinds)}",
            next_step,
            "unknown realm",
            details={"realms": sorted(kinds)},
        )
    return kinds[name]


def require_directory(kinds: Mapping[str, str], name: str, attempted: str) -> None:
    """Raise ConfigurationError for a realm that does not exist, or that has no directory."""
    kind = kind_of_realm(kinds, name, attempted, next_step="Check the name")
    if kind not in _SYNCHRONIZED:
        raise ConfigurationError(
            f"{attempted}: it is of type {kind}, and only LDAP and AD realms have a directory",
            "Name a realm of type ldap or ad",
            "realm without directory",
        )


def _text(option: str, variants: tuple[str, ...], **more: Any) -> Field:
    """Return a field for a text whose name has underscores in PVE too."""
    return text_field(option, name=option, variants=variants, **more)


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal that needs no request."""
    require_changeable(desired, change, client.login)
    return ()


def require_changeable(desired: DesiredResource, change: ResourceChange, login: str) -> None:
    """Raise the refusals of a deletion or creation of a realm (pure).

    Raises Conflict if the realm of the login would be deleted, and ValidationFailed if a built-in
    realm would be deleted or created.
    """
    name = desired.keys["name"]
    label = REALM_CONFIG.label(desired.keys)
    if change.deletes and name in BUILTIN:
        raise ValidationFailed(
            f"{label} was not deleted: it is a part of Proxmox VE",
            "Leave it out; its comment can be changed",
            "built in",
        )
    user = login.partition("!")[0]
    if change.deletes and user.rpartition("@")[2] == name:
        raise Conflict(
            f"{label} was not deleted: the task itself logs in with a user of it, {user}",
            "Use a login of another realm",
            "own login",
        )
    if change.creates and desired.values.get("type") in BUILTIN:
        raise ValidationFailed(
            f"{label} was not created: type {desired.values['type']} is a part of Proxmox VE, and "
            "has one realm only",
            "Use type ldap, ad or openid",
            "built in",
        )


REALM_CONFIG = Table(
    kind="realm",
    keys=(Key("name", "realm", validate.realm),),
    fields=(
        text_field("type", fixed=True, required=True),
        text_field("comment"),
        unset_flag_field("default"),
        property_string_field("tfa", SECOND_FACTOR),
        host_field("server1", required=True, variants=_DIRECTORY),
        host_field("server2", variants=_DIRECTORY),
        number_field("server_port", 0, name="port", optional=True, variants=_DIRECTORY),
        text_field("mode", default="ldap", variants=_DIRECTORY),
        flag_field("verify", variants=_DIRECTORY),
        text_field("capath", default="/etc/ssl/certs", variants=_DIRECTORY),
        text_field("cert", variants=_DIRECTORY),
        text_field("certkey", variants=_DIRECTORY),
        text_field("sslversion", variants=_DIRECTORY),
        text_field("domain", required=True, variants=_AD),
        flag_field("case_sensitive", default=True, variants=_AD),
        _text("base_dn", _LDAP, required=True),
        _text("user_attr", _LDAP, required=True),
        _text("bind_dn", _DIRECTORY),
        text_field("filter", variants=_DIRECTORY),
        words_field("user_classes", name="user_classes", variants=_DIRECTORY),
        _text("group_dn", _DIRECTORY),
        _text("group_filter", _DIRECTORY),
        _text("group_name_attr", _DIRECTORY),
        words_field("group_classes", name="group_classes", variants=_DIRECTORY),
        property_string_field("sync_attributes", {}, name="sync_attributes", variants=_DIRECTORY),
        property_string_field("sync_defaults_options", REALM_SYNC, variants=_DIRECTORY),
        text_field("issuer_url", required=True, variants=_OPENID),
        text_field("client_id", required=True, variants=_OPENID),
        text_field("username_claim", fixed=True, variants=_OPENID),
        words_field("scopes", " ", default="email profile", variants=_OPENID),
        text_field("prompt", variants=_OPENID),
        text_field("acr_values", variants=_OPENID),
        words_field("audiences", variants=_OPENID),
        text_field("groups_claim", variants=_OPENID),
        flag_field("autocreate", variants=_OPENID),
        flag_field("groups_autocreate", variants=_OPENID),
        flag_field("groups_overwrite", variants=_OPENID),
        flag_field("query_userinfo", default=True, variants=_OPENID),
    ),
    secrets=(
        secret("bind_password", "password", _DIRECTORY),
        secret("client_secret", "client-key", _OPENID),
    ),
    variant="type",
    digest=("PUT",),
    list_call=Call(("access", "domains")),
    list_is_whole=False,
    read_call=Call(("access", "domains", "{name}")),
    create_call=Call(("access", "domains"), {"realm": "{name}"}),
    precheck=precheck,
)
