# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names an estate gives to things: sizes (classes), networks and storages become plain VM options
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core import validate
from ..._guest.desired.classes import class_options
from ..._guest.desired.layers import lay_over
from ..._guest.desired.presets import name_presets
from ..._spec.fleet import VM_SPECS
from ..._spec.generated.vm import hardware_spec
from .values import without_left_out

_CLOUD_INIT = hardware_spec()["cloud_init"]["options"]
_CLOUD_INIT_DEFAULTS = {
    name: rule["default"] for name, rule in _CLOUD_INIT.items() if "default" in rule
}


def resolve(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the module's params with class, network and storage class names replaced by their
    options.

    The VM's own options win over its class, the options of a NIC or disk over its network or
    storage class. Raises ConfigurationError for a name that no map has, ValidationFailed for a map
    of the wrong shape.
    """
    options = _with_class(without_left_out(params))
    name_presets(options, "disks")
    return options


def _with_class(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options over the options of their class.

    Defaults of Ansible within cloud_init do not count as given.
    """
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
    return {**own, **lay_over(without_left_out(named), own)}
