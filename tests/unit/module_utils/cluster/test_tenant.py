# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a VM is, in tables."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import (
    is_of_others,
    owns,
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


@pytest.mark.parametrize(
    ("tags", "is_own", "is_foreign"),
    [
        ([], False, False),
        (["web"], False, False),
        (["web", "Tenant_Acme"], True, False),
        (["tenant_acme", "tenant_b"], False, False),
        (["tenant_b"], False, True),
        (["tenant_b", "tenant_c"], False, True),
    ],
)
def test_a_tenant_owns_what_has_its_tag_alone(
    tags: list[str], is_own: bool, is_foreign: bool
) -> None:
    assert owns("tenant_acme", tags) is is_own
    assert is_of_others("tenant_acme", tags) is is_foreign


@pytest.mark.parametrize("tags", [[], ["tenant_b"], ["tenant_a", "tenant_b"]], ids=str)
def test_without_a_tenant_every_guest_is_its_own(tags: list[str]) -> None:
    assert owns(None, tags)
    assert not is_of_others(None, tags)
