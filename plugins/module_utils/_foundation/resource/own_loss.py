# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the login of the task loses by a change (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core.errors import Conflict

LOGIN, RIGHTS = "own login", "own rights"
NOT_ACCEPTED = "is no longer accepted"


@dataclass(frozen=True)
class OwnLoss:
    """The rights that the login loses.

    `text` continues a sentence that begins with the login. `lost` are privileges by path.
    """

    text: str
    reason: str
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)


def require_allowed(loss: OwnLoss, login: str, attempted: str, *, allow_self: bool) -> str:
    """Return a warning about the loss. Raises Conflict unless the task allows it."""
    if allow_self:
        return f"The login of this task, {login}, {loss.text}"
    raise Conflict(
        f"{attempted}: the login of this task, {login}, then {loss.text}",
        "Use another login, or set allow_self=true",
        loss.reason,
        details={"lost": {path: list(names) for path, names in loss.lost.items()}},
    )
