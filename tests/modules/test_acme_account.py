# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Accounts of ACME against the simulator, which follows pve-manager (API2/ACMEAccount.pm)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.root import ROOT
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused
from tests.simulator.identity.acme_accounts import LETS_ENCRYPT, STAGING, TERMS

NEW: dict[str, Any] = {
    "name": "staging",
    "contact": ["ops@example.com"],
    "directory": STAGING,
    "tos_url": TERMS,
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


class RootLab(Lab):
    """The lab with the login of root@pam by a password."""

    @property
    def connection(self) -> dict[str, Any]:
        token = ("token_id", "token_secret")
        kept = {name: value for name, value in super().connection.items() if name not in token}
        return {**kept, "user": ROOT, "password": "fleetpw123"}


def as_root(lab: Lab) -> RootLab:
    return RootLab(lab.simulator, lab.client)


def test_account_is_registered_changed_and_deactivated(lab: Lab) -> None:
    root = as_root(lab)
    made = done(root, "acme_account", **NEW, eab_kid="kid-1", eab_hmac_key="hush-hush-1")
    assert "hush-hush-1" not in str(made)
    account = made["acme_account"]
    assert (account["contact"], account["status"]) == (["ops@example.com"], "valid")
    changed = done(root, "acme_account", name="staging", contact=["b@example.com", "a@example.com"])
    assert changed["plan"] == ["Set contact of ACME account 'staging'"]
    listed = root.run("acme_account_info")["acme_accounts"]
    assert [(one["name"], one["directory"]) for one in listed] == [
        ("default", LETS_ENCRYPT),
        ("staging", STAGING),
    ]
    pasted = {key: listed[1][key] for key in NEW}
    assert not root.run("acme_account", **pasted)["changed"]
    assert done(root, "acme_account", name="staging", state="absent")["acme_account"] is None


def test_login_other_than_root_is_refused(lab: Lab) -> None:
    """The calls have no permission, so that PVE answers 403 to a token of root@pam too."""
    result = refused(lab, "acme_account", **NEW)
    assert result["error"]["category"] == "PermissionDenied"
    assert (
        "was not changed: the login is root@pam!fleet. PVE allows this to root@pam with"
        in result["msg"]
    )
    assert lab.simulator.log() == []
    assert "set user=root@pam and password" in lab.run("acme_account_info")["msg"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"contact": None}, "contact", "contact is required"),
    ({"tos_url": None}, "tos_url", TERMS),
    ({"directory": "https://eab.example.com/directory"}, "external account", "eab_kid"),
    ({"eab_kid": "kid-1"}, "external account", "eab_hmac_key"),
    ({"name": "default"}, "fixed option", "cannot change directory"),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_account_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(as_root(lab), "acme_account", **{**NEW, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_account_of_a_node_is_not_deactivated(lab: Lab) -> None:
    domains = [{"domain": "pve1.lab.example.com"}]
    assert lab.run("node", node="pve1", acme={"domains": domains})["changed"]
    result = refused(as_root(lab), "acme_account", name="default", state="absent")
    assert result["error"]["nodes"] == ["pve1"]


def test_accounts_of_a_cluster_file(lab: Lab) -> None:
    """A login that cannot read the accounts exports the rest, and names the accounts."""
    task: dict[str, Any] = {"sections": ["acme_accounts"]}
    exported = as_root(lab).run("cluster_export_info", **task)
    items = exported["cluster"]["cluster_acme_accounts"]
    assert items == [{"name": "default", "contact": ["ops@example.com"], "tos_url": TERMS}]
    assert not as_root(lab).run("cluster", acme_accounts=items)["changed"]
    assert as_root(lab).run("cluster", acme_accounts=[NEW])["plan"] == [
        "Create ACME account 'staging'"
    ]
    result = lab.run("cluster_export_info", **task)
    assert (result["complete"], result["cluster"]) == (True, {})
    assert {one["section"] for one in result["secrets"]} == {"acme_accounts"}
    assert lab.run("cluster", acme_accounts=items)["error"]["reason"] == "root only"
