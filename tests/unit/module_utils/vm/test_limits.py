# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of several new VMs gives way when together they exceed a quota, and pictures that have become old."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._cluster.picture import FRESH, read_picture, refreshed
from ansible_collections.pve.fleet.plugins.module_utils._cluster.quota import Figures
from ansible_collections.pve.fleet.plugins.module_utils._core.errors import Locked, QuotaExceeded
from ansible_collections.pve.fleet.plugins.module_utils._vm.limits import PATIENCE, figures_of, settle
from ansible_collections.pve.fleet.plugins.module_utils._vm.model import Desired
from tests.fake_clock import FakeClock

GIB = 1 << 30
WISH = Desired("x", None, None, tenant="acme", limits={"vms": 2})


class Cluster:
    """A listing in which VMs of acme appear and go at given times."""

    def __init__(self, *lives: tuple[int, float, float]) -> None:
        self.clock = FakeClock()
        self.lives, self.start, self.asked = lives, self.clock.now, 0

    def get(self, *path: Any, **_query: Any) -> Any:
        assert path == ("cluster", "resources")
        self.asked += 1
        now = self.clock.now - self.start
        return [
            {"type": "qemu", "vmid": vmid, "node": "n1", "name": f"v{vmid}", "tags": "tenant_acme"}
            for vmid, begin, end in self.lives
            if begin <= now < end
        ]


def gives_way(cluster: Cluster, vmid: int, old: set[int]) -> bool:
    """Tell whether the VM of this run is removed; then its run must fail and say so."""
    done: list[str] = []

    def run() -> None:
        settle(cluster, WISH, "New VM", vmid, Figures(1), frozenset(old), lambda: done.append("removed"))  # type: ignore[arg-type]

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
    assert cluster.asked == 1


def test_a_lower_one_waits_until_it_has() -> None:
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, 0.0, 3.0))
    assert not gives_way(cluster, 11, {10})
    assert 3.0 <= cluster.clock.now - cluster.start < 6.0


def test_a_lower_one_gives_way_to_one_that_stays() -> None:
    """The higher one looked before the lower one was there: its run is over."""
    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS))
    assert gives_way(cluster, 11, {10})
    assert PATIENCE < cluster.clock.now - cluster.start < PATIENCE + 3


def test_those_that_were_there_before_never_give_way() -> None:
    cluster = Cluster((10, *ALWAYS), (20, *ALWAYS), (30, *ALWAYS))
    assert gives_way(cluster, 10, {20, 30})
    assert cluster.asked == 1


def test_within_the_quota_one_look_is_enough() -> None:
    cluster = Cluster((10, *ALWAYS), (12, *ALWAYS))
    assert not gives_way(cluster, 12, {10})
    assert cluster.asked == 1


def test_what_cannot_be_removed_is_named() -> None:
    def refuse() -> None:
        raise Locked(reason="locked (backup)", answer="VM is locked (backup)")

    cluster = Cluster((10, *ALWAYS), (11, *ALWAYS), (12, *ALWAYS))
    with pytest.raises(QuotaExceeded, match="could not be removed again.*backup.*by hand") as failure:
        settle(cluster, WISH, "New VM", 12, Figures(1), frozenset((10, 11)), refuse)  # type: ignore[arg-type]
    assert failure.value.details["removed"] is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Figures(1, 1, GIB // 2, 0)),
        ({"cores": "2", "sockets": "2", "memory": "2048"}, Figures(1, 4, 2 * GIB, 0)),
        ({"cores": "4", "vcpus": "3", "memory": "current=1024"}, Figures(1, 3, GIB, 0)),
        (
            {"scsi0": "ceph:new,size=3G", "virtio1": "ceph:x,size=1536M", "ide2": "ceph:vm-1-cloudinit,media=cdrom"},
            Figures(1, 1, GIB // 2, 4608 << 20),
        ),
        ({"ide2": "local:iso/x.iso,media=cdrom,size=600M", "scsi0": "ceph:new"}, Figures(1, 1, GIB // 2, 2 * GIB)),
    ],
    ids=str,
)
def test_what_a_configuration_counts(config: dict[str, str], expected: Figures) -> None:
    assert figures_of(config, {"scsi0": 2 * GIB}) == expected
    assert figures_of(config, {"scsi0": 2 * GIB}, template=True) == Figures(disk=expected.disk)


def test_a_picture_that_is_old_is_read_again() -> None:
    cluster = Cluster((10, *ALWAYS))
    picture = read_picture(cluster)  # type: ignore[arg-type]
    cluster.clock.now += FRESH
    assert refreshed(cluster, picture) is picture  # type: ignore[arg-type]
    cluster.clock.now += 0.1
    assert refreshed(cluster, picture) is not picture  # type: ignore[arg-type]
    assert cluster.asked == 2
