# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer that converts each answer into the form of its call."""

from __future__ import annotations

from typing import Any

from ...core.errors import ApiError, FleetError, NetworkError
from ..layers.layer import Layer
from ..protocols import Transport
from ..request import Request
from .calls import form_of
from .forms import WrongForm

_STEP = (
    "Check that host and port lead to Proxmox VE, and the proxies on the way. If they do, this"
    " version of Proxmox VE is not supported: please report it"
)


class FormCheckLayer(Layer[Transport]):
    """Returns each answer in its form.

    If the answer to a read has another form, that is an ApiError. If the answer to a write has
    another form, it counts as lost: it is unknown whether the write happened.
    """

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
            raise _malformed(request, problem) from None


def _malformed(request: Request, problem: WrongForm) -> FleetError:
    kind = ApiError if request.method == "GET" else NetworkError
    return kind(
        answer=f"Proxmox VE answered with something else than expected: {problem}",
        next_step=_STEP,
        reason="malformed answer",
        method=request.method,
        path="/" + "/".join(request.path),
        retryable=False,
    )
