# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names an estate gives to things: sizes (classes), networks and storages become plain VM options
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.validation import check_type_dict

from ..._core import validate
from ..._core.arguments.options import check_options, hidden_values
from ..._core.errors import ValidationFailed
from ..._guest.desired.layers import lay_over
from ..._guest.desired.presets import name_presets, unknown_name
from ..._spec.fleet import VM_SPECS, GuestSpecs
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
    return {**own, **lay_over(class_options(label, own.get("classes") or {}), own)}


def class_options(
    label: str, classes: Mapping[str, Any], specs: GuestSpecs = VM_SPECS
) -> dict[str, Any]:
    """Return the options of a class for one kind of guests, checked and converted as Ansible does
    it with the module's options.

    Raises ConfigurationError for a class that does not exist and ValidationFailed for options that
    a class cannot have.
    """
    if label not in classes:
        raise unknown_name("class", label, classes)
    content = classes[label]
    if not isinstance(content, Mapping):
        raise validate.refused(
            f"classes.{label}",
            content,
            "is not a dictionary",
            "Give it options such as cores and memory",
        )
    try:
        return without_left_out(check_options(specs.of_class, specs.own(content)))
    except ValidationFailed as error:
        raise ValidationFailed(
            attempted=f"classes.{label} was refused",
            answer=error.answer,
            next_step="A class takes the options of a guest that are not its name, place or state",
            reason="classes",
        ) from None


def class_secrets(arguments: Mapping[str, Any], specs: GuestSpecs = VM_SPECS) -> set[str]:
    """Return the secrets in the classes of a task's arguments, and of its VMs', which nothing has
    checked yet.
    """
    found: set[str] = set()
    vms = arguments.get("vms")
    for said in (arguments, *(vms if isinstance(vms, list) else ())):
        for content in _as_dict(_as_dict(said).get("classes")).values():
            found |= hidden_values(specs.of_class, content)
    return found


def _as_dict(value: Any) -> Mapping[str, Any]:
    try:
        said: Mapping[str, Any] = check_type_dict(value)
    except (TypeError, ValueError):
        return {}
    return said
