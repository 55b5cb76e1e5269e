# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the event source, parsed (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.cluster.quota import Limits, read_limits
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import parse_options
from ..._foundation.spec.fleet import with_defaults
from ..._foundation.spec.generated.cluster_events import cluster_events_spec
from ..._foundation.spec.generated.connection import connection_spec
from ..._foundation.spec.generated.drift_info import drift_info_spec
from .model import EventOptions

_HOUR = 3600
_WHAT = "The options of the event source were refused"
# Keys that ansible-rulebook adds to the arguments of a source.
_OF_THE_CALLER = ("eda_feedback_queue",)


def read_options(given: Mapping[str, Any]) -> tuple[EventOptions, dict[str, Any], str]:
    """Return the options of the source and of the connection, and the path of the position.

    Raises ValidationFailed.
    """
    named = {name: value for name, value in given.items() if name not in _OF_THE_CALLER}
    own = cluster_events_spec()
    options = parse_options({**connection_spec(), **own}, named, _WHAT)
    login = {name: value for name, value in options.items() if name not in own}
    wanted = EventOptions(
        interval=_between("interval", options, 1, 86400),
        slow_interval=_between("slow_interval", options, 60, 30 * 86400),
        longest_pause=_between("longest_pause", options, 1, 86400),
        prefix=options["tenant_prefix"] or PREFIX,
        storage_limit=_between("storage_limit", options, 1, 100),
        quota_limit=_between("quota_limit", options, 1, 1000),
        quotas=_quotas(options),
        max_age=_max_age(options),
        drift=_drift(options),
    )
    path = str(options["state_file"] or "")
    if not path.strip():
        raise validate.refused("state_file", path, "is empty", "Give the path of a file")
    return wanted, login, path


def _between(name: str, options: Mapping[str, Any], minimum: float, maximum: float) -> float:
    value = float(options[name])
    if not minimum <= value <= maximum:
        step = f"Give a number from {minimum:g} to {maximum:g}"
        raise validate.refused(name, options[name], "is out of range", step)
    return value


def _max_age(options: Mapping[str, Any]) -> float | None:
    if options.get("backup_max_age") is None:
        return None
    return _between("backup_max_age", options, 1, 24 * 366) * _HOUR


def _quotas(options: Mapping[str, Any]) -> dict[str, Limits]:
    """Return the limits by tenant, without tenants that have no limit."""
    given = options.get("quotas") or {}
    found: dict[str, Limits] = {}
    for tenant in given:
        params = {"tenant": tenant, "quotas": given, "tenant_prefix": options["tenant_prefix"]}
        limits = read_limits(params)
        if limits:
            found[str(tenant).lower()] = limits
    return found


def _drift(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of module drift_info. Raises ValidationFailed for a mistake in them."""
    given = options.get("drift")
    if given is None:
        return None
    spec = drift_info_spec()
    found = with_defaults(spec, parse_options(spec, given, "The option drift was refused"))
    if not (found.get("vms") or found.get("containers")):
        step = "Give vms or containers, as for module drift_info"
        raise validate.refused("drift", sorted(given), "has no guests", step)
    return found
