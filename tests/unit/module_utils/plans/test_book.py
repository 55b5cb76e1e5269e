# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparisons of a run with its approved plan: their number grows with the plan, not its square."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import NotApproved
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.book import (
    Approved,
    Draft,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.document import (
    Document,
    Part,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.requests import (
    ANY,
    STAND_IN,
    PlannedRequest,
    Secrets,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan, Step

SECRETS = Secrets(b"key", ())


def plan_of(number: int) -> Plan:
    path = ("nodes", "pve1", "qemu", number, "config")
    back = ("nodes", ANY, "qemu", number, "migrate")
    steps = (
        Step("set", f"set VM {number}", "PUT", path, {"cores": 2}),
        Step("migrate", f"return VM {number}", "POST", back, {"target": "pve1"}),
        Step(
            "isolate",
            f"isolate VM {number}",
            STAND_IN,
            ("nodes", "pve1", "qemu", number, "firewall"),
        ),
    )
    return Plan(steps, {"cores": 1}, {"cores": 2})


def writes_of(number: int) -> list[Request]:
    """Return writes that the plan has, or that go with its requests: the cloud-init drive, a migration
    from another node, and a rule of the firewall.
    """
    guest = ("nodes", "pve1", "qemu", number)
    return [
        Request("PUT", (*guest, "config"), {"cores": "2", "digest": "x"}),
        Request("PUT", (*guest, "cloudinit"), {}),
        Request("POST", ("nodes", "pve2", "qemu", number, "migrate"), {"target": "pve1"}),
        Request("POST", (*guest, "firewall", "rules"), {"action": "DROP"}),
    ]


def comparisons(size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often requests are compared while a plan of this size is kept and applied."""
    count = 0
    compare, search = PlannedRequest.is_like, PlannedRequest.is_among

    def is_like(mine: PlannedRequest, other: PlannedRequest) -> bool:
        nonlocal count
        count += 1
        return compare(mine, other)

    def is_among(mine: PlannedRequest, approved: Collection[PlannedRequest]) -> bool:
        nonlocal count
        count += len(approved)
        return search(mine, approved)

    draft = Draft(SECRETS, 0)
    for number in range(size):
        draft.keep(plan_of(number))
    assert len(draft.changes) == size
    part = Part("vms", "vienna", "root@pam", draft.changes)
    approved = Approved(part, Document(0, 1, "salt", parts=(part,)), SECRETS)
    with monkeypatch.context() as patched:
        patched.setattr(PlannedRequest, "is_like", is_like)
        patched.setattr(PlannedRequest, "is_among", is_among)
        for number in range(size):
            approved.agree(plan_of(number))
            for request in writes_of(number):
                approved.require(request)
    return count


def test_each_change_is_compared_with_its_own_path_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert comparisons(40, monkeypatch) == 2 * comparisons(20, monkeypatch) > 0


@pytest.mark.parametrize(
    ("method", "path", "data"),
    [
        ("PUT", "nodes/pve2/qemu/0/cloudinit", {}),
        ("DELETE", "nodes/pve1/qemu/0/cloudinit", {}),
        ("PUT", "nodes/pve1/qemu/1/cloudinit", {}),
        ("POST", "nodes/pve2/qemu/0/migrate", {"target": "pve3"}),
        ("POST", "nodes/pve1/qemu/0", {}),
        ("POST", "nodes/pve2/qemu/0/firewall/rules", {"action": "DROP"}),
        ("POST", "cluster/sdn/lock", {}),
        ("DELETE", "nodes/pve1/network", {}),
    ],
)
def test_a_write_that_only_resembles_a_planned_one_is_refused(
    method: str, path: str, data: dict[str, str]
) -> None:
    draft = Draft(SECRETS, 0)
    draft.keep(plan_of(0))
    part = Part("vms", "vienna", "root@pam", draft.changes)
    approved = Approved(part, Document(0, 1, "salt", parts=(part,)), SECRETS)
    with pytest.raises(NotApproved):
        approved.require(Request(method, tuple(path.split("/")), data))
