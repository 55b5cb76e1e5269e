# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the options of a module into values; no later code parses them again (pure).

Names of the estate are replaced, each value is checked, and the results are put into `DesiredVm`
and `TaskSettings`. Every refusal is a ValidationFailed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ....._foundation.core import validate
from ....._foundation.spec.fleet import VM_SPECS
from ....._foundation.spec.generated.vm import hardware_spec
from ....kinds.vm.kind import VM
from ....kinds.vm.model import DesiredVm, VmHardware
from ...desired.classes import class_options
from ...desired.guest import GuestOptions, is_exact, options_of, read_guest
from ...desired.layers import lay_over
from ...desired.presets import name_presets
from ...desired.values import is_blank
from .devices import read_disks, require_disks
from .hardware import read_hardware
from .userdata import read_snippet
from .values import checked, without_empty_texts

VmOptions: TypeAlias = GuestOptions[DesiredVm]


def read_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options of a module, checked by its argument specification."""
    resolved = resolve(params)
    require_disks(resolved.get("disks") or [])
    options = checked(resolved)
    return options_of(_desired(options), options)


def _desired(options: Mapping[str, Any]) -> DesiredVm:
    """Return the VM that checked options describe, in PVE's keys with canonical values."""
    keys = read_hardware(options)
    cloud_init = options["cloud_init"] or {}
    password = cloud_init.get("password")
    has_drive = options["cloud_init"] is not None
    hardware = VmHardware(
        scalars=keys.scalars,
        property_strings=keys.property_strings,
        unset=frozenset(keys.unset),
        disks=read_disks(options["disks"] or []),
        disks_exact=is_exact(options, "disks"),
        nics_exact=is_exact(options, "nics"),
        snippet=read_snippet(cloud_init),
        ssh_keys=cloud_init.get("ssh_keys"),
        password=None if is_blank(password) else password,
        update_password=cloud_init.get("update_password") or "on_create",
        cloud_init_drive=(cloud_init.get("drive") or "") if has_drive else None,
        cloud_init_storage=cloud_init.get("storage"),
        default_storage=options["default_storage"],
    )
    return DesiredVm(read_guest(VM, options), hardware)


_CLOUD_INIT = hardware_spec()["cloud_init"]["options"]
_CLOUD_INIT_DEFAULTS = {
    name: rule["default"] for name, rule in _CLOUD_INIT.items() if "default" in rule
}


def resolve(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the module's params with class, network and storage class names replaced by their
    options.

    The VM's own options win over its class, the options of a NIC or disk over its network or
    storage class. Raises ConfigurationError for a name that no map contains, ValidationFailed for a
    map of the wrong shape.
    """
    options = _with_class(without_empty_texts(params))
    name_presets(options, "disks")
    return options


def _with_class(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options merged over their class; defaults within cloud_init count as not given."""
    label = options.get("class")
    if not label:
        return options
    own = dict(options)
    cloud_init = own.get("cloud_init")
    if isinstance(cloud_init, Mapping):
        own["cloud_init"] = {
            key: value
            for key, value in cloud_init.items()
            if value != _CLOUD_INIT_DEFAULTS.get(key)
        }
    named = class_options(label, own.get("classes") or {}, VM_SPECS)
    if named.get("backup") is not None:
        raise validate.refused(
            f"classes.{label}.backup",
            named["backup"],
            "is about backup jobs, which a task on one VM does not change",
            "Use module vms, or a class without backup",
        )
    return {**own, **lay_over(without_empty_texts(named), own)}
