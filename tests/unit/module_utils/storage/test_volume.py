# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of volumes, and the body of an upload."""

from __future__ import annotations

from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._api.http.multipart import MultipartBody
from ansible_collections.pve.fleet.plugins.module_utils._api.request import Upload
from ansible_collections.pve.fleet.plugins.module_utils._core.errors import (
    ConfigurationError,
    NotFound,
    NotSupported,
    QuotaExceeded,
)
from ansible_collections.pve.fleet.plugins.module_utils._storage.desired import File
from ansible_collections.pve.fleet.plugins.module_utils._storage.volume import plan
from ansible_collections.pve.fleet.plugins.module_utils._storage.volume.desired import Volume

FILE = File("local", "iso", "a.iso", node="pve1")


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
        plan.require_space(Volume(FILE, size=2 << 30), 1 << 30)
    plan.require_space(Volume(FILE, size=2 << 30), None)
    with pytest.raises(NotSupported, match=r"came with 9\.1"):
        plan.require_images(Volume(FILE, image="nginx:1"), (9, 0))


def test_the_body_of_an_upload(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 600_000)
    with MultipartBody({"content": "iso"}, Upload(str(file), "a.iso")) as body:
        data = b"".join(body)
        assert len(body) == len(data)
    head = f"Content-Type: {body.content_type}\r\n\r\n".encode()
    parts: Any = message_from_bytes(head + data).get_payload()
    first, second = parts
    assert first.get_payload() == "iso"
    assert second.get_filename() == "a.iso"
    assert len(second.get_payload()) == 600_000


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 1_000_000)
    with MultipartBody({}, Upload(str(file), "a.iso")) as body:
        file.write_bytes(b"")
        with pytest.raises(OSError, match="became shorter"):
            list(body)


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        MultipartBody({}, Upload(str(tmp_path / "none"), "a.iso"))
