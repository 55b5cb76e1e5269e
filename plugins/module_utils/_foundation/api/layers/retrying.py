# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer that repeats requests, with different rules for reads and for writes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from ...core.clock import Clock
from ...core.errors import (
    ApiError,
    AuthenticationError,
    FleetError,
    Locked,
    NetworkError,
    PermissionDenied,
)
from ...core.retry import Backoff, NetworkBudget, TimeBudget
from ..protocols import Sender, Transport
from ..request import Request
from ..settings import ConnectionSettings
from ..tasks import with_holder

# Tries if no connection is possible. If the endpoint has never answered, a wrong address is more
# likely than a busy server; a node that PVE cannot reach is probably down.
CONNECT_TRIES = 3
# Failures of a check that could not read the state.
_UNCONFIRMED = (ApiError, AuthenticationError, NetworkError, PermissionDenied)
_UNKNOWN = "Whether it happened is unknown: look at the state before it is done again"


@dataclass(frozen=True)
class RetryingLayer:
    """Repeats reads freely, and a write only when it certainly did not happen.

    A write is sent again if it was not dispatched, if PVE refused it because of a lock, or if
    `confirm` found that it did not happen.
    """

    below: Sender
    transport: Transport
    connection: ConnectionSettings
    clock: Clock
    rng: random.Random

    def send(self, request: Request) -> Any:
        """Return `data` of the answer. Raises FleetError, with the number of tries."""
        tries = request.tries
        if tries is None:
            tries = self.connection.retries
        network = NetworkBudget(
            self.clock, Backoff(rng=self.rng), self.connection.retry_timeout, tries
        )
        locked = request.lock_budget
        if locked is None:
            locked = TimeBudget(self.clock, self.connection.lock_timeout)
        if request.method == "GET":
            return self._read(request, network, locked)
        return self._write(request, network, locked)

    def _read(self, request: Request, network: NetworkBudget, locked: TimeBudget) -> Any:
        while True:
            attempt = request.of_try(network.tries + locked.tries - 1)
            try:
                return self.below.send(attempt)
            except FleetError as error:
                # A caller that allows one try wants an answer soon: it does not wait for a lock.
                is_final = request.tries == 1 or not error.retryable
                if is_final or not self._wait(error, network, locked):
                    raise with_holder(self, attempt, attempt.failure(error)) from error

    def _write(self, request: Request, network: NetworkBudget, locked: TimeBudget) -> Any:
        number = 0
        while True:
            number += 1
            if number > 1 and request.again is not None:
                request.again()
            attempt = request.of_try(number)
            try:
                return self.below.send(attempt)
            except Locked as error:
                if not locked.again():
                    raise with_holder(self, attempt, attempt.failure(error)) from error
            except NetworkError as error:
                found = self._after_lost_answer(attempt, error, network, locked)
                if found is not None:
                    return found
            except FleetError as error:
                raise attempt.failure(error) from error

    def _after_lost_answer(
        self, request: Request, error: NetworkError, network: NetworkBudget, locked: TimeBudget
    ) -> Any:
        """Return the result of the write, or None if it must be sent again; otherwise raise the
        failure.
        """
        again = error.retryable and self._wait(error, network, locked)
        if error.dispatched is not False:
            found = _confirm(request, error)
            if found is not None:
                return found
        if not again:
            raise request.failure(error) from error
        return None

    def _wait(self, error: FleetError, network: NetworkBudget, locked: TimeBudget) -> bool:
        """Pause and return True, or return False if the budget for this failure is used up."""
        if isinstance(error, Locked):
            return locked.again()
        if not isinstance(error, NetworkError):
            return False
        if error.dispatched is not False:
            return network.again()
        if error.status is None and self.transport.has_answered:
            return network.again()
        return network.again(CONNECT_TRIES)


def _confirm(request: Request, failure: FleetError) -> Any:
    """Check the state after a lost answer: return the result of the write, or None if it did not
    happen.

    Raises the failure if no check exists or the check fails too: the state is unknown.
    """
    unknown = request.failure(failure).on(next_step=_UNKNOWN, retryable=False)
    if request.confirm is None:
        raise unknown
    try:
        return request.confirm()
    except _UNCONFIRMED as error:
        raise unknown from error
