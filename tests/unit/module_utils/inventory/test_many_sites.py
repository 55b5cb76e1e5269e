# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory of many sites."""

from __future__ import annotations

from threading import Barrier
from typing import Any, cast

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sites import (
    read_listings,
)

SITES = 100
LONGEST = 60.0  # seconds that a site waits for the others, before the test fails


class _Site:
    """A site that answers once all sites were asked."""

    def __init__(self, everyone: Barrier) -> None:
        self._everyone = everyone

    def get(self, *_path: str, **_options: Any) -> list[dict[str, Any]]:
        self._everyone.wait(LONGEST)
        return [{"type": "node", "node": "pve1", "status": "online"}]


def test_all_sites_are_asked_at_once() -> None:
    """So the time is that of the slowest site."""
    everyone = Barrier(SITES)
    clients = {f"site{number:03}": cast(Client, _Site(everyone)) for number in range(SITES)}
    listings = read_listings(clients, ["vm"])
    assert [one.site for one in listings] == list(clients)
    assert all(one.rows for one in listings)
