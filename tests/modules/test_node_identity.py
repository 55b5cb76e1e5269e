# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules node_certificate and subscription against the simulator, which follows pve-manager
(API2/Certificates.pm, CertHelpers.pm, API2/Subscription.pm).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority, Pair, self_signed
from tests.modules.access_lab import limited, refused
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done

KEY, OTHER = "pve2s-0123456789", "pve2p-abcdef0123"
NODE: dict[str, Any] = {"node": "pve1"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def text(pair: Pair) -> dict[str, Any]:
    return {
        "certificates": pair.certificate.read_text(encoding="ascii"),
        "private_key": pair.key.read_text(encoding="ascii"),
    }


def written(lab: Lab) -> list[dict[str, Any]]:
    """Return the parameters of the writes."""
    return [one["params"] for one in lab.simulator.writes()]


def test_a_certificate_is_uploaded_replaced_and_removed(lab: Lab, authority: Authority) -> None:
    first, second = text(authority.issue("first")), text(authority.issue("second"))
    made = done(lab, "node_certificate", **NODE, **first)
    shown = made["node_certificate"]
    assert (shown["subject"], shown["names"]) == ("/CN=127.0.0.1", ["127.0.0.1"])
    assert shown["not_after"] > shown["not_before"]
    assert first["private_key"] not in str(made)
    changed = done(lab, "node_certificate", **NODE, **second)
    assert changed["node_certificate"]["fingerprint"] != shown["fingerprint"]
    (listed,) = lab.run("node_certificate_info", **NODE)["certificates"]
    options = {name: listed[name] for name in ("node", "certificates")}
    assert not lab.run("node_certificate", **options)["changed"]
    done(lab, "node_certificate", **NODE, state="absent")
    assert lab.run("node_certificate_info", **NODE)["certificates"] == []


def test_the_key_goes_with_its_certificate_and_is_kept_without_one(
    lab: Lab, authority: Authority
) -> None:
    first, second = text(authority.issue("first")), text(authority.issue("second"))
    lab.run("node_certificate", **NODE, **first, restart=False)
    lab.simulator.reset_log()
    lab.run("node_certificate", **NODE, **second)
    (sent,) = written(lab)
    assert (sent["force"], sent["restart"]) == ("1", "1")
    assert sent["key"] not in ("", None)
    lab.simulator.reset_log()
    assert not lab.run("node_certificate", **NODE, **second)["changed"]
    lab.run("node_certificate", **NODE, certificates=first["certificates"], restart=False)
    (sent,) = written(lab)
    assert "key" not in sent
    assert "restart" not in sent
    again = lab.run("node_certificate", **NODE, **first, update_secrets="always")
    assert not again.get("failed"), again
    assert again["done"] == ["Set private_key of the certificate of node pve1"]


def test_a_chain_is_compared_by_its_first_certificate(lab: Lab, authority: Authority) -> None:
    own = text(authority.issue("own"))
    chain = own["certificates"] + authority.file.read_text(encoding="ascii")
    lab.run("node_certificate", **NODE, certificates=chain, private_key=own["private_key"])
    assert not lab.run("node_certificate", **NODE, **own)["changed"]


def test_certificates_that_are_refused(lab: Lab, tmp_path: Path) -> None:
    own = text(self_signed(tmp_path))
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"certificates": own["certificates"]}, "private_key", "the node has no key for it"),
        (
            {"certificates": "none", "private_key": own["private_key"]},
            "certificates",
            "not a certificate",
        ),
        ({"certificates": own["private_key"]}, "certificates", "it has a private key"),
        ({**own, "private_key": own["certificates"]}, "private_key", "not one private key"),
        ({}, "certificates", "certificates is required"),
        ({**own, "node": "nowhere"}, "unknown node", "nowhere"),
    ]
    for options, reason, word in cases:
        result = refused(lab, "node_certificate", **{**NODE, **options})
        assert result["error"]["reason"] == reason, result["msg"]
        assert word in result["msg"]
        assert "PRIVATE" not in str(result)
    login = limited(lab, "reader", {"/nodes": "PVEAuditor"})
    failed = lab.run("node_certificate", **NODE, **own, **login)
    assert failed["error"]["category"] == "PermissionDenied"


def test_a_subscription_is_set_replaced_and_removed(lab: Lab) -> None:
    made = done(lab, "subscription", **NODE, key=KEY)
    assert made["subscription"]["status"] == "active"
    assert KEY not in str(made)
    assert not lab.run("subscription", **NODE, key=OTHER)["changed"]
    changed = lab.run("subscription", **NODE, key=OTHER, update_secrets="always")
    assert changed["subscription"]["level"] == "p"
    (listed,) = lab.run("subscription_info", **NODE)["subscriptions"]
    assert listed == changed["subscription"]
    done(lab, "subscription", **NODE, state="absent")
    assert lab.run("subscription_info", **NODE)["subscriptions"] == []


def test_a_key_that_the_shop_does_not_know(lab: Lab) -> None:
    made = lab.run("subscription", **NODE, key="pve2c-0000000000")
    assert (made["subscription"]["status"], made["subscription"]["message"]) == (
        "invalid",
        "Unknown key",
    )


@pytest.mark.parametrize(
    ("options", "reason", "word"),
    [
        ({}, "key", "the node has no subscription key"),
        ({"key": "pve3c-0123456789"}, "key", "not a subscription key"),
        ({"key": KEY, "node": "nowhere"}, "unknown node", "nowhere"),
    ],
)
def test_a_subscription_is_refused(
    lab: Lab, options: dict[str, Any], reason: str, word: str
) -> None:
    result = refused(lab, "subscription", **{**NODE, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_a_key_for_too_few_sockets(lab: Lab) -> None:
    """PVE compares the key with the sockets of the node (API2/Subscription.pm, check_fields)."""
    lab.simulator.steer("/nodes/pve1", {"sockets": 4})
    result = lab.run("subscription", **NODE, key=KEY)
    assert "wrong number of sockets (2 < 4)" in result["msg"]


def test_pending_updates_and_the_need_of_a_reboot(lab: Lab) -> None:
    """The rows are those of PVE/API2/APT.pm, assemble_pkginfo: a package that an update installs in
    addition has no OldVersion.
    """
    nodes = lab.run("node_update_info")["nodes"]
    assert [(one["node"], one["installs_kernel"]) for one in nodes] == [
        ("pve1", True),
        ("pve2", False),
        ("pve3", False),
    ]
    updates = nodes[0]["updates"]
    assert [(one["package"], one["old_version"], one["kernel"]) for one in updates] == [
        ("openssl", "3.5.4-1~deb13u1", False),
        ("proxmox-kernel-6.17", "6.17.2-1", True),
        ("proxmox-kernel-6.17.4-1-pve-signed", None, True),
    ]
    assert lab.run("node_update_info", node="pve2")["nodes"][0]["updates"] == []


def test_updates_without_the_privilege(lab: Lab) -> None:
    login = limited(lab, "reader", {"/nodes/pve1": "PVEAdmin", "/nodes": "PVEAuditor"})
    result = lab.run("node_update_info", **login)
    assert result["error"]["category"] == "PermissionDenied"
    lab.client.write("POST", "access", "roles", data={"roleid": "upd", "privs": "Sys.Modify"})
    partly = limited(lab, "partly", {"/nodes/pve1": "upd", "/nodes/pve2": "PVEAuditor"})
    found = lab.run("node_update_info", **partly)
    assert [one["node"] for one in found["nodes"]] == ["pve1"]
    assert {one["category"] for one in found["missing"]} == {"PermissionDenied"}
