"""Requests that are due at the same moment take turns; new requests are read in between."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Lets one request through in each round of the event loop.

    Otherwise all due requests are served in one round, and the next requests of their clients are
    read only after the last of them: all would be due at the same moment again, with the server
    idle until then.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False

    async def take(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        if not self._busy:
            self._busy = True
            loop.call_soon(self._next)
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # a client that went away
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._busy = False
