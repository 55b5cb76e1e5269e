# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer that converts each answer into the form of its call, and one for answers that are only
shown: their texts contain no control characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import ApiError, NetworkError
from ...core.formatting import printable_data
from ..protocols import Sender
from ..request import Request
from .forms import Form, WrongForm, optional, task_id
from .generated.answers import READS, WRITES

_TASK_OR_NOTHING = optional(task_id)  # the answer to a write on a node


def _nested(forms: Mapping[str, Form]) -> dict[tuple[int, str], list[tuple[list[str], Form]]]:
    """Return the forms by the number of segments and the first one."""
    found: dict[tuple[int, str], list[tuple[list[str], Form]]] = {}
    for path, form in forms.items():
        parts = path.split("/")
        found.setdefault((len(parts), parts[0]), []).append((parts, form))
    return found


_READS, _WRITES = _nested(READS), _nested(WRITES)


def form_of(method: str, segments: Sequence[str | int]) -> Form | None:
    """Return the form of an answer, or None if any answer is accepted."""
    forms = _READS if method == "GET" else _WRITES
    for parts, form in forms.get((len(segments), str(segments[0])), ()):
        if all(part in ("*", one) for part, one in zip(parts, segments, strict=True)):
            return form
    if method != "GET" and segments[0] == "nodes":
        return _TASK_OR_NOTHING
    return None


_STEP = (
    "Check that host and port lead to Proxmox VE, and the proxies on the way. If they do, this"
    " version of Proxmox VE is not supported: please report it"
)


class FormCheckLayer:
    """Returns each answer in its form.

    If the answer to a read has another form, that is an ApiError. If the answer to a write has
    another form, it counts as lost: it is unknown whether the write happened.
    """

    def __init__(self, below: Sender) -> None:
        self._below = below

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""
        answer = self._below.send(request)
        form = form_of(request.method, request.segments)
        if form is None:
            return answer
        try:
            if not request.beside:
                return form(answer)
            if not isinstance(answer, dict) or "data" not in answer:
                raise WrongForm("has no data")
            return {**answer, "data": form(answer["data"])}
        except WrongForm as problem:
            kind = ApiError if request.method == "GET" else NetworkError
            raise kind(
                answer=f"Proxmox VE answered with something else than expected: {problem}",
                next_step=_STEP,
                reason="malformed answer",
                method=request.method,
                path="/" + "/".join(request.path),
                retryable=False,
            ) from None


class PrintableLayer:
    """Replaces control characters in the texts of each answer."""

    def __init__(self, below: Sender) -> None:
        self._below = below

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""
        return printable_data(self._below.send(request))
