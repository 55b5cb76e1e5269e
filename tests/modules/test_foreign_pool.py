# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest of a tenant in the pool that was created for another tenant: refused, unless both tenants have
rights on the pool.

The logins with rights on a pool have them on its guests (pve-access-control: RPCEnvironment.pm,
roles), and only those who may change the rights see them (API2/ACL.pm, read_acl).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, limited, refused, requests
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

OWN: dict[str, Any] = {"tenant": "acme", "pool": "hooli"}
TEXT = "pool hooli was created for tenant hooli, and tenant acme has no rights on it"


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster with a tenant that has a pool."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made(unused, "hooli")
    return unused


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("vm", {"disks": [{"size": 1}], **OWN}),
        ("container", {"source": "debian-13-standard", "default_storage": "ceph", **OWN}),
        ("clone", {"source": "debian-13", **OWN}),
        ("vms", {"vms": [{"name": "web1", **OWN}]}),
    ],
)
def test_a_guest_in_the_pool_of_another_tenant_is_refused(
    lab: Lab, module: str, options: dict[str, Any]
) -> None:
    named = options if module == "vms" else {"name": "web1", **options}
    text = refused(lab, module, **named)["msg"]
    assert TEXT in text
    assert "Set pool to the pool of tenant acme" in text


def test_a_guest_is_not_moved_to_the_pool_of_another_tenant(lab: Lab) -> None:
    lab.vm(name="web1", tenant="acme", pool="acme", disks=[{"size": 1}])
    assert TEXT in refused(lab, "vm", name="web1", **OWN)["msg"]


def test_two_tenants_with_rights_share_a_pool(lab: Lab) -> None:
    login = made(lab, "initech", pool="hooli")
    own: dict[str, Any] = {"tenant": "initech", "pool": "hooli", "source": "debian-13"}
    do(lab, "clone", name="web1", **own)
    do(lab, "clone", name="web2", **own, **login)


def test_the_first_guest_of_a_tenant_in_a_shared_pool_by_its_own_login(lab: Lab) -> None:
    """The login cannot read the rights on the pool, but has them itself."""
    login = made(lab, "initech", pool="hooli")
    do(lab, "clone", name="web1", tenant="initech", pool="hooli", source="debian-13", **login)


def test_a_login_that_cannot_read_the_rights_is_refused(lab: Lab) -> None:
    login = limited(
        lab, "operator", {"/": "PVEVMAdmin", "/pool": "PVEAuditor", "/storage": "PVEDatastoreUser"}
    )
    text = refused(lab, "vm", name="web1", **OWN, disks=[{"size": 1}], **login)["msg"]
    assert "this login cannot read whether tenant acme has rights on it" in text
    assert "use a login with Sys.Audit on /access" in text


@pytest.mark.parametrize("pool", ["acme", "globex"])
def test_a_pool_without_the_mark_of_another_tenant_needs_no_rights(lab: Lab, pool: str) -> None:
    """The pool of the tenant's name needs no request, another pool without a mark one."""
    lab.simulator.reset_log()
    lab.vm(name="web1", tenant="acme", pool=pool, disks=[{"size": 1}])
    sent = requests(lab)
    assert sent.count("GET /access/acl") == 0
    assert sent.count("GET /pools") == (pool != "acme")
    lab.simulator.reset_log()
    lab.vm(name="web2", tenant="acme", pool=pool, disks=[{"size": 1}])
    assert requests(lab).count("GET /pools") == 0
