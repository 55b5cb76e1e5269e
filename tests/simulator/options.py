"""The command line of the simulator."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from .schema.definition import VERSIONS


class UsageError(Exception):
    """The simulator was started in a wrong way: reported in one line, exit status 2."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


@dataclass(slots=True)
class Options:
    """How to run."""

    host: str = "127.0.0.1"
    port: int = 0
    cluster: Path | None = None
    nodes: int | None = None
    vms: int = 0
    seed: int = 1
    latency_ms: float = 0.0
    task_ms: dict[str, float] = field(default_factory=dict)
    task_slots: int = 0
    lag_s: float = 0.3
    list_ms: float = 0.0
    cleanup_s: float = 0.3
    max_concurrency: int = 0
    control: bool = False
    pve_version: str = "9.2"
    auth_delay_s: float = 3.0
    proxy_delay_s: float = 3.1
    ca_dir: Path | None = None


# The default cluster: something to clone, and a storage for the clone.
DEMO = Path(__file__).parent / "clusters" / "demo.yml"
# The command that starts it: a module in a clone, a program if it is installed.
PROGRAM = "python -m tests.simulator" if __package__ == "tests.simulator" else "pve-simulator"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def parse_task_ms(text: str) -> dict[str, float]:
    """`qmclone=3000,default=100` as milliseconds by task type."""
    result: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1
        if not equals or not name or number < 0:
            raise UsageError(f"--task-ms: '{part}' is not TYPE=MILLISECONDS")
        result[name] = number
    return result


def parse(argv: list[str] | None) -> Options:
    """The options; raises UsageError."""
    parser = _Parser(
        prog=PROGRAM,
        description=(
            "A simulated Proxmox VE API on the loopback interface. Prints `ready URL` and `ca"
            " FILE`."
        ),
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="loopback address to listen on (default: %(default)s)")
    add(
        "--port",
        type=int,
        default=0,
        help="port to listen on, 0 for any free one (default: %(default)s)",
    )
    add(
        "--cluster",
        type=Path,
        metavar="FILE",
        help="describe the cluster with this YAML file (default: the demo)",
    )
    add("--nodes", type=int, metavar="N", help="make up a cluster of N nodes instead")
    add(
        "--vms",
        type=int,
        default=0,
        metavar="N",
        help="make up N virtual machines (default: %(default)s)",
    )
    add(
        "--seed",
        type=int,
        default=1,
        help="what is made up is the same for the same seed (default: %(default)s)",
    )
    add(
        "--latency-ms",
        type=float,
        default=0.0,
        metavar="MS",
        help="answer no sooner than after this time",
    )
    add(
        "--task-ms",
        default="",
        metavar="TYPE=MS,...",
        help="how long tasks take, e.g. qmclone=3000,default=100",
    )
    add(
        "--task-slots",
        type=int,
        default=0,
        metavar="N",
        help="tasks that a node runs at once, 0 for no limit",
    )
    add(
        "--lag-s",
        type=float,
        default=0.3,
        metavar="S",
        help="how late /cluster/resources is (default: %(default)s)",
    )
    add(
        "--list-ms",
        type=float,
        default=0.0,
        metavar="MS",
        help="how long a node takes to list its machines",
    )
    add(
        "--cleanup-s",
        type=float,
        default=0.3,
        metavar="S",
        help="lock after a rollback (default: %(default)s)",
    )
    add(
        "--max-concurrency",
        type=int,
        default=0,
        metavar="N",
        help="requests served at once, 0 for no limit",
    )
    add(
        "--control",
        action="store_true",
        help="also serve the control plane and print `control URL`",
    )
    add(
        "--pve-version",
        default="9.2",
        help=f"API version: {' or '.join(VERSIONS)} (default: %(default)s)",
    )
    add(
        "--auth-delay-s",
        type=float,
        default=3.0,
        metavar="S",
        help="how long a 401 is held back (default: 3)",
    )
    add(
        "--proxy-delay-s",
        type=float,
        default=3.1,
        metavar="S",
        help="until a 595 about a dead node (default: 3.1)",
    )
    add(
        "--ca-dir",
        type=Path,
        metavar="DIR",
        help="where to write the CA certificate (default: a temporary directory)",
    )
    values = vars(parser.parse_args(argv))
    values["task_ms"] = parse_task_ms(values["task_ms"])
    options = Options(**values)
    _check(options)
    return options


_NOT_NEGATIVE = (
    "vms",
    "latency_ms",
    "task_slots",
    "lag_s",
    "list_ms",
    "cleanup_s",
    "max_concurrency",
    "auth_delay_s",
    "proxy_delay_s",
)


def _check(options: Options) -> None:
    if options.host not in LOOPBACK:
        raise UsageError(f"--host: '{options.host}' is not a loopback address")
    if options.pve_version not in VERSIONS:
        raise UsageError(
            f"--pve-version: '{options.pve_version}' is not one of {', '.join(VERSIONS)}"
        )
    if options.cluster is None and options.nodes is None and not options.vms:
        options.cluster = DEMO
    if options.cluster is not None and options.nodes is not None:
        raise UsageError("--cluster and --nodes exclude each other")
    if options.nodes is not None and not 1 <= options.nodes <= 64:
        raise UsageError("--nodes: 1 to 64")
    if not 0 <= options.port <= 65535:
        raise UsageError("--port: 0 to 65535")
    for name in _NOT_NEGATIVE:
        if getattr(options, name) < 0:
            raise UsageError(f"--{name.replace('_', '-')}: must not be negative")
