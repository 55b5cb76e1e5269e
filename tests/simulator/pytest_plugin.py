"""The pytest plugin: a simulated Proxmox VE as a fixture.

It is loaded automatically if the package is installed. In a clone of the repository, ask for it
with `-p tests.simulator.pytest_plugin`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

import pytest

from .process import Simulator

# The demo cluster, and nothing to wait for.
DEFAULT_ARGS = ("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `pve_simulator_args`."""
    parser.addini(
        "pve_simulator_args",
        "How the simulated Proxmox VE is started, for example --cluster tests/cluster.yml"
        " --lag-s 10",
        default=shlex.join(DEFAULT_ARGS),
    )


@pytest.fixture(scope="session")
def pve_simulator_args(pytestconfig: pytest.Config) -> list[str]:
    """The command line of the server: the setting `pve_simulator_args`.

    Override it in a conftest.py if need be.
    """
    return shlex.split(pytestconfig.getini("pve_simulator_args"))


@pytest.fixture(scope="session")
def pve_simulator_factory() -> Iterator[Callable[..., Simulator]]:
    """A function that starts another server with the given command line.

    All stop when the session ends.
    """
    started: list[Simulator] = []

    def start(*args: object) -> Simulator:
        simulator = Simulator(*(args or DEFAULT_ARGS)).start()
        started.append(simulator)
        return simulator

    yield start
    for simulator in started:
        simulator.stop()


@pytest.fixture(scope="session")
def pve_simulator_server(
    pve_simulator_args: list[str], pve_simulator_factory: Callable[..., Simulator]
) -> Simulator:
    """The server of the session, as earlier tests left it. A test wants `pve_simulator`."""
    return pve_simulator_factory(*pve_simulator_args)


@pytest.fixture
def pve_simulator(pve_simulator_server: Simulator) -> Simulator:
    """A simulated Proxmox VE in its initial state, with `url`, `ca`, `token`, `reset()`, `fault()`
    and `steer()`.
    """
    pve_simulator_server.reset()
    return pve_simulator_server
