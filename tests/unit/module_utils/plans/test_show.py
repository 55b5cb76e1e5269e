# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as text, Markdown and HTML: complete, and every text of others stays text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.pve.fleet.plugins.filter.plan_text import plan_text
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.formatting import printable
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.document import (
    Change,
    Document,
    Part,
    PlannedGuest,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.requests import (
    PlannedRequest,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.plans.show import Move, moves_of
from tests.unit.module_utils.report.test_page import HOSTILE, read


def plan_of(name: str = "web1") -> Document:
    """Return a plan that creates a guest, moves one and removes one."""

    def change(vmid: int, before: str, after: str, method: str, path: str) -> Change:
        request = PlannedRequest(method, path, {"note": name}, f"Work on {name}")
        room = {"memory": 2 << 30, "storages": {}}
        guest = PlannedGuest("qemu", "tenant_acme", f"{name}{vmid}", vmid, after or before, room)
        first, last = ({"node": side} if side else {} for side in (before, after))
        return Change((request,), first, last, guest)

    changes = (
        change(1, "", "pve1", "POST", "/nodes/pve1/qemu/9000/clone"),
        change(2, "pve1", "pve2", "POST", "/nodes/pve1/qemu/2/migrate"),
        change(3, "pve3", "", "DELETE", "/nodes/pve3/qemu/3"),
    )
    part = Part(
        "vms",
        "vienna",
        "root@pam!fleet",
        changes,
        (f"+ acme/{name}1", "Plan: 1 to create"),
        subject="web",
    )
    return Document(1_000_000, 1_600_000, "00", commit="4f2a", parts=(part,))


def test_the_moves_are_those_of_guests_between_nodes() -> None:
    assert moves_of(plan_of("a")) == [
        Move("tenant_acme/a1", "", "vienna/pve1"),
        Move("tenant_acme/a2", "vienna/pve1", "vienna/pve2"),
        Move("tenant_acme/a3", "vienna/pve3", ""),
    ]


def test_two_guests_of_one_name_and_two_subjects_are_shown_apart() -> None:
    """Names are not unique without a tenant."""
    (part,) = plan_of("a").parts
    first = part.changes[1]
    assert first.guest is not None
    changes = (first, replace(first, guest=replace(first.guest, vmid=7)))
    parts = [replace(part, changes=changes, subject=subject) for subject in ("pve1", "pve2")]
    document = replace(plan_of("a"), parts=tuple(parts))
    assert moves_of(document) == [Move("tenant_acme/a2", "vienna/pve1", "vienna/pve2")] * 4
    leaving = replace(
        part, task="relocate", changes=tuple(replace(one, after={}) for one in changes)
    )
    assert (
        moves_of(replace(document, parts=(leaving,)))
        == [Move("tenant_acme/a2", "vienna/pve2", "")] * 2
    )


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_has_the_digest_the_lines_and_the_version(form: str) -> None:
    document = plan_of()
    text = plan_text(document.render(), form)
    for part in (document.digest, "acme/web11", "Plan: 1 to create", "4f2a", "root@pam!fleet"):
        assert part in text
    assert ("<h2>vms web at vienna</h2>" if form == "html" else "vms web at vienna") in text
    if form != "text":
        assert "Needs on pve1: 2G of memory" in text
        assert "POST /nodes/pve1/qemu/2/migrate" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_others_stay_text(text: str) -> None:
    page = plan_text(plan_of(text).render(), "html")
    reader = read(page)
    assert printable(text).replace("\r", "") in "".join(reader.texts)
    assert "<script" not in page
    assert "<img" not in page
    assert "<script" not in plan_text(plan_of(text).render(), "markdown").split("```")[0]


def test_an_edited_file_and_an_unknown_form_are_refused() -> None:
    text = plan_of().render()
    with pytest.raises(AnsibleFilterError, match="edited"):
        plan_text(text.replace("web1", "web2"))
    with pytest.raises(AnsibleFilterError, match="Forms are"):
        plan_text(text, "pdf")
