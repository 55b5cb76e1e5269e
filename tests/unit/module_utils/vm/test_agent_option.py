# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VM uses the guest agent is read from its option in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.addresses import (
    agent_is_on,
    cloud_init_addresses,
)

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"


@pytest.mark.parametrize(
    ("option", "is_on"),
    [
        ("1", True),
        ("enabled=1", True),
        ("type=virtio,enabled=1", True),
        ("enabled=Yes,type=virtio", True),
        ("0", False),
        ("type=virtio", False),
        ("0,fstrim_cloned_disks=1", False),
        ("", False),
        ("1,1", False),
    ],
)
def test_the_agent_is_on_wherever_its_switch_stands(option: str, is_on: bool) -> None:
    assert agent_is_on(option) == is_on


def test_addresses_of_an_unreadable_option_are_none() -> None:
    assert cloud_init_addresses({"ipconfig0": "dhcp"}) == []
    (address,) = cloud_init_addresses({"ipconfig0": "gw=10.0.0.1, ip=10.0.0.5/24"})
    assert (address.address, address.prefix) == ("10.0.0.5", 24)


def test_one_module_splits_property_strings() -> None:
    splitting = {
        str(file.relative_to(PLUGINS))
        for file in PLUGINS.rglob("*.py")
        if 'partition("=")' in file.read_text()
    }
    assert splitting == {"module_utils/_foundation/core/propstring.py"}
