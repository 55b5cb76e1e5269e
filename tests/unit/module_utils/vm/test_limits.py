# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of several new VMs gives way when together they exceed a quota, and pictures that have
become old.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.quota import (
    QuotaFigures,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    FRESH,
    ClusterState,
    StorageRow,
    fetch_cluster_state,
    refreshed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.contents import (
    read_volumes,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Locked,
    QuotaExceeded,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.race import (
    PATIENCE,
    resolve_race,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create.quota_race import (
    QuotaRule,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Guest
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.config.actual import (
    figures_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.fake_api import FakeApi
from tests.unit.module_utils.vm.answering import Server

GIB = 1 << 30
WANTED = Guest(VM, "x", None, None, tenant="acme", limits={"vms": 2})


BUILDING = "<!-- pve.fleet: run=0123456789ab tenant=tenant_acme -->"


class Cluster(FakeApi):
    """A listing in which VMs of acme appear and go at given times, and what their notes say."""

    def __init__(self, *lives: tuple[int, float, float], notes: str = BUILDING) -> None:
        super().__init__(self._listing)
        self.lives, self.start, self.notes = lives, self.clock.now, notes

    def _listing(self, request: Request) -> Any:
        if request.segments[-1] == "pending":
            return [{"key": "description", "value": self.notes}]
        assert request.segments == ("cluster", "resources")
        now = self.clock.now - self.start
        return [
            {"type": "qemu", "vmid": vmid, "node": "n1", "name": f"v{vmid}", "tags": "tenant_acme"}
            for vmid, begin, end in self.lives
            if begin <= now < end
        ]


def gives_way(cluster: Cluster, vmid: int, old: set[int]) -> bool:
    """Return whether the VM of this run is removed; then its run must fail and say so."""
    done: list[str] = []

    def run() -> None:
        client = cluster.client()
        rule = QuotaRule(client, WANTED, "New VM", vmid, QuotaFigures(1), frozenset(old))
        resolve_race(client.clock, rule, lambda: done.append("removed"))

    try:
        run()
    except QuotaExceeded as error:
        failure = error
    else:
        assert done == []
        return False
    assert done == ["removed"]
    assert failure.details["removed"] == vmid
    assert failure.details["quota"]["vms"]["limit"] == 2
    return True


ALWAYS = (0.0, 1e9)


def test_the_highest_number_gives_way_at_once() -> None:
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS))
    assert gives_way(cluster, 12, {10})
    assert len(cluster.asked) == 1


def test_a_lower_one_waits_until_it_has() -> None:
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, 0.0, 3.0))
    assert not gives_way(cluster, 11, {10})
    assert 3.0 <= cluster.clock.now - cluster.start < 6.0


def test_a_lower_one_gives_way_to_one_that_stays() -> None:
    """The run of the higher one has ended early, and left it unfinished."""
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS))
    assert gives_way(cluster, 11, {10})
    assert PATIENCE <= cluster.clock.now - cluster.start < PATIENCE + 3


@pytest.mark.parametrize("notes", ["", "<!-- pve.fleet: origin=9000 -->"])
def test_a_lower_one_gives_way_at_once_to_one_that_is_finished(notes: str) -> None:
    """The higher one looked before the lower one was there: its run is over."""
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS), notes=notes)
    assert gives_way(cluster, 11, {10})
    assert cluster.clock.now == cluster.start


def test_those_that_were_there_before_never_give_way() -> None:
    cluster = Cluster((10, *ALWAYS), (20, *ALWAYS), (30, *ALWAYS))
    assert gives_way(cluster, 10, {20, 30})
    assert len(cluster.asked) == 1


def test_within_the_quota_one_look_is_enough() -> None:
    cluster = Cluster((10, *ALWAYS), (12, *ALWAYS))
    assert not gives_way(cluster, 12, {10})
    assert len(cluster.asked) == 1


def test_what_cannot_be_removed_is_named() -> None:
    def refuse() -> None:
        raise Locked(reason="locked (backup)", answer="VM is locked (backup)")

    client = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS)).client()
    rule = QuotaRule(client, WANTED, "New VM", 12, QuotaFigures(1), frozenset((10, 11)))
    with pytest.raises(
        QuotaExceeded, match="could not be removed again.*backup.*by hand"
    ) as failure:
        resolve_race(client.clock, rule, refuse)
    assert failure.value.details["removed"] is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, QuotaFigures(1, 1, GIB // 2, 0)),
        ({"cores": "2", "sockets": "2", "memory": "2048"}, QuotaFigures(1, 4, 2 * GIB, 0)),
        ({"cores": "4", "vcpus": "3", "memory": "current=1024"}, QuotaFigures(1, 3, GIB, 0)),
        (
            {
                "scsi0": "ceph:new,size=3G",
                "virtio1": "ceph:x,size=1536M",
                "ide2": "ceph:vm-1-cloudinit,media=cdrom",
            },
            QuotaFigures(1, 1, GIB // 2, 4608 << 20),
        ),
        (
            {"ide2": "local:iso/x.iso,media=cdrom,size=600M", "scsi0": "ceph:new"},
            QuotaFigures(1, 1, GIB // 2, 2 * GIB),
        ),
    ],
    ids=str,
)
def test_what_a_configuration_counts(config: dict[str, str], expected: QuotaFigures) -> None:
    assert figures_of(config, {"scsi0": 2 * GIB}) == expected
    assert figures_of(config, {"scsi0": 2 * GIB}, template=True) == QuotaFigures(disk=expected.disk)


def test_a_picture_that_is_old_is_read_again() -> None:
    cluster = Cluster((10, *ALWAYS))
    picture = fetch_cluster_state(cluster.client(), {"qemu"})
    cluster.clock.now += FRESH
    assert refreshed(cluster.client(), picture) is picture
    cluster.clock.now += 0.1
    assert refreshed(cluster.client(), picture) is not picture
    assert len(cluster.asked) == 2


def test_a_volume_without_an_exact_size_counts_by_its_approximate_one() -> None:
    """An inactive qcow2 volume on LVM has no size (pve-storage, LVMPlugin.pm, list_images), memory
    states included.
    """
    volumes = [
        {
            "volid": "san:vm-100-disk-0.qcow2",
            "vmid": 100,
            "format": "qcow2",
            "approximate-size": 10 * GIB,
        },
        {
            "volid": "san:vm-100-state-s1.qcow2",
            "vmid": 100,
            "format": "qcow2",
            "approximate-size": 3 * GIB,
        },
        {"volid": "san:vm-101-disk-0.qcow2", "vmid": 101, "format": "qcow2", "size": 4 * GIB},
    ]
    row = StorageRow("san", "n1", True, True, "lvm", frozenset({"images"}), 0, 0)
    picture = ClusterState({}, {}, (row,), frozenset(), frozenset())
    server = Server(lambda _path, _now: volumes)
    assert read_volumes(server.client(), picture) == {100: 13 * GIB, 101: 4 * GIB}
