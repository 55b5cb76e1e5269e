# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which VMs may be the one that is meant although nobody could tell its name."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._cluster.picture import picture_of
from ansible_collections.pve.fleet.plugins.module_utils._cluster.scene import Scene
from ansible_collections.pve.fleet.plugins.module_utils._core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._vm.marker import Marker
from ansible_collections.pve.fleet.plugins.module_utils._vm.twins import (
    is_meant,
    nameless,
    newcomers,
    yield_to_twin,
)
from tests.unit.module_utils.vm.answering import Server
from tests.unit.module_utils.vm.vm_cases import wish


def row(vmid: int, **more: Any) -> dict[str, Any]:
    return {"type": "qemu", "vmid": vmid, "node": "n1", "status": "unknown", **more}


def test_only_what_is_being_made_and_has_no_name_is_suspect() -> None:
    rows = [row(1, lock="clone"), row(2, lock="clone", name="VM 2"), row(3, lock="clone", name="web"), row(4)]
    assert nameless(picture_of([*rows, row(5, lock="backup"), row(6, lock="create")])) == {1, 2, 6}


def test_of_those_who_came_meanwhile_the_lower_numbers_are_suspect() -> None:
    assert newcomers(picture_of([row(1), row(2), row(3), row(9)]), {1}, 5) == {2, 3}


def building(tenant: str | None) -> dict[str, Any]:
    return {"description": Marker(origin=9000, run="r", tenant=tenant).render(), "tags": "image"}


@pytest.mark.parametrize(
    ("tenant", "config", "meant"),
    [
        ("acme", building("tenant_acme"), True),
        ("acme", building("tenant_globex"), False),
        ("acme", building(None), False),
        (None, building(None), True),
        (None, building("tenant_acme"), False),
        ("acme", {"tags": "web;tenant_acme"}, True),
        ("acme", {"tags": "tenant_acme;tenant_globex"}, False),
        ("acme", {}, False),
        (None, {}, True),
        (None, {"tags": "tenant_acme"}, False),
    ],
    ids=str,
)
def test_whose_it_is_or_will_be(tenant: str | None, config: dict[str, Any], meant: bool) -> None:
    assert is_meant(config, wish(tenant=tenant)) is meant


def look(server: Server, suspects: set[int]) -> list[str]:
    """Let VM 105 look for its twins and return what it did."""
    done: list[str] = []
    scene = Scene(cast(Client, server))
    try:
        yield_to_twin(scene, wish(tenant="acme"), 105, suspects, lambda: done.append("removed"))
    except Conflict as error:
        done.append(f"{error.reason}: {error.details['twin']}")
    return done


def test_a_twin_is_gone_on_with_and_nobody_else() -> None:
    def answer(path: tuple[Any, ...], _now: float) -> Any:
        if path[0] == "cluster":
            return [row(101), row(102), row(103, node="n2"), row(105)]
        if path[-1] == "qemu":
            return [{"vmid": vmid, "name": "web1", "status": "stopped"} for vmid in (101, 102, 105)]
        return building("tenant_acme" if path[3] == 102 else "tenant_globex")

    assert look(Server(answer), {101, 102}) == ["removed", "made meanwhile: 102"]
    assert look(Server(answer), {101}) == []
    alone = Server(answer)
    assert look(alone, set()) == []
    assert alone.asked == []


class Watchful(Scene):
    """A scene that knows the VMs of its own run, and looks for those of others."""

    def familiar(self) -> frozenset[int]:
        return frozenset((101, 102))


@pytest.mark.parametrize(
    ("others", "seconds", "done"),
    [
        ({}, 0.0, []),
        ({104: 99.0}, 0.0, ["removed", "made meanwhile: 104"]),  # the lower number stays
        ({109: 3.0}, 3.0, []),  # the higher one gives way to ours
        ({109: 99.0}, 10.0, ["removed", "made meanwhile: 109"]),  # it looked before ours was there
        ({104: 99.0, 109: 99.0}, 0.0, ["removed", "made meanwhile: 104"]),
    ],
    ids=str,
)
def test_runs_over_lists_agree_on_one_of_two(others: dict[int, float], seconds: float, done: list[str]) -> None:
    def answer(path: tuple[Any, ...], now: float) -> Any:
        there = [101, 102, 105, *(vmid for vmid, until in others.items() if now < until)]
        if path[0] == "cluster":
            return [row(vmid) for vmid in there]
        if path[-1] == "qemu":
            return [{"vmid": vmid, "name": "web1", "status": "stopped"} for vmid in there]
        return building("tenant_acme")

    server, said = Server(answer), []
    try:
        yield_to_twin(Watchful(cast(Client, server)), wish(tenant="acme"), 105, set(), lambda: said.append("removed"))
    except Conflict as error:
        said.append(f"{error.reason}: {error.details['twin']}")
    assert said == done
    assert seconds <= server.clock.monotonic() <= seconds + 2
