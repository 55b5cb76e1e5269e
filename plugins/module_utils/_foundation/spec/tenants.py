# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variable `tenants` of an estate: the settings of each tenant, by its name (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.arguments.options import parse_options
from ..core.errors import ValidationFailed
from ..core.validate import distinct_tenants
from .fleet import defaults_spec, without_defaults
from .generated.tenant import tenant_spec

# Options of a guest that are set next to `defaults`, because they concern the whole tenant.
OF_VMS = (
    "pool",
    "tags",
    "quota",
    "allowed",
    "allow_privileged",
    "placement",
    "networks",
    "classes",
    "storage_classes",
    "class",
    "backup",
    "site_placement",
)
# Options of module tenant about its `networks`, which are an option of guests, too.
OF_NETWORKS = ("isolation", "peers")
# Options of module tenant that are in `access`.
_OF_ACCESS = (
    "operations",
    "templates",
    "storages",
    "image_storages",
    "bridges",
    "nodes",
    "owner",
    "group",
    "members",
    "token",
    "expire",
    "token_life",
    "registered_tag",
)


def read_estate_tenants(given: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of each tenant, converted, by its name.

    Raises ValidationFailed, with the tenant in the message, for unknown and wrong settings, and for
    names that differ only in case, because tags in Proxmox VE are lower case.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValidationFailed(
            "tenants was refused: it is not a dictionary of tenants",
            (
                "Write each tenant under its name, such as 'tenants: {acme: {quota: {vms: 10}}}',"
                " instead of '- name: acme'"
            ),
            "tenants",
        )
    distinct_tenants(given, "tenants")
    spec = _spec()
    return {str(name): _read(str(name), settings, spec) for name, settings in given.items()}


def _read(tenant: str, given: Any, spec: dict[str, dict[str, Any]]) -> dict[str, Any]:
    what = f"The settings of tenant {tenant} were refused"
    options = {} if given is None else given
    return parse_options(spec, options, what)


def _spec() -> dict[str, dict[str, Any]]:
    """Return the options of one tenant."""
    of_guests = without_defaults(defaults_spec())
    of_access = without_defaults(tenant_spec())
    return {
        **{name: of_guests[name] for name in OF_VMS},
        **{name: of_access[name] for name in OF_NETWORKS},
        "site": {"type": "str"},
        "sites": {"type": "list", "elements": "str"},
        "site_quotas": {"type": "dict"},
        "vmid_ranges": {"type": "dict"},
        "comment": {"type": "str"},
        "access": {"type": "dict", "options": {name: of_access[name] for name in _OF_ACCESS}},
        "defaults": {"type": "dict", "options": defaults_spec()},
    }
