"""Measures the simulator: start, memory, and GETs a second with many clients at a given latency.

`python -m tests.simulator.bench` starts a server with 10,000 machines, asks it with 100 clients for
a few seconds, and prints the rates and the limiting resource. The clients run in processes of their
own and speak minimal HTTP, so that the server is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import ssl
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from .process import TOKEN_ID, TOKEN_SECRET, Simulator

START_LIMIT = 5.0
MEMORY_LIMIT = 1 << 30
RATE_GOAL = 4000


def _requests(host: str, nodes: int, vms: int, count: int, seed: int) -> list[bytes]:
    """Requests of a client: the status and the configuration of random machines."""
    chance = random.Random(seed)
    made = []
    for _dummy in range(count):
        number = chance.randrange(vms)
        what = chance.choice(("status/current", "config", "config", "pending"))
        path = f"/api2/json/nodes/pve{1 + number % nodes}/qemu/{10000 + number}/{what}"
        made.append(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}\r\n\r\n".encode()
        )
    return made


class Gate:
    """Holds the clients back until all of them, in every process, are connected."""

    def __init__(self, waiting: int, barrier: Any, seconds: float) -> None:
        self.waiting = waiting
        self.barrier = barrier
        self.seconds = seconds
        self.open: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def opened(self) -> float:
        """When to stop."""
        self.waiting -= 1
        if self.waiting == 0:
            await asyncio.to_thread(self.barrier.wait)
            self.open.set_result(time.time() + self.seconds)
        return await self.open


async def _client(
    host: str, port: int, context: ssl.SSLContext, asked: list[bytes], gate: Gate
) -> int:
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    done = 0
    end = await gate.opened()
    while time.time() < end:
        writer.write(asked[done % len(asked)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.split(b"\r\n")[0].decode())
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        done += 1
    writer.close()
    return done


class Load(NamedTuple):
    """Ask a server with a number of clients for a number of seconds: the work of one process."""

    host: str
    port: int
    ca: str
    clients: int
    seconds: float


def _run_clients(load: Load, asked: list[bytes], seed: int, barrier: Any, out: Any) -> None:
    try:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    except ImportError:
        pass
    context = ssl.create_default_context(cafile=load.ca)
    random.Random(seed).shuffle(asked)

    async def everybody() -> int:
        gate = Gate(load.clients, barrier, load.seconds)
        counts = await asyncio.gather(
            *(_client(load.host, load.port, context, asked, gate) for _dummy in range(load.clients))
        )
        return sum(counts)

    out.put((asyncio.run(everybody()), time.process_time()))


def _process_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _machine_ticks() -> tuple[int, int]:
    """(idle, all) clock ticks of the machine's cores."""
    fields = [
        int(field)
        for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    ]
    return fields[3] + fields[4], sum(fields)


def _memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(options: argparse.Namespace) -> dict[str, float]:
    """The figures of one run."""
    started_at = time.perf_counter()
    arguments = [
        "--nodes",
        5,
        "--vms",
        options.vms,
        "--seed",
        1,
        "--latency-ms",
        options.latency_ms,
    ]
    with Simulator(*arguments) as simulator:
        started = time.perf_counter() - started_at
        asked = _requests(f"{simulator.host}:{simulator.port}", 5, options.vms, 2000, 1)
        spawn = multiprocessing.get_context("spawn")
        results: Any = spawn.Queue()
        barrier = spawn.Barrier(options.processes + 1)
        share = options.clients // options.processes
        load = Load(simulator.host, simulator.port, simulator.ca, share, options.seconds)
        workers = [
            spawn.Process(target=_run_clients, args=(load, asked, seed, barrier, results))
            for seed in range(options.processes)
        ]
        for worker in workers:
            worker.start()
        barrier.wait()
        cpu, wall, ticks = _process_seconds(simulator.pid), time.time(), _machine_ticks()
        found = [results.get() for _dummy in workers]
        taken = time.time() - wall
        busy = (_process_seconds(simulator.pid) - cpu) / taken
        idle, every = (now - then for now, then in zip(_machine_ticks(), ticks, strict=True))
        for worker in workers:
            worker.join()
        return {
            "idle": idle / max(1, every),
            "start": started,
            "memory": _memory(simulator.pid),
            "rate": sum(item[0] for item in found) / taken,
            "busy": busy,
            "client_cpu": sum(item[1] for item in found) / taken,
        }


def main(argv: list[str] | None = None) -> int:
    """Measure and tell.

    Exit status 1 when a limit is broken that does not depend on the machine's cores.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulator.bench", description=__doc__)
    parser.add_argument("--vms", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument(
        "--processes", type=int, default=2, help="processes that the clients are spread over"
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    options = parser.parse_args(argv)
    found = measure(options)
    cores = os.cpu_count() or 1
    print(f"start   {found['start']:.2f} s with {options.vms} machines (limit {START_LIMIT:.0f} s)")
    print(f"memory  {found['memory'] / 2**20:.0f} MiB (limit {MEMORY_LIMIT / 2**20:.0f} MiB)")
    print(
        f"GETs    {found['rate']:.0f} a second, {options.clients} clients, {options.latency_ms:.0f}"
        " ms latency"
    )
    ceiling = options.clients / (options.latency_ms / 1000) if options.latency_ms else float("inf")
    if found["rate"] >= RATE_GOAL:
        verdict = f"goal of {RATE_GOAL} a second reached"
    elif found["busy"] > 0.85 or found["idle"] < 0.15:
        verdict = "bound by the machine's cores"
    else:
        verdict = (
            f"bound by neither goal nor cores: {ceiling:.0f} a second are possible at this latency"
        )
    print(
        f"bound   {verdict}: of {cores} cores {found['idle']:.0%} were idle, the server used"
        f" {found['busy']:.0%} of one"
    )
    whole = found["rate"] / max(found["busy"], 0.01)
    print(
        f"        and the clients {found['client_cpu']:.0%}; a whole core would serve {whole:.0f} a"
        " second"
    )
    return 0 if found["start"] <= START_LIMIT and found["memory"] <= MEMORY_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
