# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of commands about lost nodes, and the mark of a replication job."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.lines import (
    parse_configs,
    parse_replicas,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.mark import (
    ReplicaMark,
    mark_of,
    with_mark,
)

ETC = "/etc/pve/nodes/pve1"


def test_configurations_end_at_the_first_snapshot() -> None:
    lines = [
        f"{ETC}/qemu-server/100.conf:# notes: not an option",
        f"{ETC}/qemu-server/100.conf:name: web",
        f"{ETC}/qemu-server/100.conf:parent: before",
        f"{ETC}/qemu-server/100.conf:[before]",
        f"{ETC}/qemu-server/100.conf:name: old",
        f"{ETC}/lxc/200.conf:hostname: box",
        f"{ETC}/lxc/200.conf:lxc.apparmor.profile: unconfined",
        "grep: warning: something else",
    ]
    vm, container = parse_configs(lines)
    assert (vm.node, vm.type, vm.vmid) == ("pve1", "qemu", 100)
    assert vm.config == {"name": "web", "parent": "before"}
    assert (container.type, container.vmid) == ("lxc", 200)
    assert "lxc.apparmor.profile" in container.config


def test_the_newest_replica_of_each_dataset_and_job() -> None:
    lines = [
        "rpool/data/vm-100-disk-0@__replicate_100-0_1700000000__",
        "rpool/data/vm-100-disk-0@__replicate_100-0_1700000900__\n",
        "rpool/data/vm-100-disk-0@__replicate_100-1_1700005000__",
        "rpool/data/vm-100-disk-0@before",
    ]
    disk = "rpool/data/vm-100-disk-0"
    assert parse_replicas(lines) == {(disk, "100-0"): 1700000900, (disk, "100-1"): 1700005000}


def test_a_mark_keeps_the_comment_of_the_user() -> None:
    mark = ReplicaMark("pve1", 1700000000, "0a1b")
    for comment in ("", "every night"):
        marked = with_mark(comment, mark)
        assert mark_of(marked) == mark
        assert with_mark(marked, mark) == marked
        assert with_mark(marked, None) == comment
    assert mark_of("every night") is None
