"""Options that only some versions of Proxmox VE know: judged by the server's own version, before
any write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, open_lab


@pytest.fixture(scope="module")
def older() -> Iterator[Lab]:
    """The demo cluster as PVE 8.4."""
    with open_lab("--pve-version", "8.4") as opened:
        yield opened


def versions_asked(lab: Lab) -> int:
    """Return how often the version was asked for since the log was reset."""
    return sum(1 for entry in lab.simulator.log() if entry["path"].endswith("/version"))


NEWER: list[tuple[dict[str, Any], str]] = [
    ({"options": {"allow-ksm": False}}, "allow-ksm"),
    ({"machine": "q35,viommu=intel,aw-bits=48"}, "machine"),
    (
        {"disks": [{"name": "efidisk0", "options": {"efitype": "4m", "ms-cert": "2023"}}]},
        "efidisk0",
    ),
    (
        {"disks": [{"name": "tpmstate0", "format": "raw", "options": {"version": "v2.0"}}]},
        "tpmstate0",
    ),
]


@pytest.mark.parametrize(
    ("options", "key"), NEWER, ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize("existing", [False, True], ids=["new", "existing"])
def test_an_option_of_a_newer_version_is_refused_before_a_write(
    older: Lab, lab: Lab, name: str, options: dict[str, Any], key: str, existing: bool
) -> None:
    if existing:
        older.vm(name=name, source="debian-13", default_storage="ceph")
        lab.vm(name=name, source="debian-13", default_storage="ceph")
    task = {"name": name, "source": "debian-13", "default_storage": "ceph", **options}
    result = older.refused(**task)
    assert result["error"]["category"] == "NotSupported", result["msg"]
    assert result["error"]["reason"] == key
    assert result["error"]["version"] == "8.4"
    for word in (key, "PVE 8.4", "PVE 9.1 takes it", "Leave that out", name):
        assert word in result["msg"]
    assert lab.vm(**task)["changed"]
    assert not lab.vm(**task)["changed"]


def test_an_option_of_an_older_version_is_refused_by_a_newer_one(
    older: Lab, lab: Lab, name: str
) -> None:
    disks = [{"name": "scsi1", "size": 1, "storage": "ceph", "options": {"cyls": 4}}]
    assert older.vm(name=name, source="debian-13", disks=disks)["changed"]
    assert not older.vm(name=name, source="debian-13", disks=disks)["changed"]
    result = lab.refused(name=name, source="debian-13", disks=disks)
    assert result["error"]["category"] == "NotSupported"
    assert "PVE 8.4 took it" in result["msg"]


@pytest.mark.parametrize("spelling", ["freeze-fs", "freeze-fs-on-backup"])
def test_an_option_that_was_renamed_goes_by_the_name_each_version_knows(
    older: Lab, lab: Lab, name: str, spelling: str
) -> None:
    for one in (older, lab):
        made = one.vm(
            name=name, source="debian-13", options={"agent": {"enabled": True, spelling: False}}
        )
        assert one.config(made["vm"])["agent"] == "1,freeze-fs-on-backup=0"
        assert not one.vm(name=name, options={"agent": {"enabled": True, spelling: False}})[
            "changed"
        ]


def test_an_ordinary_task_does_not_ask_for_the_version(older: Lab, name: str) -> None:
    older.simulator.reset_log()
    older.vm(
        name=name,
        source="debian-13",
        cores=2,
        memory="2G",
        agent=True,
        machine="q35",
        state="started",
    )
    older.vm(name=name, cores=3)
    assert versions_asked(older) == 0
    older.refused(name=name, options={"allow-ksm": False, "intel-tdx": "type=tdx"})
    assert versions_asked(older) == 1


def test_what_every_version_refuses_needs_no_request_at_all(older: Lab, name: str) -> None:
    for options in (
        {"options": {"allow-ksm": "perhaps"}},
        {"machine": "q35,aw-bits=480"},
        {"options": {"boot": "x"}},
    ):
        result = older.refused(name=name, source="debian-13", **options)
        assert result["error"]["category"] == "ValidationFailed", result["msg"]
        assert older.simulator.log() == []
