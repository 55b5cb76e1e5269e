"""Property strings: parsed, written and compared as PVE does."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.propstring import (
    canonical,
    parse,
    render,
    same,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.schema.formats import (
    format_of,
    rule_of,
)

CASES = [
    (
        "net0",
        "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=100",
        {"model": "virtio", "macaddr": "BC:24:11:00:00:01", "bridge": "vmbr0", "tag": "100"},
    ),
    ("net0", "virtio,bridge=vmbr0", {"model": "virtio", "bridge": "vmbr0"}),
    (
        "scsi0",
        "ceph:vm-1-disk-0,size=32G,ssd=1",
        {"file": "ceph:vm-1-disk-0", "size": "32G", "ssd": "1"},
    ),
    ("memory", "2048", {"current": "2048"}),
    ("cpu", "host,flags=+aes", {"cputype": "host", "flags": "+aes"}),
    ("agent", "1,fstrim_cloned_disks=1", {"enabled": "1", "fstrim_cloned_disks": "1"}),
    ("boot", "order=scsi0;net0", {"order": "scsi0;net0"}),
    ("ipconfig0", "gw=10.0.0.1,ip=10.0.0.5/24", {"ip": "10.0.0.5/24", "gw": "10.0.0.1"}),
    ("startup", "order=2,up=30", {"order": "2", "up": "30"}),
    ("vga", "virtio,memory=64", {"type": "virtio", "memory": "64"}),
    ("smbios1", "uuid=1-2-3", {"uuid": "1-2-3"}),
]


@pytest.mark.parametrize(("key", "text", "values"), CASES)
def test_parsed(key: str, text: str, values: dict[str, str]) -> None:
    assert parse(text, format_of(key) or {}) == values


@pytest.mark.parametrize(("key", "text", "values"), CASES)
def test_written_text_means_the_same(key: str, text: str, values: dict[str, str]) -> None:
    fmt = format_of(key) or {}
    assert parse(render(values, fmt), fmt) == values


def test_written_with_the_default_key_first_and_the_rest_sorted() -> None:
    fmt = format_of("net0") or {}
    values = {"tag": "5", "macaddr": "BC:24:11:00:00:01", "model": "virtio", "bridge": "vmbr0"}
    assert render(values, fmt) == "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5"


def test_aliases_mean_their_key() -> None:
    assert parse("volume=local:1", format_of("scsi0") or {}) == {"file": "local:1"}


@pytest.mark.parametrize(
    ("key", "text"), [("ipconfig0", "dhcp"), ("net0", "virtio,bridge=a,bridge=b")]
)
def test_what_has_no_sense_is_refused(key: str, text: str) -> None:
    with pytest.raises(ValidationFailed):
        parse(text, format_of(key) or {}, what=key)


@pytest.mark.parametrize(
    ("value", "rule", "text"),
    [
        (True, {"type": "boolean"}, "1"),
        ("yes", {"type": "boolean"}, "1"),
        ("off", {"type": "boolean"}, "0"),
        (1.5, {"type": "number"}, "1.5"),
        ("2.0", {"type": "number"}, "2"),
        ("007", {"type": "integer"}, "7"),
        ("bc:24:11:aa:00:01", {"format": "mac-addr"}, "BC:24:11:AA:00:01"),
        ("x", {"type": "string"}, "x"),
    ],
)
def test_each_value_has_one_spelling(value: object, rule: dict[str, str], text: str) -> None:
    assert canonical(value, rule) == text


def test_a_missing_sub_key_has_pves_default() -> None:
    fmt = format_of("agent") or {}
    assert same("freeze-fs-on-backup", "1", None, fmt)
    assert not same("freeze-fs-on-backup", "0", None, fmt)
    assert same("firewall", False, None, format_of("net0") or {})
    assert not same("tag", "5", None, format_of("net0") or {})


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("net31", True),
        ("net32", False),
        ("scsi30", True),
        ("scsi31", False),
        ("ide3", True),
        ("ide4", False),
        ("cores", True),
        ("nosuch", False),
        ("numa", True),
        ("numa1", True),
    ],
)
def test_only_devices_that_a_vm_can_have_have_rules(key: str, known: bool) -> None:
    assert (rule_of(key) is not None) is known
