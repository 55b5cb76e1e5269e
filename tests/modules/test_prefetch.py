# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Items of a loop in the controller's process, on a server where VMs change between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._api.settings import Connection
from ansible_collections.pve.fleet.plugins.modules.vm import ENTRY
from ansible_collections.pve.fleet.plugins.plugin_utils import _arguments
from ansible_collections.pve.fleet.plugins.plugin_utils._clients import Clients
from tests.simulator.process import DEMO, TOKEN_ID, TOKEN_SECRET, Simulator


def play(
    simulator: Simulator, clients: Clients, verbosity: int = 0, **options: Any
) -> dict[str, Any]:
    """Run one item of module vm as the action plugin does."""
    connection = {
        "host": simulator.url,
        "ca_path": simulator.ca,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }
    checked = _arguments.check(ENTRY, "vm", {**connection, **options})
    assert not checked.error

    @contextmanager
    def lend(wanted: Connection) -> Iterator[Client]:
        with clients.lend(wanted, {}) as kept:
            with kept.prefetcher.item(kept.client, "vm", checked.params) as client:
                yield client

    outcome = ENTRY.perform(
        checked.params, {}, check_mode=False, diff=False, verbosity=verbosity, lend=lend
    )
    assert not outcome.failed, outcome.values
    return outcome.values


def test_items_read_ahead_and_see_what_is_true_now() -> None:
    with Simulator(
        "--cluster", DEMO, "--lag-s", "0", "--latency-ms", "20", "--task-ms", "default=1"
    ) as simulator:
        clients = Clients()
        vmids = {}
        for name in "abcd":
            made = play(
                simulator,
                clients,
                name=name,
                node="pve1",
                cores=1,
                disks=[{"size": 1, "storage": "ceph"}],
            )
            vmids[name] = made["vm"]["vmid"]
        simulator.reset_log()
        assert not play(simulator, clients, name="a", cores=1)["changed"]
        assert not play(simulator, clients, name="b", cores=1)["changed"]
        log = simulator.log()
        listing, config = sorted(log[2:], key=lambda entry: "/qemu/" in entry["path"])
        assert len(log) == 4, "reading ahead costs no request"
        assert f"/qemu/{vmids['b']}/" in config["path"]
        assert config["time"] < listing["time"] + listing["ms"] / 1000, (
            "both were under way at once"
        )

        simulator.steer(f"/vms/{vmids['c']}", {"node": "pve2", "config": {"cores": "3"}})
        changed = play(simulator, clients, name="c", cores=1)
        assert (changed["changed"], changed["vm"]["node"], changed["vm"]["config"]["cores"]) == (
            True,
            "pve2",
            1,
        )

        simulator.ask("DELETE", f"/vms/{vmids['d']}")
        assert not play(simulator, clients, name="a", cores=1)["changed"]
        again = play(
            simulator,
            clients,
            name="d",
            node="pve1",
            cores=1,
            disks=[{"size": 1, "storage": "ceph"}],
        )
        assert again["changed"]
        clients.close()


def test_items_in_the_order_of_the_names_do_not_wait_for_each_other() -> None:
    names = [f"web-{number}" for number in (1, 2, 9, 10, 11, 12)]
    with Simulator("--cluster", DEMO, "--lag-s", "0", "--task-ms", "default=1") as simulator:
        clients = Clients()
        disk = {"size": 1, "storage": "ceph"}
        for name in names:
            play(simulator, clients, name=name, node="pve1", cores=1, disks=[disk])
        clients.close()

        clients = Clients()
        simulator.reset_log()
        for name in names:
            unchanged = play(simulator, clients, verbosity=3, name=name, cores=1)
            assert not unchanged["changed"]
            assert len(unchanged["requests"]) == 2, "those of this item, whenever they were sent"
        clients.close()
        assert len(simulator.log()) == 2 * len(names)
