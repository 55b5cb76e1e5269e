# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of mappings with devices (pve-guest-common: PVE/Mapping/PCI.pm and USB.pm,
assert_valid).
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    DesiredResource,
    ResourceChange,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.devices import (
    mdev_differences,
    pci_faults,
    precheck_devices,
    read_pci_device,
    read_usb_device,
    require_devices,
    usb_faults,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.mapping import (
    want_entries,
)
from tests.fake_api import FakeApi

ROWS = [
    {"id": "0000:00:00.0", "vendor": "0x8086", "device": "0x29c0", "iommugroup": -1},
    {
        "id": "0000:01:00.0",
        "vendor": "0x10de",
        "device": "0x2204",
        "iommugroup": 1,
        "subsystem_vendor": "0x10de",
        "subsystem_device": "0x1467",
    },
]
DEVICES = [read_pci_device(row) for row in ROWS]
BRIDGE = {"node": "pve1", "path": "0000:00:00", "id": "8086:29c0"}
CARD = {"node": "pve1", **DEVICES[1]}
OF = "PCI device 0000:01:00.0 of node pve1 has"

PCI: list[tuple[dict[str, str], list[str]]] = [
    (BRIDGE, []),
    (CARD, []),
    ({**CARD, "path": "0000:05:00"}, ["node pve1 has no PCI device 0000:05:00.0"]),
    ({**CARD, "id": "10DE:2204"}, [f"{OF} id 10de:2204, not 10DE:2204"]),
    ({**CARD, "iommugroup": "2"}, [f"{OF} iommugroup 1, not 2"]),
    (
        {key: CARD[key] for key in ("node", "path", "id", "iommugroup")},
        [f"{OF} subsystem_id 10de:1467, and the entry has none"],
    ),
    (
        {**BRIDGE, "iommugroup": "3"},
        ["PCI device 0000:00:00.0 of node pve1 has no iommugroup, and the entry has 3"],
    ),
    # The group is that of the first path only.
    ({**CARD, "path": "0000:01:00;0000:01:00.0", "iommugroup": "2"}, [f"{OF} iommugroup 1, not 2"]),
]


@pytest.mark.parametrize(("entry", "faults"), PCI, ids=str)
def test_pci_devices(entry: dict[str, str], faults: list[str]) -> None:
    assert list(pci_faults(entry, DEVICES)) == faults


KEYS = [
    read_usb_device({"busnum": 1, "vendid": "1d6b", "prodid": "0002"}),
    read_usb_device({"busnum": 1, "usbpath": "2.1", "vendid": "0529", "prodid": "0001"}),
]
USB: list[tuple[dict[str, str], list[str]]] = [
    ({"id": "1d6b:0002"}, []),
    ({"id": "0529:0001", "path": "1-2.1"}, []),
    ({"id": "0529:0002"}, ["node pve1 has no USB device 0529:0002"]),
    ({"id": "0529:0001", "path": "1-3"}, ["node pve1 has no USB device 1-3"]),
    (
        {"id": "0529:0002", "path": "1-2.1"},
        ["USB device 1-2.1 of node pve1 has id 0529:0001, not 0529:0002"],
    ),
]


@pytest.mark.parametrize(("entry", "faults"), USB, ids=str)
def test_usb_devices(entry: dict[str, str], faults: list[str]) -> None:
    assert list(usb_faults({"node": "pve1", **entry}, KEYS)) == faults


def test_an_error_lists_the_first_devices_of_a_node() -> None:
    many = [{"path": f"0000:0{number}:00.0", "id": "1af4:1000"} for number in range(9)]
    with pytest.raises(ConfigurationError) as caught:
        require_devices("pci", [{**CARD, "path": "0000:0a:00.0"}], {"pve1": many})
    assert "path=0000:07:00.0 id=1af4:1000 and 1 more" in str(caught.value)


def test_devices_that_the_login_may_not_read_are_a_warning() -> None:
    """pve-manager: API2/Hardware/USB.pm needs Sys.Modify on /."""

    def answer(request: Request) -> Any:
        if request.segments == ("nodes",):
            return [{"node": "pve1", "status": "online"}]
        return PermissionDenied(attempted="Could not list", answer="403", next_step="Ask")

    api = FakeApi(answer)
    desired = DesiredResource({"type": "usb", "name": "key"})
    change = ResourceChange(sets={"map": want_entries([{"node": "pve1", "id": "0529:0001"}])})
    (warning,) = precheck_devices(api.client(), desired, change)
    assert warning.endswith("this login may not read them (Sys.Modify on /)")
    assert api.paths == [("nodes",), ("nodes", "pve1", "hardware", "usb")]


OFFERS = {"pve1": [{**row, "mdev": 1} for row in ROWS], "pve2": ROWS, "pve3": None}


@pytest.mark.parametrize(("mdev", "node"), [(True, "pve2"), (False, "pve1")])
def test_devices_that_differ_from_mdev(mdev: bool, node: str) -> None:
    """PVE compares both as flags, also if the row has none (PVE/Mapping/PCI.pm, assert_valid)."""
    entries = [{**CARD, "node": name} for name in ("pve1", "pve2", "pve3", "pve4")]
    (warning,) = mdev_differences(entries, mdev, OFFERS)
    word = "is not" if mdev else "is"
    assert warning.startswith(f"PCI device 0000:01:00.0 of node {node} {word} capable of mediated")


def test_each_path_is_compared_with_mdev() -> None:
    entry = {**CARD, "path": "0000:00:00;0000:01:00.0;0000:09:00.0"}
    found = list(mdev_differences([entry], False, OFFERS))
    assert [text.split()[2] for text in found] == ["0000:00:00.0", "0000:01:00.0"]


def test_a_directory_takes_one_request_for_the_nodes() -> None:
    api = FakeApi(lambda _request: [{"node": "pve1", "status": "online"}])
    entries = want_entries([{"node": "pve1", "path": "/srv"}])
    directory = DesiredResource({"type": "dir", "name": "data"})
    assert precheck_devices(api.client(), directory, ResourceChange(sets={"map": entries})) == ()
    assert api.paths == [("nodes",)]


def test_entries_that_stay_take_no_request() -> None:
    api = FakeApi(lambda _request: pytest.fail("a request was sent"))
    card = DesiredResource({"type": "pci", "name": "gpu"})
    change = ResourceChange(
        sets={"description": "x"}, before={"map": want_entries([CARD]), "mdev": False}
    )
    assert precheck_devices(api.client(), card, change) == ()
