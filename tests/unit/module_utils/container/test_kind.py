# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a container's configuration, by lines of ../shared/pve/around/containers-1.jsonl."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import GIB, MIB
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)

CONFIG = {
    "hostname": "web",
    "rootfs": "local-lvm:vm-100-disk-0,size=8G",
    "mp0": "local-lvm:vm-100-disk-1,mp=/data,size=2G",
    "mp1": "/srv/shared,mp=/shared",
    "unused0": "local-lvm:vm-100-disk-2",
    "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth",
    "net1": "name=eth1,type=veth",
    "memory": "1024",
    "cores": "2",
}


def test_a_bind_mount_has_no_volume() -> None:
    assert CONTAINER.volumes_in(CONFIG) == {
        "rootfs": "local-lvm:vm-100-disk-0",
        "mp0": "local-lvm:vm-100-disk-1",
        "unused0": "local-lvm:vm-100-disk-2",
    }
    assert set(CONTAINER.disks_in(CONFIG)) == {"rootfs", "mp0"}


def test_a_quota_counts_mount_points_and_the_root_file_system() -> None:
    figures = CONTAINER.figures_of(CONFIG)
    assert (figures.vms, figures.cores, figures.memory) == (1, 2, 1024 * MIB)
    assert figures.disk == 10 * GIB
    assert CONTAINER.figures_of(CONFIG, template=True).memory == 0


def test_memory_has_the_default_of_pve() -> None:
    # pve-container: LXC/Config.pm, `memory` has the default 512.
    assert CONTAINER.figures_of({}).memory == 512 * MIB


def test_nics_without_bridge_or_address_are_left_out() -> None:
    assert CONTAINER.macs_in(CONFIG) == {"net0": "BC:24:11:00:00:01"}
    assert CONTAINER.bridges_in(CONFIG) == {"net0": "vmbr0"}


def test_results_show_no_names_of_volumes() -> None:
    shown = CONTAINER.formatted(CONFIG)
    assert shown["rootfs"] == {"storage": "local-lvm", "size": "8G"}
    assert shown["mp1"] == {"path": "/srv/shared", "mp": "/shared"}
    assert shown["hostname"] == "web"
