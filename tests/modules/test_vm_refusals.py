"""What module vm refuses: category, next step, and no write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import refused
from tests.modules.estate_lab import TOKEN_SECRET, Lab
from tests.modules.module_runner import run_module

NEW: dict[str, Any] = {"name": "refused", "source": "debian-13"}

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**NEW, "node": "pve9"}, "ConfigurationError", "pve9"),
    ({**NEW, "pool": "nosuch"}, "ConfigurationError", "nosuch"),
    ({**NEW, "nics": [{"bridge": "vmbr77"}]}, "ConfigurationError", "vmbr77"),
    (
        {**NEW, "disks": [{"name": "scsi1", "size": 1, "storage": "nosuch"}]},
        "ConfigurationError",
        "nosuch",
    ),
    (
        {**NEW, "full": True, "node": "pve1", "disks": [{"name": "scsi0", "storage": "nosuch"}]},
        "ConfigurationError",
        "nosuch",
    ),
    ({"name": "refused", "source": "debian-99"}, "NotFound", "debian-99"),
    ({"name": "refused", "source": "7777"}, "NotFound", "7777"),
    (
        {"name": "refused", "source": "local:iso/nosuch.iso", "node": "pve1"},
        "ConfigurationError",
        "nosuch.iso",
    ),
    ({"name": "refused", "source": "nosuch:iso/x.iso"}, "ConfigurationError", "nosuch"),
    ({"vmid": 77777}, "ValidationFailed", "77777"),
    ({"name": "refused", "disks": [{"name": "scsi0"}]}, "ValidationFailed", "scsi0"),
    (
        {**NEW, "full": False, "disks": [{"name": "scsi0", "storage": "local-lvm"}]},
        "NotSupported",
        "linked",
    ),
    ({**NEW, "disks": [{"name": "scsi0", "size": "1G"}]}, "ValidationFailed", "shrink"),
    ({**NEW, "memory": "12X"}, "ValidationFailed", "12X"),
    ({**NEW, "memory": "1M"}, "ValidationFailed", "64"),
    ({**NEW, "cores": 4096}, "ValidationFailed", "1024"),
    ({**NEW, "vmid_range": [9000, 9001]}, "QuotaExceeded", "9000"),
    ({**NEW, "class": "nosuch"}, "ConfigurationError", "nosuch"),
    ({**NEW, "nics": [{"network": "nosuch"}]}, "ConfigurationError", "nosuch"),
    ({"name": "bad_name", "source": "debian-13"}, "ValidationFailed", "bad_name"),
]


@pytest.mark.parametrize(
    ("options", "category", "word"), REFUSED, ids=lambda value: str(value)[:70]
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, word: str
) -> None:
    result = lab.refused(**options)
    assert result["error"]["category"] == category, result["msg"]
    assert word in result["msg"]
    assert "Traceback" not in str(result)


def test_a_template_name_that_matches_two(lab: Lab) -> None:
    lab.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": 9501, "name": "double"})
    lab.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": 9502, "name": "double"})
    for vmid in (9501, 9502):
        lab.client.task("POST", "nodes", "pve1", "qemu", vmid, "template")
    result = lab.refused(name="refused", source="double")
    assert result["error"]["category"] == "Conflict"
    assert "9501" in result["msg"]
    assert "9502" in result["msg"]


FOREIGN: list[dict[str, Any]] = [
    {"cores": 8},
    {"state": "absent"},
    {"state": "stopped"},
    {"tags": ["x"]},
    {"adopt": True, "cores": 8},
    {"adopt": True, "state": "absent"},
]


@pytest.mark.parametrize("options", FOREIGN, ids=str)
def test_another_tenants_vm_is_never_touched(lab: Lab, options: dict[str, Any]) -> None:
    theirs = lab.vm(name="theirs", source="debian-13", tenant="globex", state="started")["vm"]
    for tenant in ("acme", "globe"):
        result = lab.refused(vmid=theirs["vmid"], tenant=tenant, **options)
        assert result["error"]["category"] == "Conflict"
        assert result["error"]["reason"] == "foreign tenant"


def test_a_vm_without_tenant_is_taken_over_only_when_asked(lab: Lab, name: str) -> None:
    lab.vm(name=name, source="debian-13")
    assert lab.refused(name=name, tenant="acme", cores=3)["error"]["reason"] == "foreign tenant"
    taken = lab.vm(name=name, tenant="acme", adopt=True)
    assert taken["vm"]["tenant"] == "acme"
    assert not lab.vm(name=name, tenant="acme")["changed"]


def test_protection_and_shrinking_of_what_exists(lab: Lab, name: str) -> None:
    lab.vm(name=name, source="debian-13", protection=True, disks=[{"name": "scsi0", "size": "9G"}])
    assert lab.refused(name=name, state="absent")["error"]["reason"] == "protected"
    shrunk = lab.refused(name=name, disks=[{"name": "scsi0", "size": "8G"}])
    assert "9G" in shrunk["msg"]
    assert "8 GiB" in shrunk["msg"]
    assert lab.vm(name=name, state="absent", protection=False)["changed"]


CONNECTION: list[tuple[dict[str, Any], str]] = [
    ({"host": None}, "ConfigurationError"),
    ({"host": "https://exa mple"}, "ConfigurationError"),
    ({"host": "ftp://127.0.0.1"}, "ConfigurationError"),
    ({"token_secret": None}, "ConfigurationError"),
    ({"token_secret": "00000000-0000-4000-8000-00000000dead"}, "AuthenticationError"),
    ({"token_id": "root@pam!nosuch"}, "AuthenticationError"),
    ({"ca_path": None}, "NetworkError"),
    ({"ca_path": "/nonexistent/ca.pem"}, "ConfigurationError"),
    ({"host": "127.0.0.1:9", "retries": 1}, "NetworkError"),
    ({"site": "nosuch"}, "ConfigurationError"),
]


@pytest.mark.parametrize("module", ["vm", "vm_info"])
@pytest.mark.parametrize(("options", "category"), CONNECTION, ids=lambda value: str(value)[:60])
def test_wrong_connections_have_distinct_errors(
    lab: Lab, module: str, options: dict[str, Any], category: str
) -> None:
    lab.simulator.reset_log()
    arguments = {**lab.connection, "name": "refused", **options}
    result = run_module(
        module, {key: value for key, value in arguments.items() if value is not None}
    )
    assert result["failed"]
    assert result["error"]["category"] == category, result["msg"]
    assert TOKEN_SECRET not in str(result)
    assert "Traceback" not in str(result)
    assert lab.simulator.writes() == []


def test_a_boot_order_of_missing_devices_is_refused(quiet: Lab, name: str) -> None:
    failed = refused(
        quiet, "vm", name=name, disks=[{"name": "scsi0", "size": "4G"}], boot=["cdrom"]
    )
    assert "the VM has no cdrom" in failed["msg"]
