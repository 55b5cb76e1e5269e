# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Three sites of one tenant; the conftest.py of `modules` has their fixture `labs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.modules.estate_lab import Lab

SITES = ("berlin", "munich", "paris")
DARK = {"host": "https://127.0.0.1:9", "token_id": "ops@pve!auto", "token_secret": "of-no-one"}
Labs = Mapping[str, Lab]


def sites_of(labs: Labs, dark: str = "") -> list[dict[str, Any]]:
    """Return the option C(sites); the site `dark` does not answer."""
    return [{"name": site, **(DARK if site == dark else labs[site].connection)} for site in SITES]
