# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the options of the cluster (pve-manager: API2/Cluster.pm, get_options and
set_options; pve-cluster: DataCenterConfig.pm).

PVE has no digest for these options: if two runs read the same options, the later write undoes the
change of the other run, unless both runs read the options again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.find.names import ENDPOINT, read_listed
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import PermissionDenied, ValidationFailed
from ..._foundation.resource.table import Call, DesiredResource, Field, ResourceChange, Table
from ..datacenter import general
from .property_strings import (
    PropertyString,
    SubKey,
    Version,
    colours,
    exact_tag,
    flag,
    merge_colours,
    merge_tags,
    merged_set,
    network,
    number,
    one_of,
    require_order,
    show_flag,
    show_number,
    show_text,
    split,
    split_colours,
    tags,
)

_LABEL = "the cluster options"
_ANY: Version = (0, 0)
_NOT_CHANGED = "The cluster options were not changed"
# DataCenterConfig.pm, pve_verify_mac_prefix and $PROXMOX_OUI.
_MAC_PREFIX = re.compile(r"[A-F0-9][02468ACE](?::[A-F0-9]{2}){0,2}(?::[A-F0-9]?)?")
_MAC_DEFAULT = "BC:24:11"
# Seconds. Another run sends at most two requests between its reading and its write.
_SETTLES = 1.0
_REBALANCES: Mapping[str, Version] = {"": (9, 2)}


def _rebalance(
    name: str, want: Any, show: Any = str, default: str = "0", needs: str = ""
) -> SubKey:
    key = "ha-auto-rebalance" + (f"-{name}" if name else "")
    option = key.replace("-", "_")
    return SubKey(option, key, want, show, default, since=_REBALANCES, needs=needs)


_AUTO = "ha-auto-rebalance"
CRS = PropertyString(
    "crs",
    (
        SubKey(
            "ha",
            "ha",
            one_of("basic", "static", "dynamic"),
            default="basic",
            since={"dynamic": (9, 2)},
        ),
        SubKey("ha_rebalance_on_start", "ha-rebalance-on-start", flag, show_flag, "0"),
        _rebalance("", flag, show_flag),
        _rebalance("threshold", number(0, 100), show_number, "30", _AUTO),
        _rebalance("method", one_of("bruteforce", "topsis"), str, "bruteforce", _AUTO),
        _rebalance("hold-duration", number(0), show_number, "3", _AUTO),
        _rebalance("margin", number(0, 100), show_number, "10", _AUTO),
    ),
)
TAG_STYLE = PropertyString(
    "tag_style",
    (
        SubKey("color_map", "color-map", colours, split_colours, "", merge_colours),
        SubKey("ordering", "ordering", one_of("config", "alphabetical"), default="alphabetical"),
        SubKey("case_sensitive", "case-sensitive", flag, show_flag, "0"),
        SubKey("shape", "shape", one_of("full", "circle", "dense", "none"), default="circle"),
    ),
)
TAG_ACCESS = PropertyString(
    "user_tag_access",
    (
        SubKey("user_allow", "user-allow", one_of("none", "list", "existing", "free"), str, "free"),
        SubKey(
            "user_allow_list",
            "user-allow-list",
            tags,
            lambda text: sorted(split(text)),
            "",
            merge_tags,
        ),
    ),
)
BWLIMIT = PropertyString(
    "bwlimit",
    tuple(
        SubKey(name, name, number(0), show_number)
        for name in ("clone", "default", "migration", "move", "restore")
    ),
)
_TYPE = SubKey("type", "type", one_of("secure", "insecure"), default="secure")
MIGRATION = PropertyString(
    "migration", (_TYPE, SubKey("network", "network", network, show_text)), required=_TYPE
)
NEXT_ID = PropertyString(
    "next_id",
    (
        SubKey("lower", "lower", number(100, 999999999, whole=True), show_number, "100"),
        SubKey("upper", "upper", number(100, 1000000000, whole=True), show_number, "1000000"),
    ),
)
STRINGS = (CRS, TAG_STYLE, TAG_ACCESS, BWLIMIT, MIGRATION, NEXT_ID, *general.STRINGS)
# The options, and their keys, from which state=absent removes values.
_TAKEN = {TAG_STYLE.option: "color-map", TAG_ACCESS.option: "user-allow-list"}
_REGISTERED = "registered_tags"


