# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parses the options of module container into values; no later code parses them again (pure).

Every refusal is a ValidationFailed, or a ConfigurationError for a name that no map contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from ....._foundation.core import validate
from ....kinds.container.kind import CONTAINER
from ....kinds.container.model import ContainerHardware, DesiredContainer
from ...desired.guest import GuestOptions, is_exact, options_of, read_guest
from ...desired.presets import name_presets
from ...desired.values import is_blank
from .hardware import read_environment, read_hardware
from .values import checked, without_empty_texts
from .volumes import read_volumes

_SHORTEST_PASSWORD = 5


ContainerOptions: TypeAlias = GuestOptions[DesiredContainer]


def read_options(params: Mapping[str, Any]) -> ContainerOptions:
    """Return the parsed options.

    `params` are the parameters of the module, checked by its argument specification.
    """
    plain = without_empty_texts(params)
    name_presets(plain, "mounts")
    options = checked(plain)
    return options_of(DesiredContainer(read_guest(CONTAINER, options), _hardware(options)), options)


def _hardware(options: Mapping[str, Any]) -> ContainerHardware:
    """Return the hardware that checked options describe."""
    keys = read_hardware(options)
    return ContainerHardware(
        scalars=keys.scalars,
        property_strings=keys.property_strings,
        unset=frozenset(keys.unset),
        disks=read_volumes(options["rootfs"], options["mounts"] or []),
        disks_exact=is_exact(options, "mounts"),
        nics_exact=is_exact(options, "nics"),
        environment=read_environment(options["environment"] or {}),
        password=_password(options["root_password"]),
        ssh_keys=options["ssh_keys"],
        default_storage=options["default_storage"],
        allow_privileged=options["allow_privileged"],
    )


def _password(given: str | None) -> str | None:
    """Return the password, None if it is left out. Raises ValidationFailed if PVE refuses it."""
    if given is None or is_blank(given):
        return None
    if len(given) < _SHORTEST_PASSWORD:
        raise validate.refused(
            "root_password", "***", "is too short", f"Use at least {_SHORTEST_PASSWORD} characters"
        )
    return given
