# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which estate files an export replaces, and which it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.lookup import edited
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.texts.checksum import (
    EDITED,
    NO_CHECKSUM,
    find_edit,
    with_checksum,
)

HEAD = "---\n# An estate\n"
TEXT = with_checksum(f"{HEAD}\nprovision_vms:\n  - name: web1 # \u2603\n", HEAD).encode()


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (TEXT, ""),
        (TEXT.replace(b"\n", b"\r\n"), ""),
        (TEXT.replace(b"web1", b"web2"), EDITED),
        (TEXT + b"\n", EDITED),
        (TEXT.replace(b"web1", b"web\xff"), EDITED),
        (TEXT.replace(b"# An estate", b"# Ours"), EDITED),
        (TEXT.replace(b"sha256:", b"sha256:0"), NO_CHECKSUM),
        (TEXT[: len(TEXT) // 2], NO_CHECKSUM),
        (TEXT[:-5], EDITED),
        (HEAD.encode() + b"provision_vms: []\n", NO_CHECKSUM),
        (b"", NO_CHECKSUM),
        (TEXT + TEXT, EDITED),
    ],
)
def test_an_edit_is_found(content: bytes, cause: str) -> None:
    assert find_edit(content) == cause


def query(path: Path) -> list[str]:
    plugin = edited.LookupModule()
    plugin.set_options = lambda **_options: None
    return plugin.run([str(path)])


def test_what_is_not_there_can_be_written(tmp_path: Path) -> None:
    assert query(tmp_path / "estate.yml") == []


def test_what_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "estate.yml"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        assert query(path) == [f"{path} exists, and it is not a regular file"]


def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "estate.yml"
    path.write_bytes(TEXT)
    assert query(path) == []
    monkeypatch.setattr(edited, "open", refuse, raising=False)
    assert query(path) == [f"{path} exists, and it cannot be read: Permission denied"]
