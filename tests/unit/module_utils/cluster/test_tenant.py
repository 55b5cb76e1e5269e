# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a VM is, in tables."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._cluster.tenant import (
    parse_tags,
    tenant_of,
    tenant_tag,
    tenants_of,
)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        (None, ()),
        ("", ()),
        (" ", ()),
        ("a", ("a",)),
        ("a;b", ("a", "b")),
        ("a, b c;;d", ("a", "b", "c", "d")),
    ],
)
def test_parse_tags(text: str | None, tags: tuple[str, ...]) -> None:
    assert parse_tags(text) == tags


def test_tenant_tag() -> None:
    assert tenant_tag("acme") == "tenant_acme"
    assert tenant_tag("Acme", "cust-") == "cust-acme"


@pytest.mark.parametrize(
    ("tags", "owners", "tenant"),
    [
        ([], (), None),
        (["web"], (), None),
        (["tenant_"], (), None),
        (["mytenant_acme"], (), None),
        (["tenant_acme"], ("tenant_acme",), "acme"),
        (["web", "tenant_acme", "db"], ("tenant_acme",), "acme"),
        (["tenant_acme", "tenant_acme"], ("tenant_acme",), "acme"),
        (["tenant_acme2"], ("tenant_acme2",), "acme2"),
        (["tenant_b", "tenant_a"], ("tenant_a", "tenant_b"), None),
    ],
)
def test_owners(tags: list[str], owners: tuple[str, ...], tenant: str | None) -> None:
    assert tenants_of(tags) == owners
    found, why = tenant_of(tags)
    assert found == tenant
    assert bool(why) is (tenant is None)


def test_another_prefix() -> None:
    assert tenant_of(["cust-acme", "tenant_b"], "cust-") == ("acme", "")
