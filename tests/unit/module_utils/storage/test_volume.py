# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of volumes, and the body of an upload."""

from __future__ import annotations

from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import (
    parse_endpoint,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.multipart import (
    MultipartBody,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Upload
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ConnectionSettings,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import StorageRow
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    NotFound,
    NotSupported,
    PermissionDenied,
    QuotaExceeded,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.desired import (
    DesiredFile,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume import plan
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.desired import (
    DesiredVolume,
    read_desired_volume,
)
from tests.fake_clock import FakeClock

_PVE = parse_endpoint("https://pve:8006", None)
ROOT = ConnectionSettings(_PVE, user="root@pam", password="x")
TOKEN = ConnectionSettings(_PVE, user="root@pam", token_id="root@pam!a", token_secret="x")
FILE = DesiredFile("local", "iso", "a.iso", node="pve1")


def row(version: str, package: str = "debian-13-standard") -> dict[str, str]:
    return {"template": f"{package}_{version}_amd64.tar.zst", "package": package}


def test_versions_of_a_template_are_compared_by_number() -> None:
    rows = [row("13.9-1"), row("13.10-1"), row("13.2-9"), row("99", "debian-14-standard")]
    assert plan.find_template(rows, "debian-13-standard") == rows[1]["template"]
    assert plan.find_template(rows, rows[2]["template"]) == rows[2]["template"]
    with pytest.raises(NotFound, match="pveam update"):
        plan.find_template(rows, "debian")


def test_space_and_versions_are_checked() -> None:
    with pytest.raises(QuotaExceeded, match="needs 2 GiB, and 1 GiB are free"):
        plan.require_space(DesiredVolume(FILE, size=2 << 30), 1 << 30)
    plan.require_space(DesiredVolume(FILE, size=2 << 30), None)
    with pytest.raises(NotSupported, match=r"came with 9\.1"):
        plan.require_images(DesiredVolume(FILE, image="nginx:1"), (9, 0))


def test_the_body_of_an_upload(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 600_000)
    with MultipartBody({"content": "iso"}, Upload(str(file), "a.iso"), FakeClock()) as body:
        data = b"".join(body)
        assert len(body) == len(data)
    head = f"Content-Type: {body.content_type}\r\n\r\n".encode()
    parts: Any = message_from_bytes(head + data).get_payload()
    first, second = parts
    assert first.get_payload() == "iso"
    assert second.get_filename() == "a.iso"
    assert len(second.get_payload()) == 600_000


def test_the_progress_of_an_upload_is_called_before_each_piece(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 600_000)
    clock, calls = FakeClock(), []
    upload = Upload(str(file), "a.iso", progress=lambda *call: calls.append(call))
    with MultipartBody({"content": "iso"}, upload, clock) as body:
        for _piece in body:
            clock.now += 2.0
    piece = 1 << 18
    assert calls == [
        (upload, 0, 600_000, 2.0),
        (upload, piece, 600_000, 4.0),
        (upload, 2 * piece, 600_000, 6.0),
    ]


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 1_000_000)
    with MultipartBody({}, Upload(str(file), "a.iso"), FakeClock()) as body:
        file.write_bytes(b"")
        with pytest.raises(OSError, match="became shorter"):
            list(body)


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        MultipartBody({}, Upload(str(tmp_path / "none"), "a.iso"), FakeClock())


def a_copy(storage: str, name: str, content: str = "images", **values: Any) -> DesiredVolume:
    file = DesiredFile(storage, content, name, node="pve2")
    return DesiredVolume(file, source=file.volume, source_node="pve1", size=1, **values)


@pytest.mark.parametrize(
    ("kind", "copied", "message"),
    [
        ("lvmthin", a_copy("thin", "vm-1-disk-0"), None),
        ("dir", a_copy("dir", "1/vm-1-disk-0.raw"), None),
        ("dir", a_copy("dir", "a.ova", "import"), None),
        ("dir", a_copy("dir", "1/vm-1-disk-0.qcow2"), "raw disks"),
        ("dir", a_copy("dir", "a.qcow2", "import"), "would convert the image to raw"),
        ("dir", a_copy("dir", "a.vma", "backup"), "does not copy backups"),
        ("rbd", a_copy("ceph", "vm-1-disk-0"), "is shared"),
        ("esxi", a_copy("esxi", "a.vmdk", "import"), "of type esxi"),
    ],
)
def test_volumes_that_proxmox_ve_does_not_copy(
    kind: str, copied: DesiredVolume, message: str | None
) -> None:
    """Sources: volume_export_formats and volume_import of pve-storage, Storage/Plugin.pm."""
    content = frozenset({copied.file.content})
    place = StorageRow(copied.file.storage, "pve2", True, kind == "rbd", kind, content, 0, 1)
    with pytest.raises(PermissionDenied, match="only root@pam"):
        plan.require_copy(copied, place, TOKEN)
    if message is None:
        plan.require_copy(copied, place, ROOT)
        return
    with pytest.raises(NotSupported, match=message):
        plan.require_copy(copied, place, ROOT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_volume": "local:iso/a.iso"}, "is the volume itself"),
        ({"volume": "other:iso/a.iso"}, "is not of storage other and content iso"),
        ({"volume": "local:vm-1-disk-0"}, "is not of storage local and content images"),
        ({"source_node": "p v e"}, "is not a node name"),
    ],
)
def test_copies_that_cannot_be(options: dict[str, Any], message: str) -> None:
    source = {"source_volume": "local:iso/a.iso", "node": "pve1"}
    with pytest.raises(ValidationFailed, match=message):
        read_desired_volume({**source, **options})