def _mac_prefix(value: Any) -> str:
    text = str(value).strip().upper() or _MAC_DEFAULT
    if not _MAC_PREFIX.fullmatch(text):
        raise validate.refused(
            "mac_prefix",
            text,
            "is not the beginning of a unicast MAC address",
            "Write up to four octets as BC:24:11:0, the first one even",
        )
    return text


def _registered(value: Any) -> frozenset[str]:
    return split(value) if isinstance(value, str) else frozenset(value or ())


def _whole(answer: Mapping[str, Any], _keys: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the options. Raises PermissionDenied if PVE has left some out.

    Without Sys.Audit, PVE returns only a few options, so registered tags would seem to be missing.
    """
    if "description" not in answer:
        raise PermissionDenied(
            f"Could not read {_LABEL}: Proxmox VE leaves most of them out without Sys.Audit on /",
            "Use a user or token with Sys.Audit on /",
            "not all options",
            details={"privileges": ["Sys.Audit"]},
        )
    return answer


def resolve(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises any refusal that does not depend on the present options.

    One request for the version if a sub-key depends on it.
    """
    if not desired.present:
        _require_removable(desired)
        return desired
    found: list[tuple[str, Version]] = []
    for string in STRINGS:
        for key, text in desired.values.get(string.option, {}).items():
            sub_key = string.sub_key(key)
            since = sub_key.since_value(text)
            if since > _ANY:
                found.append((f"{string.option}.{sub_key.option}={text}", since))
    if not found:
        return desired
    version = client.version()
    for what, since in found:
        step = f"Leave out {what.partition('=')[0]}"
        validate.require_since(since, version, _NOT_CHANGED, what, step)
    return desired


def _require_removable(desired: DesiredResource) -> None:
    other = sorted(desired.values.keys() - {_REGISTERED, *_TAKEN})
    for option, key in _TAKEN.items():
        if desired.values.get(option, {}).keys() - {key}:
            other.append(option)
    if desired.exact:
        other.append("exact")
    if other:
        raise ValidationFailed(
            "state=absent was refused: it takes listed tags out, and does nothing with "
            f"{', '.join(other)}",
            "List registered_tags, tag_style.color_map or user_tag_access.user_allow_list"
            " only; an empty text returns another option to the default of Proxmox VE",
            "state",
        )


def require_complete(change: ResourceChange) -> None:
    """Raise ValidationFailed for keys that PVE refuses together (pure)."""
    for string in STRINGS:
        values = change.sets.get(string.option, {})
        for sub_key in string.sub_keys:
            if sub_key.key in values and sub_key.needs and sub_key.needs not in values:
                needed = sub_key.needs.replace("-", "_")
                raise ValidationFailed(
                    f"{_NOT_CHANGED}: {string.option}.{sub_key.option} needs "
                    f"{string.option}.{needed}",
                    f"Set {string.option}.{needed} too",
                    string.option,
                )
    if NEXT_ID.option in change.sets:
        next_id = NEXT_ID.show(change.sets[NEXT_ID.option])
        require_order(next_id["lower"], next_id["upper"], _NOT_CHANGED)


def precheck(client: Api, _desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise a refusal before the first write. Return a warning about each target of notifications
    that does not exist, because Proxmox VE only reads matchers (pve-cluster: DataCenterConfig.pm);
    one request if targets are set.
    """
    require_complete(change)
    notify = change.sets.get("notify", {})
    targets = {key: name for key, name in notify.items() if key.startswith("target-")}
    known = read_listed(client, ENDPOINT) if targets else ()
    return tuple(
        f"notify.{key.replace('-', '_')}: there is no endpoint '{name}'{did_you_mean(name, known)}"
        for key, name in sorted(targets.items())
        if name not in known
    )


CLUSTER_OPTIONS = Table(
    kind="cluster_options",
    label_as=_LABEL,
    keys=(),
    fields=(
        Field(
            _REGISTERED,
            "registered-tags",
            want=lambda items: frozenset(exact_tag(one, _REGISTERED) for one in items),
            read=_registered,
            send=lambda items: ";".join(sorted(items)) or None,
            show=sorted,
            merge=merged_set,
        ),
        *(string.as_field() for string in STRINGS),
        Field(
            "mac_prefix",
            "mac_prefix",
            want=_mac_prefix,
            read=lambda text: str(text or _MAC_DEFAULT).upper(),
            send=lambda text: None if text == _MAC_DEFAULT else text,
        ),
        *general.FIELDS,
    ),
    permanent=True,
    settle_seconds=_SETTLES,
    read_call=Call(("cluster", "options")),
    pick=_whole,
    resolve=resolve,
    precheck=precheck,
)
