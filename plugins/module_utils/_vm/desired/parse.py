# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a module become values: here they are read, once, and nowhere behind it (pure).

Names of the estate are replaced, each value is checked, and what remains is put into `Desired` and
`Settings`. Every refusal is a ValidationFailed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._cluster.quota import read_limits
from ..._cluster.rules import Rules
from ..._cluster.tenant import foreign_tag, tenant_tag
from ..._cluster.vmids import read_bands
from ..._core import validate
from ..model import Desired, Source
from .devices import read_disks
from .hardware import read_hardware
from .presets import resolve
from .settings import Settings, read_guest_request
from .userdata import read_snippet
from .values import checked, is_blank

# Options that `Desired` has as they are.
_PLAIN = (
    "name",
    "vmid",
    "node",
    "state",
    "tenant_prefix",
    "adopt",
    "tags_exact",
    "default_storage",
    "vmid_choice",
    "rebalance",
    "migrate",
    "reboot",
    "graceful",
    "force",
    "shutdown_timeout",
)


@dataclass(frozen=True)
class VmOptions:
    """The options of a task, read: the VM as desired, and how the task works."""

    desired: Desired
    settings: Settings


def read_options(params: Mapping[str, Any]) -> VmOptions:
    """Return what the options ask for.

    `params` are the module's, checked by its argument specification.
    """
    plain = resolve(params)
    options = checked(plain)
    return VmOptions(
        _desired(options), Settings(options["task_timeout"], read_guest_request(options))
    )


def _desired(options: Mapping[str, Any]) -> Desired:
    """Return the VM that checked options describe, in PVE's keys with canonical values."""
    hardware = read_hardware(options)
    cloud_init = options["cloud_init"] or {}
    password = cloud_init.get("password")
    has_drive = options["cloud_init"] is not None
    plain = {name: options[name] for name in _PLAIN}
    return Desired(
        **plain,
        tenant=_tenant(options),
        pool="" if is_blank(options["pool"]) else options["pool"],
        source=_source(options),
        scalars=hardware.scalars,
        property_strings=hardware.property_strings,
        unset=frozenset(hardware.unset),
        disks=read_disks(options["disks"] or []),
        tags=_tags(options),
        description=_notes(options["description"]),
        disks_exact=_is_exact(options, "disks"),
        nics_exact=_is_exact(options, "nics"),
        snippet=read_snippet(cloud_init),
        ssh_keys=cloud_init.get("ssh_keys"),
        password=None if is_blank(password) else password,
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=cloud_init["drive"] if has_drive else None,
        cloud_init_storage=cloud_init.get("storage"),
        bands=read_bands(options["vmid_range"], options["vmid_bands"]),
        rules=options["placement"] or Rules(),
        shared_sources=frozenset(options["shared_sources"] or ()),
        limits=read_limits(options),
    )


def _source(options: Mapping[str, Any]) -> Source | None:
    source = options["source"]
    return replace(source, full=options["full"]) if source else None


def _is_exact(options: Mapping[str, Any], devices: str) -> bool:
    """Return whether a list of devices names all of them: only a list that is given can."""
    if options[devices] is None:
        return False
    return bool(options[f"{devices}_exact"])


def _tags(options: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the desired tags. Raises ValidationFailed for the tag of another tenant."""
    if options["tags"] is None:
        return None
    tags = frozenset(options["tags"])
    prefix = options["tenant_prefix"]
    own = tenant_tag(str(options["tenant"]), prefix) if options["tenant"] else None
    other = foreign_tag(tags, own, prefix)
    if other:
        why = "is another tenant's tag"
        raise validate.refused("tags", other, why, "A VM has the tag of one tenant at most")
    return tags


def _notes(text: str | None) -> str | None:
    """Return notes as they are read back: without empty lines before them and blanks after them.

    PVE drops all blanks at the end of the notes when it reads a configuration (QemuServer.pm,
    parse_vm_config).
    """
    if text is None:
        return None
    return text.strip("\n").rstrip()


def _tenant(options: Mapping[str, Any]) -> str | None:
    tenant = options["tenant"]
    if not tenant:
        return None
    validate.tag(f"{options['tenant_prefix']}{tenant}", "tenant")
    return str(tenant).lower()
