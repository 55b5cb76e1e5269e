# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request that passes through the layers of a client (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from ..core.errors import FleetError, ValidationFailed
from ..core.retry import TimeBudget

Confirm = Callable[[], Any]
"""A check of the server after a lost answer: None if the write did not happen, else the lost
answer.
"""

Again = Callable[[], None]
"""A check before a write is sent again: raises if it must not be sent."""


UploadProgress = Callable[["Upload", int, int, float], None]
"""Called as `progress(upload, bytes sent, size of the file, seconds)` while a file is sent."""


@dataclass(frozen=True)
class Upload:
    """A local file in a request, its name in the request, and its place in messages.

    `progress` is called before each piece of the file.
    """

    path: str
    name: str
    place: str = ""
    progress: UploadProgress | None = None


@dataclass(frozen=True)
class Request:
    """A request, and the limits of its tries.

    `values` are the query or the form, encoded. `timeout` (seconds for one answer) and `tries`
    replace the connection's. `lock_budget` is shared by all requests of one operation. `attempted`
    begins the message of a failure. `beside` is an attribute of PVE's answer beside its data: if it
    is set, the returned answer is an object with both.
    """

    method: str
    segments: tuple[str | int, ...]
    values: Mapping[str, str]
    attempted: str = ""
    timeout: float | None = None
    tries: int | None = None
    number: int = 1  # number of this try
    confirm: Confirm | None = None
    lock_budget: TimeBudget | None = None
    again: Again | None = None
    beside: str = ""
    upload: Upload | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The segments as texts."""
        return tuple(str(part) for part in self.segments)

    def of_try(self, number: int) -> Request:
        """Return the request for this try; for the first try the request itself."""
        if number == self.number:
            return self
        return replace(self, number=number)

    def failure(self, error: FleetError) -> FleetError:
        """Return the error with the number of the try and, if it has none, the attempted action."""
        attempted = error.attempted or self.attempted or _plain_attempt(error)
        return error.on(attempted=attempted, tries=self.number)


def encode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query or form as PVE reads it: booleans as 1 and 0, numbers as text, None left out.

    A list of texts repeats its key. Raises ValidationFailed for another type: the caller renders
    property strings.
    """
    encoded: dict[str, Any] = {}
    for key, value in values.items():
        if value is None:
            continue
        if isinstance(value, bool):
            encoded[key] = "1" if value else "0"
        elif isinstance(value, (str, int, float)):
            encoded[key] = str(value)
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            encoded[key] = value
        else:
            raise ValidationFailed(
                f"Could not send {key}: a {type(value).__name__} cannot be sent to Proxmox VE",
                "Render it as text first",
                "not rendered",
            )
    return encoded


def quoted(part: str | int) -> str:
    """Return one segment of a path, percent-encoded.

    Raises ValidationFailed for an empty or dotted segment, which would change the path.
    """
    text = str(part)
    if text in ("", ".", ".."):
        raise ValidationFailed(
            f"Could not build a request: {text!r} is not a segment of a path",
            "Give the object's name",
            "empty name",
        )
    return quote(text, safe="")


def _plain_attempt(error: FleetError) -> str:
    if not error.path:
        return ""
    if error.method == "GET":
        return f"Could not read {error.path}"
    return f"{error.method} {error.path} failed".strip()
