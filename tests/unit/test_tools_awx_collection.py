# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The helper that fetches awx.awx for tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.tools import awx_collection

MODULE = "ansible_collections/awx/awx/plugins/modules/team.py"


def wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    return path


def test_only_the_collection_is_unpacked(tmp_path: Path) -> None:
    other = "ansible_collections/awx/other/plugins/modules/team.py"
    awx_collection.extract(wheel(tmp_path / "a.whl", MODULE, other), tmp_path / "new")
    files = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert [path.relative_to(tmp_path / "new").as_posix() for path in files] == [MODULE]


def test_a_wheel_without_the_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(awx_collection.Unavailable, match="does not contain"):
        awx_collection.extract(wheel(tmp_path / "a.whl", "x/y.py"), tmp_path / "new")


def test_what_was_fetched_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        awx_collection, "_download", lambda _unused: wheel(tmp_path / "a.whl", MODULE)
    )
    home = tmp_path / "cache" / "awx"
    assert (awx_collection.fetch(home) / MODULE).is_file()
    monkeypatch.setattr(awx_collection, "_download", None)
    assert awx_collection.fetch(home) == home
    assert [path.name for path in home.parent.iterdir()] == ["awx"]


def test_an_index_that_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(awx_collection.Unavailable, match="cannot be downloaded"):
        awx_collection.fetch(tmp_path / "awx")
