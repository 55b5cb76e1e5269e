# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules for endpoints and matchers of notifications against the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

MAIL: dict[str, Any] = {"type": "sendmail", "name": "ops"}
SMTP: dict[str, Any] = {
    "type": "smtp",
    "name": "company",
    "server": "mail.example.com",
    "from_address": "pve@example.com",
}
HOOK: dict[str, Any] = {
    "type": "webhook",
    "name": "chat",
    "webhook_url": "https://chat.example.com",
    "method": "post",
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def test_endpoints(lab: Lab) -> None:
    made = done(lab, "notification_endpoint", **MAIL, mailto=["b@example.com", "a@example.com"])
    assert made["notification_endpoint"]["mailto"] == ["a@example.com", "b@example.com"]
    done(lab, "notification_endpoint", **MAIL, mailto=[], mailto_user=["root@pam"], comment="c")
    made = done(
        lab, "notification_endpoint", **SMTP, mailto=["a@example.com"], smtp_password="abc1"
    )
    assert "abc1" not in str(made)
    done(lab, "notification_endpoint", **SMTP, mode="starttls", server_port=587, disable=True)
    done(lab, "notification_endpoint", **SMTP, mode="tls", server_port=0, disable=False)
    assert "port" not in lab.client.get("cluster", "notifications", "endpoints", "smtp", "company")
    made = done(lab, "notification_endpoint", **HOOK, headers={"X-A": "1, 2"}, body="{}")
    assert made["notification_endpoint"]["headers"] == {"X-A": "1, 2"}
    sent = lab.client.get("cluster", "notifications", "endpoints", "webhook", "chat")
    assert (sent["body"], sent["header"]) == ("e30=", ["name=X-A,value=MSwgMg=="])
    done(lab, "notification_endpoint", **HOOK, headers={}, body="")
    listed = lab.run("notification_endpoint_info")["notification_endpoints"]
    assert [one["name"] for one in listed] == ["mail-to-root", "ops", "company", "chat"]
    for one in listed:
        assert not lab.run("notification_endpoint", **one)["changed"]
    done(lab, "notification_endpoint", type="webhook", name="chat", state="absent")


def test_secret_is_written_when_asked(lab: Lab) -> None:
    gotify: dict[str, Any] = {
        "type": "gotify",
        "name": "phone",
        "server": "https://gotify.example.com",
    }
    done(lab, "notification_endpoint", **gotify, token="secret-1")
    assert not lab.run("notification_endpoint", **gotify, token="secret-2")["changed"]
    result = lab.run(
        "notification_endpoint", **gotify, token="secret-2", update_secrets="always", test=True
    )
    assert "a test message to 'phone' failed" in result["msg"]


def test_message_is_sent_after_a_change_only(lab: Lab) -> None:
    for expected in (2, 0):
        lab.simulator.reset_log()
        result = lab.run("notification_endpoint", **MAIL, mailto=["a@example.com"], test=True)
        assert not result.get("failed"), result
        assert len(lab.simulator.writes()) == expected


def test_matchers(lab: Lab) -> None:
    done(lab, "notification_endpoint", **MAIL, mailto=["a@example.com"])
    made = done(
        lab, "notification_matcher", name="backups", target=["ops"], match_severity=["error"]
    )
    assert made["notification_matcher"]["mode"] == "all"
    done(lab, "notification_matcher", name="backups", mode="any", invert_match=True, target=[])
    done(lab, "notification_matcher", name="backups", target=["ops", "mail-to-root"])
    for one in lab.run("notification_matcher_info")["notification_matchers"]:
        assert not lab.run("notification_matcher", **one)["changed"]
    result = refused(lab, "notification_endpoint", **MAIL, state="absent")
    assert "messages are sent to it by matcher backups" in result["msg"]
    done(lab, "notification_matcher", name="backups", state="absent")
    done(lab, "notification_endpoint", **MAIL, state="absent")


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "notification_matcher",
        {"name": "m1", "target": ["nope"]},
        "unknown endpoint",
        "mail-to-root",
    ),
    ("notification_matcher", {"name": "default-matcher", "state": "absent"}, "built in", "disable"),
    (
        "notification_endpoint",
        {"type": "sendmail", "name": "mail-to-root", "state": "absent"},
        "built in",
        "disable=true",
    ),
    (
        "notification_endpoint",
        {**MAIL, "webhook_url": "x"},
        "webhook_url",
        "option of type webhook",
    ),
    (
        "notification_endpoint",
        {"type": "smtp", "name": "s1", "server": "smtp.example.com"},
        "from_address",
        "from_address is required",
    ),
    ("notification_endpoint", {"type": "sendmail", "name": "s1"}, "mailto", "no recipient"),
    (
        "notification_endpoint",
        {"type": "sendmail", "name": "mail-to-root", "mailto_user": []},
        "mailto",
        "no recipient",
    ),
    ("notification_endpoint", {"type": "gotify", "name": "s1"}, "server", "server is required"),
    # An u16 of Rust (proxmox-notify: endpoints/smtp.rs).
    (
        "notification_endpoint",
        {**SMTP, "mailto": ["ops@example.com"], "server_port": 65536},
        "server_port",
        "65535",
    ),
]


@pytest.mark.parametrize(("module", "options", "reason", "word"), REFUSED, ids=str)
def test_refused(lab: Lab, module: str, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(lab, module, **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]
