# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources that a task uses."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.parallel import Resource
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.pace import resources_of

NODE1, NODE2, ALL = ("node", "n1"), ("node", "n2"), ("all", "")


@pytest.mark.parametrize(
    ("path", "data", "used"),
    [
        (
            ("nodes", "n1", "qemu", 9000, "clone"),
            {"newid": 1},
            {ALL, NODE1, ("template", "9000"), ("storage", "s")},
        ),
        (("nodes", "n1", "qemu"), {"vmid": 1}, {ALL, NODE1, ("storage", "s")}),
        (("nodes", "n2", "qemu", 1, "status", "start"), {}, {ALL, NODE2}),
        (("nodes", "n2", "qemu", 1, "move_disk"), {"storage": "t"}, {ALL, NODE2, ("storage", "t")}),
        (("cluster", "ha"), {}, {ALL}),
    ],
)
def test_what_a_task_uses(
    path: tuple[str | int, ...], data: dict[str, object], used: set[Resource]
) -> None:
    assert resources_of(path, data, frozenset({("storage", "s")})) == used
