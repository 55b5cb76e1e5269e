# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""General options of the cluster: notes, console, proxy, workers, logins with a second factor
(pve-cluster: DataCenterConfig.pm).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..._foundation.core import validate
from ..._foundation.resource.table import Field
from ..._foundation.resource.values import matching_text, text_field
from .property_strings import PropertyString, SubKey, flag, network, one_of, show_flag, show_text

_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PROXY = re.compile(r"http://\S+")
_LONGEST = 65536


def _long_text(option: str) -> Field:
    """Return a field for a text of several lines, without the line break that PVE adds."""

    def read(value: Any) -> str:
        text = str(value or "").strip("\n")
        if len(text) > _LONGEST:
            raise validate.refused(option, text[:20], "is too long", "Use 65536 characters")
        return text

    return text_field(option, want=read, read=read)


FIELDS: tuple[Field, ...] = (
    _long_text("description"),
    _long_text("consent_text"),
    text_field("console"),
    text_field("keyboard"),
    text_field("language"),
    text_field(
        "email_from",
        name="email_from",
        want=matching_text(
            "email_from", _ADDRESS, "is not an e-mail address", "Write it as pve@example.com"
        ),
    ),
    text_field(
        "http_proxy",
        name="http_proxy",
        want=matching_text(
            "http_proxy", _PROXY, "is not an HTTP proxy", "Write it as http://10.0.0.1:3128"
        ),
    ),
    Field(
        "max_workers",
        "max_workers",
        want=lambda value: validate.number(value, 0, 2**31, "max_workers"),
        read=lambda value: int(value or 0),
        send=lambda value: value or None,
    ),
    text_field("fencing", default="watchdog"),
)


def _line(value: Any, what: str) -> str:
    """Return a text that a property string can contain."""
    text = str(value).strip()
    if "," in text or "\n" in text:
        raise validate.refused(what, text, "has a comma or a line break", "Leave it out")
    return text


def _text(option: str) -> SubKey:
    return SubKey(option, option.replace("_", "-"), _line, show_text, read=str)


_POLICY = SubKey(
    "shutdown_policy",
    "shutdown_policy",
    one_of("freeze", "failover", "conditional", "migrate"),
    default="conditional",
)
_SUBDOMAINS = SubKey("allow_subdomains", "allow-subdomains", flag, show_flag, default="1")
_MAILS = ("always", "never")


def _mails(option: str, *words: str) -> SubKey:
    return SubKey(option, option.replace("_", "-"), one_of(*words), show_text)


# The targets are older than the matchers of PVE 8.1, which take precedence.
_NOTIFY = PropertyString(
    "notify",
    (
        _mails("fencing", *_MAILS),
        _mails("package_updates", "auto", *_MAILS),
        _mails("replication", *_MAILS),
        _text("target_fencing"),
        _text("target_package_updates"),
        _text("target_replication"),
    ),
)
# pve-cluster 9.0.1 of June 2025: PVE/DataCenterConfig.pm, replication.
_SINCE = {"": (9, 0)}
_TYPE = SubKey("type", "type", one_of("secure", "insecure"), default="secure", since=_SINCE)
_REPLICATION = PropertyString(
    "replication",
    (_TYPE, SubKey("network", "network", network, show_text, since=_SINCE)),
    required=_TYPE,
)


def _degrees(maximum: int) -> Callable[[Any, str], str]:
    """Return a function that accepts an angle up to this number of degrees, or an empty text."""

    def want(value: Any, what: str) -> str:
        text = str(value).strip()
        if not text:
            return ""
        try:
            angle = float(text)
        except ValueError:
            angle = maximum + 1.0
        if not -maximum <= angle <= maximum:
            step = f"Use a number from -{maximum} to {maximum}"
            raise validate.refused(what, text, "is not an angle in degrees", step)
        return f"{angle:.10g}"

    return want


def _place_name(value: Any, what: str) -> str:
    text = _line(value, what)
    if len(text) > _LONGEST_PLACE:
        raise validate.refused(what, text[:20], "is too long", f"Use {_LONGEST_PLACE} characters")
    return text


# pve-cluster 9.1.4 of May 2026: PVE/DataCenterConfig.pm; pve-common: format pve-node-location.
_LONGEST_PLACE = 128
_PLACES = {"": (9, 2)}
_LATITUDE, _LONGITUDE = "latitude", "longitude"
LOCATION = PropertyString(
    "location",
    (
        SubKey(_LATITUDE, _LATITUDE, _degrees(90), show_text, since=_PLACES, needs=_LONGITUDE),
        SubKey(_LONGITUDE, _LONGITUDE, _degrees(180), show_text, since=_PLACES, needs=_LATITUDE),
        SubKey("name", "name", _place_name, show_text, read=str, since=_PLACES, needs=_LATITUDE),
    ),
)
STRINGS: tuple[PropertyString, ...] = (
    LOCATION,
    PropertyString("ha", (_POLICY,)),
    _NOTIFY,
    _REPLICATION,
    PropertyString("webauthn", (_text("rp"), _text("origin"), _text("id"), _SUBDOMAINS)),
    PropertyString("u2f", (_text("appid"), _text("origin"))),
)
