# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Named classes of guests in an estate: their options and secrets (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.validation import check_type_dict

from ...._foundation.core import validate
from ...._foundation.core.arguments.options import hidden_values, parse_options
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.spec.fleet import VM_SPECS, GuestSpecs
from .presets import unknown_name


def class_options(label: str, classes: Mapping[str, Any], specs: GuestSpecs) -> dict[str, Any]:
    """Return the options of a class for one kind of guests, checked and converted as Ansible checks
    and converts the module's options.

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
        return parse_options(specs.of_class, specs.own(content))
    except ValidationFailed as error:
        raise ValidationFailed(
            attempted=f"classes.{label} was refused",
            answer=error.answer,
            next_step="A class takes the options of a guest that are not its name, place or state",
            reason="classes",
        ) from None


def class_secrets(arguments: Mapping[str, Any], specs: GuestSpecs = VM_SPECS) -> set[str]:
    """Return the secrets in all classes of a task's arguments, before anything is checked."""
    found: set[str] = set()
    vms = arguments.get("vms")
    for options in (arguments, *(vms if isinstance(vms, list) else ())):
        for content in _as_dict(_as_dict(options).get("classes")).values():
            found |= hidden_values(specs.of_class, content)
    return found


def _as_dict(value: Any) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = check_type_dict(value)
    except (TypeError, ValueError):
        return {}
    return found
