# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snippets: their options, and their directory here or on a node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets.files import (
    LocalDirectory,
    SnippetDirectory,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.snippets.ssh import (
    NodeDirectory,
    directory_of,
    read_login,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.volume_users import (
    names_volume,
    volume_pattern,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.desired import (
    read_desired_volume,
)

LOGIN = read_login({"user": "ops", "port": 2222, "become": True, "args": "-v"}, "192.0.2.1")


def here(words: list[str], data: bytes) -> tuple[int, bytes, bytes]:
    """Run the script of a command of ssh on this machine, without sudo."""
    script = words[-1].removeprefix("sudo -n ")
    ended = subprocess.run(["sh", "-c", script], input=data, capture_output=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def cut(words: list[str], data: bytes) -> tuple[int, bytes, bytes]:
    """Lose the second half of the input, and then the connection."""
    status, out, _err = here(words, data[: len(data) // 2])
    return (255 if data else status), out, b"Connection closed by remote host"


@pytest.fixture(params=["mounted", "ssh"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> SnippetDirectory:
    if request.param == "mounted":
        return LocalDirectory(str(tmp_path))
    return NodeDirectory(LOGIN, str(tmp_path), here)


def test_a_file_is_written_read_listed_and_removed(files: SnippetDirectory, tmp_path: Path) -> None:
    assert files.read("it's.yml") is None
    for data in (b"\x00one\n", b"two"):
        files.write("it's.yml", data)
        assert files.read("it's.yml") == data
    (tmp_path / ".hidden").touch()
    assert files.names() == {"it's.yml"}
    files.remove("it's.yml")
    files.remove("it's.yml")
    assert sorted(os.listdir(tmp_path)) == [".hidden"]


def test_only_scripts_are_executable(files: SnippetDirectory, tmp_path: Path) -> None:
    """PVE refuses a hook script that is not executable (pve-guest-common, GuestHelpers.pm)."""
    files.write("hook.sh", b"#!/bin/sh\n")
    files.write("user.yml", b"#cloud-config\n")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"hook.sh": 0o750, "user.yml": 0o640}


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="there is no directory"):
        LocalDirectory(missing).read("a")
    with pytest.raises(ConfigurationError, match="does not have that directory"):
        NodeDirectory(LOGIN, missing, here).read("a")


def test_a_lost_connection_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"old")
    with pytest.raises(ConfigurationError, match="Connection closed by remote host"):
        NodeDirectory(LOGIN, str(tmp_path), cut).write("a.yml", b"a longer text")
    assert [path.name for path in tmp_path.iterdir()] == ["a.yml"]
    assert (tmp_path / "a.yml").read_bytes() == b"old"


def test_a_connection_lost_at_the_end_is_looked_after(tmp_path: Path) -> None:
    def lost_at_the_end(words: list[str], data: bytes) -> tuple[int, bytes, bytes]:
        status, out, err = here(words, data)
        return (255 if data else status), out, err

    NodeDirectory(LOGIN, str(tmp_path), lost_at_the_end).write("a.yml", b"text")
    assert (tmp_path / "a.yml").read_bytes() == b"text"


def test_the_command_of_a_login() -> None:
    words = LOGIN.command("id")
    head = ["ssh", "-o", "BatchMode=yes", "-o", "User=ops", "-p", "2222", "-v", "192.0.2.1"]
    assert words == [*head, "sudo -n sh -c id"]
    for options in ({"address": "-oProxyCommand=x"}, {"user": "-x"}):
        with pytest.raises(ValidationFailed, match=r"ssh\.\w+ was refused"):
            read_login(options, "pve1")


@pytest.mark.parametrize(
    ("storage", "path"),
    [
        ({"storage": "local", "path": "/var/lib/vz"}, "/var/lib/vz/snippets"),
        ({"storage": "nas"}, "/mnt/pve/nas/snippets"),
        ({"storage": "nas", "content-dirs": "iso=i,snippets=s/own"}, "/mnt/pve/nas/s/own"),
    ],
)
def test_the_directory_on_a_node(storage: dict[str, Any], path: str) -> None:
    """Source: pve-storage, Storage/Plugin.pm (get_subdir)."""
    assert directory_of(storage) == path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filename": "a.yml", "text": "x"}, "does not take snippets"),
        ({"volume": "local:snippets/a/b.yml", "text": "x", "ssh": {}}, "without a path"),
        ({"filename": "a.iso", "text": "x", "content": "iso"}, "Leave out text"),
        ({"filename": "a.iso", "ssh": {}}, "Leave out ssh"),
        ({"source_url": "https://x/a.yml", "content": "snippets"}, "no node downloads snippets"),
    ],
)
def test_options_of_snippets_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationFailed, match=message):
        read_desired_volume({"storage": "local", **options})


def test_guests_that_name_a_snippet() -> None:
    pattern = volume_pattern("local:snippets/a.yml")
    value = "meta=local:snippets/b.yml,user=local:snippets/a.yml"
    assert names_volume(pattern, "cicustom", value)
    assert names_volume(pattern, "hookscript", "local:snippets/a.yml")
    assert not names_volume(pattern, "cicustom", "user=local:snippets/a.yml.old")
    assert not names_volume(pattern, "description", "local:snippets/a.yml")
