# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A snapshot as the source of a clone (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ..._core.errors import UnknownSnapshot
from ..model import Actual

# Options of a snapshot that a guest does not have.
_OF_SNAPSHOT = frozenset(
    "snaptime snapstate vmstate parent runningmachine runningcpu running-nets-host-mtu".split()
)


def in_snapshot(
    source: Actual, snapshot: str, names: Collection[str], answer: Mapping[str, Any] | None
) -> Actual:
    """Return the guest in the state of the snapshot, whose configuration is `answer`.

    Raises NotFound for a snapshot that is not among `names`, which has no configuration.
    """
    if answer is None:
        existing = ", ".join(sorted(names))
        raise UnknownSnapshot(
            attempted=f"Snapshot '{snapshot}' of {source.label} was not cloned",
            answer=f"its snapshots are {existing or 'none'}",
            next_step="Check the snapshot's name",
            reason="unknown snapshot",
        )
    config: dict[str, str] = {}
    for key, value in answer.items():
        if key == "digest" or key in _OF_SNAPSHOT:
            continue
        config[key] = str(value).strip("\n")
    return replace(source, live=config, target=config)
