"""Checks that need no server: PVE's own verdicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from tests.simulator.schema.calendar_event import BadEvent, parse_event


def cidr4(value: str) -> str:
    return validate.cidr(value, 4, "ip")


def ssh_key(value: str) -> str:
    return validate.ssh_key(value, "keys")


def cidr6(value: str) -> str:
    return validate.cidr(value, 6, "ip6")


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (validate.dns_name, ["web1", "A1.b2", "1abc", "a" * 63, "a-b.c", ".".join(["a" * 63] * 3)]),
        (validate.tag, ["a", "tenant_acme", "_x", "a+b.c-d", "1"]),
        (validate.mac, ["BC:24:11:00:00:01", "bc:24:11:aa:bb:cc"]),
        (validate.pool, ["acme", "a/b", "a/b/c", "Tenant.A"]),
        (validate.group, ["globex", "ops.eu-1", "_x"]),
        (validate.role, ["operator", "Op_1"]),
        (validate.user, ["alice@pve", "a.b@c@example-realm", "x@pv", "a" * 60 + "@pve"]),
        (validate.token_name, ["deploy", "t1", "A.b-c_d"]),
        (validate.token, ["alice@pve!t1", "a!b@pve!deploy"]),
        (validate.storage, ["local-lvm", "ceph", "nas_1"]),
        (validate.node, ["pve1", "node-2"]),
        (validate.bridge, ["vmbr0", "custom-bridge", "br.100"]),
        (validate.volume, ["local:iso/x.iso", "ceph:vm-100-disk-0"]),
        (cidr4, ["10.0.0.5/24", "192.168.1.0/31"]),
        (cidr6, ["fd00::5/64"]),
        (
            ssh_key,
            [
                "ssh-ed25519 AAAA x",
                "ssh-rsa B",
                "ecdsa-sha2-nistp256 AAAA= me at home",
                'command="echo hi",no-pty sk-ssh-ed25519@openssh.com AAAA',
            ],
        ),
    ],
)
def test_accepted(check: Callable[[str], str], good: list[str]) -> None:
    for value in good:
        assert check(value).lower() == value.lower()


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (
            validate.dns_name,
            [
                "my vm",
                "under_score",
                "x-",
                "-x",
                "",
                "a..b",
                "bad!",
                "a" * 64,
                "ok." + "b" * 64,
                ".".join(["a" * 62] * 5),
            ],
        ),
        (
            ssh_key,
            ["hello", "ssh-rsa", "AAAA", "-----BEGIN OPENSSH PRIVATE KEY-----", "xssh-rsa AAAA"],
        ),
        (validate.tag, ["tenant=1", "-x", "x~", "a b", "ü"]),
        (validate.mac, ["BC:24:11:00:00", "BD:24:11:00:00:01", "bc-24-11-00-00-01"]),
        (validate.pool, ["a b", "", "a/", "/a", "a//b", "a/b/c/d"]),
        (validate.storage, ["1x", "a", "a b"]),
        (validate.node, ["bad_node!", "a.b"]),
        (validate.volume, ["/tmp/x", "20G", "local:"]),
        (cidr4, ["10.0.0.5", "10.0.0.300/24", "fd00::5/64", "dhcp"]),
        (cidr6, ["10.0.0.5/24", "fd00::5"]),
    ],
)
def test_refused_with_a_next_step(check: Callable[[str], str], bad: list[str]) -> None:
    for value in bad:
        with pytest.raises(ValidationFailed) as failure:
            check(value)
        assert failure.value.next_step, value


@pytest.mark.parametrize("value", [99, 1000000000, "abc", -5, "", "10.5", "²", "9" * 5000])
def test_a_vmid_is_a_number_from_100(value: object) -> None:
    with pytest.raises(ValidationFailed):
        validate.vmid(value)


def test_names_of_the_canonical_form() -> None:
    assert validate.vmid("100") == 100
    assert validate.tag("Web") == "web"
    assert validate.mac("bc:24:11:aa:bb:cc") == "BC:24:11:AA:BB:CC"


SCHEDULES = [
    *("02:30", "2:30:15", "*/6:00", "*:0/10", "*", "5", "*/15", "8..17:00", "0,12:30"),
    *("daily", "hourly", "semi-annually", "weekly UTC", "dayly", "DAILY", "at night", ""),
    *("mon", "Mon..Fri 22:00", "mon,wed..fri 2:30 UTC", "monday 1:00", "mond 1:00", "mon-fri 1:00"),
    *("2026-12-24 18:00", "*-*-1 0:00", "12-24", "*-13-1", "*-1-32", "2026-12-24T18:00"),
    *("24:00", "25:00", "23:60", "2:30:60", "*/61", "*/24:00", "2.30", "2h", "2:30pm", "*,5:00"),
]


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules(text: str) -> None:
    """The simulator parses them as proxmox-time does (src/calendar_event.rs)."""
    try:
        parse_event(text)
    except BadEvent:
        with pytest.raises(ValidationFailed):
            validate.schedule(text)
    else:
        assert validate.schedule(f" {text} ") == text


def test_schedule_with_an_endless_number() -> None:
    with pytest.raises(ValidationFailed):
        validate.schedule("9" * 5000 + ":00")
