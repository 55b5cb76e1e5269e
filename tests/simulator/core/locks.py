"""The lock on a machine's configuration file, waited for as PVE waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ..errors import PveError


class ConfigLock:
    """One writer or several readers; a wait that lasts too long fails with PVE's text."""

    def __init__(self) -> None:
        self.writer = False
        self.readers = 0
        self._changed: list[asyncio.Future[None]] = []

    def free(self, shared: bool) -> bool:
        """Whether it can be had at once."""
        return not self.writer and (shared or not self.readers)

    async def wait(self, shared: bool, timeout: float) -> bool:
        """Wait until it is free; False when the time is up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while not self.free(shared):
            left = end - loop.time()
            if left <= 0:
                return False
            future: asyncio.Future[None] = loop.create_future()
            self._changed.append(future)
            try:
                await asyncio.wait_for(future, left)
            except asyncio.TimeoutError:
                return False
        return True

    def take(self, shared: bool) -> None:
        """Hold it; it must be free."""
        if shared:
            self.readers += 1
        else:
            self.writer = True

    def release(self, shared: bool) -> None:
        """Give it back and wake who waits."""
        if shared:
            self.readers -= 1
        else:
            self.writer = False
        waiting, self._changed = self._changed, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class LockTable:
    """The locks by VMID; a machine that is yet to be made has one as well."""

    def __init__(self) -> None:
        self._locks: dict[int, ConfigLock] = {}

    def of(self, vmid: int) -> ConfigLock:
        """The lock of that VMID."""
        lock = self._locks.get(vmid)
        if lock is None:
            lock = self._locks[vmid] = ConfigLock()
        return lock

    def is_free(self, vmid: int) -> bool:
        """Whether the lock of that VMID is free."""
        lock = self._locks.get(vmid)
        return lock is None or lock.free(False)

    @asynccontextmanager
    async def hold(
        self,
        vmid: int,
        timeout: float = 10.0,
        *,
        shared: bool = False,
        log: Callable[[str], None] | None = None,
    ) -> AsyncIterator[None]:
        """Hold the lock of the machine's configuration during the block."""
        lock = self.of(vmid)
        if not lock.free(shared):
            if log:
                log("trying to acquire lock...")
            if not await lock.wait(shared, timeout):
                raise PveError(
                    f"can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout"
                )
            if log:
                log(" OK")
        lock.take(shared)
        try:
            yield
        finally:
            lock.release(shared)
