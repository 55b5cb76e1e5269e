# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module realm against the simulator, which follows pve-access-control."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

LDAP: dict[str, Any] = {
    "name": "company",
    "type": "ldap",
    "server1": "ldap.example.com",
    "base_dn": "dc=example,dc=com",
    "user_attr": "uid",
}
OPENID: dict[str, Any] = {
    "name": "sso",
    "type": "openid",
    "issuer_url": "https://sso.example.com",
    "client_id": "proxmox",
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_directory(lab: Lab) -> None:
    made = done(
        lab, "realm", **LDAP, mode="ldaps", verify=True, server_port=636, bind_password="secret-1"
    )
    assert "secret-1" not in str(made)
    assert made["realm"]["server_port"] == 636
    changed = done(lab, "realm", name="company", server_port=0, comment="staff", default=True)
    assert changed["realm"]["default"]
    assert changed["realm"]["server_port"] == 0
    listed = {row["name"]: row for row in lab.run("realm_info")["realms"]}
    pasted = {key: value for key, value in listed["company"].items() if key != "second_factor"}
    assert not lab.run("realm", **pasted)["changed"]
    done(lab, "realm", name="company", default=False, comment="", mode="ldap")
    assert not lab.run("realm", name="company", bind_password="secret-2")["changed"]
    again = lab.run("realm", name="company", bind_password="secret-2", update_secrets="always")
    assert again["done"] == ["Set bind_password of realm 'company'"]
    assert done(lab, "realm", name="company", state="absent")["realm"] is None


def test_openid_and_second_factor(lab: Lab) -> None:
    made = done(lab, "realm", **OPENID, client_secret="secret-3", autocreate=True)
    assert made["realm"]["autocreate"]
    done(lab, "realm", name="sso", scopes="email", tfa="type=oath,digits=6")
    assert done(lab, "realm", name="sso", scopes="", tfa="")["realm"]["scopes"] == "email profile"


def test_realms_of_proxmox_itself(lab: Lab) -> None:
    done(lab, "realm", name="pve", comment="tenants", tfa="type=oath")
    done(lab, "realm", name="pam", comment="operators")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "pve", "state": "absent"}, "built in", "a part of Proxmox VE"),
    ({"name": "x1", "type": "pam"}, "built in", "has one realm only"),
    ({"name": "x1"}, "type", "type is required"),
    ({**LDAP, "base_dn": None}, "base_dn", "base_dn is required"),
    ({**LDAP, "domain": "example.com"}, "domain", "option of type ad"),
    ({**OPENID, "server1": "x"}, "server1", "option of type ldap, ad"),
    ({**OPENID, "bind_password": "hush-hush"}, "bind_password", "option of type ldap, ad"),
    ({"name": "1x", "type": "ldap"}, "name", "is not the name of a realm"),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_realm_is_refused(lab: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, "realm", **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_realm_of_the_own_login_is_not_deleted(lab: Lab) -> None:
    done(lab, "realm", **LDAP)
    lab.client.write("POST", "access", "users", data={"userid": "alice@company"})
    data = {"path": "/", "roles": "Administrator", "users": "alice@company"}
    lab.client.write("PUT", "access", "acl", data=data)
    made = lab.client.write(
        "POST", "access", "users", "alice@company", "token", "own", data={"privsep": 0}
    )
    login = {"token_id": "alice@company!own", "token_secret": made["value"]}
    result = lab.run("realm", name="company", state="absent", **login)
    assert result["error"]["reason"] == "own login"


def test_lists_and_property_strings_are_compared_by_their_items(lab: Lab) -> None:
    """PVE prints the keys of sync-defaults-options sorted (API2/Domains.pm), and reads the other
    texts with split_list (Auth/LDAP.pm, API2/OpenId.pm).
    """
    lists: dict[str, Any] = {
        "user_classes": "person, user",
        "sync_attributes": "email=mail,firstname=gn",
    }
    done(
        lab, "realm", **LDAP, **lists, sync_defaults_options="scope=both,remove-vanished=entry;acl"
    )
    lists = {"user_classes": "user;person", "sync_attributes": "firstname=gn, email=mail"}
    again = lab.run(
        "realm",
        name="company",
        **lists,
        sync_defaults_options="remove-vanished=acl;entry,scope=both",
    )
    assert not again["changed"], again["diff"]
    made = done(lab, "realm", **OPENID, audiences="one,two", tfa="type=oath,digits=6")
    assert made["realm"]["audiences"] == "one,two"
    again = lab.run("realm", name="sso", audiences="two one", tfa="digits=6,type=oath")
    assert not again["changed"], again["diff"]
    assert done(lab, "realm", name="sso", audiences="")["realm"]["audiences"] == ""


@pytest.mark.parametrize("text", ["scope=all", "remove-vanished=users", "nosuch=1", "both"])
def test_a_malformed_default_of_a_synchronization_is_refused(lab: Lab, text: str) -> None:
    refused(lab, "realm", **LDAP, sync_defaults_options=text)
