# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PVE's own check of the parameters of a request, made before it is sent: types, ranges, patterns,
lengths, formats, enumerations.

`check.py` checks the options of guests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .check import refusal_error, refusal_of_parameter
from .generated.requests import KINDS_OF_GUESTS, OTHERS, PARAMETERS, PATHS
from .versions import is_newer

# Formats that the API schema only names (pve-access-control: Auth/Plugin.pm). PVE replaces the
# older keys full and purge by remove-vanished.
REALM_SYNC: Mapping[str, Mapping[str, Any]] = {
    "scope": {"enum": ("users", "groups", "both")},
    "remove-vanished": {"pattern": "(?:(?:acl|properties|entry);)*(?:acl|properties|entry)|none"},
    "enable-new": {"type": "boolean"},
}
SECOND_FACTOR: Mapping[str, Mapping[str, Any]] = {
    "type": {"enum": ("yubico", "oath"), "required": 1},
    "id": {},
    "key": {},
    "url": {},
    "digits": {"type": "integer", "minimum": 6, "maximum": 8},
    "step": {"type": "integer", "minimum": 10},
}
# pve-guest-common: VZDump/Common.pm; pve-storage: Storage/Plugin.pm
_FLEECING: Mapping[str, Mapping[str, Any]] = {
    "enabled": {"type": "boolean", "default_key": 1},
    "storage": {"format": "pve-storage-id"},
}
_PERFORMANCE: Mapping[str, Mapping[str, Any]] = {
    "max-workers": {"type": "integer", "minimum": 1, "maximum": 256},
    "pbs-entries-max": {"type": "integer", "minimum": 1},
}
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
_PRUNE: Mapping[str, Mapping[str, Any]] = {
    "keep-all": {"type": "boolean"},
    **{f"keep-{one}": _COUNT for one in "last hourly daily weekly monthly yearly".split()},
}
_NAMED = {
    "backup-fleecing": _FLEECING,
    "backup-performance": _PERFORMANCE,
    "prune-backups": _PRUNE,
    "pve-tfa-config": SECOND_FACTOR,
    "realm-sync-options": REALM_SYNC,
}
# Parameters whose value is not shown.
_SECRETS = ("client-key", "encryption-key", "key", "keys", "password", "token")


def require_accepted(
    path: tuple[str | int, ...],
    data: Mapping[str, Any],
    options: Mapping[str, str],
    release: Callable[[], tuple[int, ...]],
) -> None:
    """Raise ValidationFailed for the first parameter of a request that PVE would refuse.

    `options` are the names of options by parameter, if they are not the parameter with underscores.
    `release` returns the version of PVE: a newer server may know more words than this collection.
    """
    if path[2:3] in KINDS_OF_GUESTS and path[4:] in ((), ("config",)):
        return
    for name, value in data.items():
        rule = _rule_of(name, path)
        judged = rule.get("items", rule)
        values = value if isinstance(value, (list, tuple)) else (value,)
        for text in map(_as_sent, values):
            refusal = refusal_of_parameter(text, judged)
            if refusal is not None and is_newer(release()):
                refusal = refusal_of_parameter(text, judged, lenient=True)
            if refusal is not None:
                shown = "***" if name in _SECRETS else text
                option = options.get(name, name.replace("-", "_"))
                raise refusal_error(option, shown, refusal)


def _rule_of(name: str, path: tuple[str | int, ...]) -> Mapping[str, Any]:
    """Return the rule of a parameter of the call at a path, an empty one for an unknown path."""
    if not any(_matches(template, path) for template in PATHS):
        return {}
    name = re.sub(r"^(link|acmedomain)\d+$", r"\1[n]", name)
    for template, rule in OTHERS.get(name, {}).items():
        if _matches(template, path) or _matches(template, path[:-1]):
            return rule
    rule = PARAMETERS.get(name, {})
    named = _NAMED.get(str(rule.get("format")))
    return {"format": named} if named else rule


def _matches(template: str, path: tuple[str | int, ...]) -> bool:
    segments = template.split("/")
    return len(segments) == len(path) and all(
        segment.startswith("{") or segment == str(part)
        for segment, part in zip(segments, path, strict=True)
    )


def _as_sent(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
