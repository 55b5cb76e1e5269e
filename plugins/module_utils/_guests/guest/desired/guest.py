# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest that checked options describe, without its hardware (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from ...._foundation.cluster.quota import read_limits
from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.tenant import foreign_tag, tenant_tag
from ...._foundation.cluster.vmids import read_vmid_ranges
from ...._foundation.core import validate
from ...kinds.hardware import AnyDesired
from ...kinds.kind import Kind
from ...kinds.model import Guest, GuestSource
from ..settings import TaskSettings, read_guest_request
from .isolation import read_isolation
from .values import is_blank


@dataclass(frozen=True)
class GuestOptions(Generic[AnyDesired]):
    """The parsed options of a task: the desired guest, and the settings of the task."""

    desired: AnyDesired
    settings: TaskSettings


def options_of(desired: AnyDesired, options: Mapping[str, Any]) -> GuestOptions[AnyDesired]:
    """Return the desired guest with the settings in the checked options."""
    return GuestOptions(desired, TaskSettings(options["task_timeout"], read_guest_request(options)))


# Options that `Guest` contains unchanged.
_PLAIN = (
    "name",
    "vmid",
    "node",
    "state",
    "tenant_prefix",
    "adopt",
    "tags_exact",
    "vmid_choice",
    "rebalance",
    "migrate",
    "reboot",
    "graceful",
    "force",
    "shutdown_timeout",
)


def read_guest(kind: Kind, options: Mapping[str, Any]) -> Guest:
    """Return the guest. Raises ValidationFailed."""
    plain = {name: options[name] for name in _PLAIN}
    return Guest(
        kind=kind,
        **plain,
        tenant=_tenant(options),
        pool="" if is_blank(options["pool"]) else options["pool"],
        source=_source(options),
        tags=_tags(kind, options),
        description=_notes(options["description"]),
        vmid_ranges=read_vmid_ranges(options["vmid_range"], options["vmid_bands"]),
        create=options.get("create") is not False,
        blank=bool(options.get("blank")),
        replace_image=bool(options.get("replace_image")),
        rules=options["placement"] or PlacementRules(),
        shared_sources=frozenset(options["shared_sources"] or ()),
        limits=read_limits(options),
        isolation=read_isolation(options),
    )


def _source(options: Mapping[str, Any]) -> GuestSource | None:
    source = options["source"]
    if not source:
        return None
    return replace(source, full=options["full"], snapshot=options.get("snapshot"))


def is_exact(options: Mapping[str, Any], devices: str) -> bool:
    """Return whether a list of devices is complete: an option that is left out never is."""
    return options[devices] is not None and bool(options[f"{devices}_exact"])


def _tags(kind: Kind, options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the desired tags. Raises ValidationFailed for the tag of another tenant."""
    if options["tags"] is None:
        return None
    tags = frozenset(options["tags"])
    prefix = options["tenant_prefix"]
    own = tenant_tag(str(options["tenant"]), prefix) if options["tenant"] else None
    other = foreign_tag(tags, own, prefix)
    if other:
        why = "is another tenant's tag"
        raise validate.refused(
            "tags", other, why, f"A {kind.noun} has the tag of one tenant at most"
        )
    return tags


def _notes(text: str | None) -> str | None:
    """Return notes in the form in which they are read back: without empty lines before them and
    blanks after them.

    PVE drops all blanks at the end of the notes when it reads a configuration (QemuServer.pm,
    parse_vm_config).
    """
    return None if text is None else text.strip("\n").rstrip()


def _tenant(options: Mapping[str, Any]) -> str | None:
    tenant = options["tenant"]
    if not tenant:
        return None
    validate.tag(f"{options['tenant_prefix']}{tenant}", "tenant")
    return str(tenant).lower()
