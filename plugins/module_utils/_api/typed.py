# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer that reads answers: above it each has the form that `answers` declares."""

from __future__ import annotations

from typing import Any

from .._core.errors import ApiError, FleetError, NetworkError
from .answers import form_of
from .forms import Unfit
from .protocols import Row, Transport
from .request import Request

_STEP = (
    "Check that host and port lead to Proxmox VE, and the proxies on the way. If they do, this"
    " version of Proxmox VE is not supported: please report it"
)


class Typed:
    """Returns each answer in its form.

    An answer to a read that has another form is an ApiError. One to a write is lost, which leaves
    open whether the write happened.
    """

    def __init__(self, below: Transport) -> None:
        self._below = below

    @property
    def has_answered(self) -> bool:
        """Whether anything ever answered at the endpoint."""
        return self._below.has_answered

    @property
    def rows(self) -> list[Row]:
        """The record of the requests sent so far."""
        return self._below.rows

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self._below.close()

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError."""
        answer = self._below.send(request)
        form = form_of(request.method, request.segments)
        if form is None:
            return answer
        try:
            return form(answer)
        except Unfit as problem:
            raise _malformed(request, problem) from None


def _malformed(request: Request, problem: Unfit) -> FleetError:
    kind = ApiError if request.method == "GET" else NetworkError
    return kind(
        answer=f"Proxmox VE answered with something else than expected: {problem}",
        next_step=_STEP,
        reason="malformed answer",
        method=request.method,
        path="/" + "/".join(request.path),
        retryable=False,
    )
