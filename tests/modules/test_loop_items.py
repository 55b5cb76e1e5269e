# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Items of a loop in one process: unchanged items share a listing, changes read a new one."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import FRESH
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    TaskMode,
)
from ansible_collections.pve.fleet.plugins.plugin_utils._clients import Clients
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab

LISTING = "GET /cluster/resources"


class LaterClock(Clock):
    """A clock that a test puts forward."""

    later = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.later


class Loop:
    """The items of a loop over one module, with the connection that they share."""

    def __init__(self, lab: Lab, module: str) -> None:
        name = f"ansible_collections.pve.fleet.plugins.modules.{module}"
        self._entry: ModuleEntry = importlib.import_module(name).ENTRY
        self._lab = lab
        self.clock = LaterClock()
        self._clients = Clients(create=lambda connection: Client(connection, clock=self.clock))

    def item(self, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """Return the result of an item, with the number of its listings and of its writes."""
        checked = ArgumentSpecValidator(self._entry.whole_spec).validate(
            {**self._lab.connection, **options}
        )
        assert not checked.error_messages
        self._lab.simulator.reset_log()
        outcome = self._entry.perform(
            checked.validated_parameters,
            {},
            TaskMode(check, True, 0),
            lend=lambda connection: self._clients.lend(connection, {}),
            given=options,
        )
        requests = self._lab.simulator.counts()
        return {
            **outcome.values,
            "listings": requests.get(LISTING, 0),
            "reads": sum(n for name, n in requests.items() if name.startswith("GET ")),
            "writes": len(self._lab.simulator.writes()),
        }

    def close(self) -> None:
        self._clients.close()


@pytest.fixture
def loop(unused: Lab) -> Any:
    items = Loop(unused, "vm")
    yield items
    items.close()


def small(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "cores": 1, "memory": "256M", "blank": True, **options}


@pytest.fixture
def three(unused: Lab) -> list[dict[str, Any]]:
    """The options of three VMs that exist."""
    vms = [small(name) for name in ("loop1", "loop2", "loop3")]
    for options in vms:
        unused.vm(**options)
    return vms


def test_unchanged_items_share_a_listing(loop: Loop, three: list[dict[str, Any]]) -> None:
    items = [loop.item(**options) for options in three]
    assert [item["changed"] for item in items] == [False] * 3
    assert [item["listings"] for item in items] == [1, 0, 0]
    assert [item["reads"] for item in items] == [2, 1, 1]


def test_items_of_containers_share_one_too(unused: Lab) -> None:
    add_container(unused, 5001, hostname="one", cores=1)
    add_container(unused, 5002, hostname="two", cores=1)
    loop = Loop(unused, "container")
    items = [loop.item(name=name, cores=1) for name in ("one", "two")]
    loop.close()
    assert [item["changed"] for item in items] == [False] * 2
    assert [item["listings"] for item in items] == [1, 0]


@pytest.mark.parametrize("check", [False, True])
def test_a_change_is_planned_from_a_new_listing(
    loop: Loop, three: list[dict[str, Any]], check: bool
) -> None:
    loop.item(**three[0])
    changed = loop.item(check=check, **{**three[1], "cores": 2})
    assert changed["changed"]
    assert changed["listings"] == 1
    assert bool(changed["writes"]) is not check
    # an item with changes leaves no listing
    assert loop.item(**three[2])["listings"] == 1


def test_a_new_vm_is_planned_from_a_new_listing(loop: Loop, three: list[dict[str, Any]]) -> None:
    loop.item(**three[0])
    assert loop.item(**small("loop4"))["changed"]
    again = loop.item(**small("loop4"))
    assert not again["changed"]
    assert again["listings"] == 1


def test_an_old_listing_is_read_again(loop: Loop, three: list[dict[str, Any]]) -> None:
    loop.item(**three[0])
    loop.clock.later = FRESH + 1
    assert loop.item(**three[1])["listings"] == 1


def test_the_configuration_of_each_item_is_read(
    loop: Loop, unused: Lab, three: list[dict[str, Any]]
) -> None:
    loop.item(**three[0])
    vm = unused.run("vm_info", name="loop2")["vms"][0]
    data = {"cores": 4}
    unused.client.write("PUT", "nodes", vm["node"], "qemu", vm["vmid"], "config", data=data)
    changed = loop.item(**three[1])
    assert changed["changed"]
    assert unused.config(vm)["cores"] == 1


def test_a_vm_that_another_run_removed_is_created_again(
    loop: Loop, unused: Lab, three: list[dict[str, Any]]
) -> None:
    loop.item(**three[0])
    unused.vm(name="loop2", state="absent")
    created = loop.item(**three[1])
    assert created["changed"]
    assert not unused.vm(**three[1])["changed"]


def test_a_vm_that_moved_is_found(loop: Loop, unused: Lab, three: list[dict[str, Any]]) -> None:
    loop.item(**three[0])
    vm = unused.run("vm_info", name="loop2")["vms"][0]
    target = next(node for node in ("pve1", "pve2", "pve3") if node != vm["node"])
    unused.vm(name="loop2", node=target)
    found = loop.item(**three[1])
    assert not found["changed"]
    assert found["vm"]["node"] == target


def test_a_refused_item_leaves_no_listing(loop: Loop, three: list[dict[str, Any]]) -> None:
    loop.item(**three[0])
    assert loop.item(name="loop2", tenant="acme")["error"]["reason"] == "foreign tenant"
    assert loop.item(**three[2])["listings"] == 1
