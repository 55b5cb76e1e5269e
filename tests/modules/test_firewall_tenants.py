# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects with the mark of a tenant in the firewall are changed only with that tenant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_firewall import DROP, SSH, converge, refused


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


GLOBEX = "[pve.fleet: tenant=tenant_globex]"
GROUP: dict[str, Any] = {"scope": "group", "group": "tenant_globex"}


@pytest.fixture
def marked(lab: Lab) -> None:
    """A security group, a VNet, an alias and IP sets with the mark of globex."""
    base = ("cluster", "firewall")
    lab.client.write("POST", *base, "groups", data={"group": "tenant_globex", "comment": GLOBEX})
    lab.client.write("POST", *base, "groups", "tenant_globex", data={**DROP, "enable": 1})
    alias = {"name": "globex-office", "cidr": "192.0.2.7", "comment": GLOBEX}
    lab.client.write("POST", *base, "aliases", data=alias)
    for name, comment in (("tenant_globex", GLOBEX), ("fleet-tenants", "")):
        lab.client.write("POST", *base, "ipset", data={"name": name, "comment": comment})
    zone = {"name": "lan", "type": "simple"}
    vnet = {"name": "tglobex", "zone": "lan", "alias": f"front {GLOBEX}"}
    do(lab, "sdn", zones=[zone], vnets=[vnet])


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("tenant", [{}, {"tenant": "acme"}, {"tenant": "glob"}], ids=str)
@pytest.mark.parametrize(
    "task",
    [
        {**GROUP, "rules": [SSH]},
        {**GROUP, "rules": [DROP]},
        {**GROUP, "comment": ""},
        {**GROUP, "state": "absent"},
        {"scope": "vnet", "vnet": "tglobex", "options": {"enable": True}},
    ],
    ids=str,
)
def test_an_object_of_a_tenant_is_changed_only_with_that_tenant(
    lab: Lab, task: dict[str, Any], tenant: dict[str, Any]
) -> None:
    for required in (False, True):
        result = refused(lab, **task, **tenant, require_tenant=required)
        assert result["error"]["reason"] in ("foreign tenant", "require_tenant"), result


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize(
    "options",
    [
        {"aliases": [{"name": "GLOBEX-office", "cidr": "192.0.2.8"}]},
        {"ip_sets": [{"name": "tenant_globex", "members": [{"cidr": "10.0.0.0/8"}]}]},
        {"ip_sets": [{"name": "fleet-tenants", "members": [{"cidr": "10.0.0.0/8"}]}]},
        {"ip_sets": [{"name": "tenant_globex", "comment": ""}], "exact": True},
        {"ip_sets": [{"name": "new", "comment": GLOBEX}]},
        {"aliases": [{"name": "new", "cidr": "192.0.2.8", "comment": f"x {GLOBEX}"}]},
    ],
    ids=str,
)
def test_a_name_of_a_tenant_in_the_cluster_is_not_changed(
    lab: Lab, options: dict[str, Any]
) -> None:
    result = refused(lab, scope="cluster", **options)
    assert "has the mark of a tenant" in result["msg"]


@pytest.mark.usefixtures("marked")
def test_the_group_of_a_tenant_is_changed_with_the_tenant_and_keeps_its_mark(lab: Lab) -> None:
    converge(lab, **GROUP, tenant="globex", rules=[SSH], comment="isolation")
    rows = lab.client.get("cluster", "firewall", "groups")
    comments = {row["group"]: row["comment"] for row in rows}
    assert comments["tenant_globex"] == f"isolation {GLOBEX}"
    converge(lab, scope="vnet", vnet="tglobex", tenant="globex", options={"enable": True})
    result = refused(lab, **GROUP, tenant="globex", comment="[pve.fleet: tenant=tenant_acme]")
    assert "has the mark of a tenant" in result["msg"]
    do(lab, "firewall_info", **GROUP, tenant="globex")
    assert lab.run("firewall_info", **GROUP, tenant="acme")["error"]["reason"] == "foreign tenant"
    do(lab, "firewall", scope="group", group="shared", rules=[SSH], require_tenant=True)
    assert (
        "does not have the mark"
        in refused(lab, scope="group", group="shared", tenant="acme", rules=[])["msg"]
    )
