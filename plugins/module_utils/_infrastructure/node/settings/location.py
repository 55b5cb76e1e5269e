# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The location of a node on a map, in the same form as the location of the cluster (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ...._foundation.core.errors import NotSupported, ValidationFailed
from ...datacenter.general import LOCATION

_SINCE = (9, 2)
_NOT_CHANGED = "The settings of node {} were not changed"


def location_after(
    node: str, known: Mapping[str, str], desired: Mapping[str, str]
) -> dict[str, str]:
    """Return the location after a task; an empty text removes a key.

    Raises ValidationFailed for one coordinate without the other, or a name without coordinates.
    """
    found = {key: text for key, text in {**known, **desired}.items() if text}
    for sub_key in LOCATION.sub_keys:
        if sub_key.key in found and sub_key.needs not in found:
            raise ValidationFailed(
                attempted=_NOT_CHANGED.format(node),
                answer=f"location.{sub_key.option} needs location.{sub_key.needs}",
                next_step=f"Set location.{sub_key.needs} too",
                reason="location",
            )
    return found


def require_version(node: str, version: tuple[int, int]) -> None:
    """Raise NotSupported for a version without locations of nodes."""
    if version < _SINCE:
        raise NotSupported(
            attempted=_NOT_CHANGED.format(node),
            answer=f"location came with Proxmox VE 9.2, and this is {version[0]}.{version[1]}",
            next_step="Leave out location",
            reason="version",
        )
