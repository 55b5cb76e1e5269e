# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with the login of a tenant: what is refused, repaired, encrypted and removed."""

from __future__ import annotations

import os
import resource
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret

from tests.cases import repeated
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import login_of

NEW: dict[str, Any] = {"name": "initech", "operations": ["operate"]}
ROTATED: dict[str, Any] = {"name": "initech", "state": "rotated"}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}
PASSWORD = "open sesame"
STATES = pytest.mark.parametrize("options", [NEW, ROTATED], ids=["present", "rotated"])


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tokens(lab: Lab) -> list[str]:
    rows = lab.client.get("access", "users", "tenant_initech@pve", "token")
    return [row["tokenid"] for row in rows]


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def make_link(path: Path) -> None:
    target = path.with_name("target.yml")
    target.write_text("kept", encoding="utf-8")
    path.symlink_to(target)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))  # as /dev/null
    except PermissionError:
        pytest.skip("only root may create a device")


ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (os.mkfifo, "it is a FIFO"),
    "socket": (make_socket, "it is a socket"),
    "directory": (Path.mkdir, "it is a directory"),
    "link": (make_link, "it is a symbolic link"),
    "device": (make_device, "it is a device"),
}


@pytest.mark.timeout(60)
@STATES
@pytest.mark.parametrize("kind", repeated(ODD, first=2))
def test_only_a_regular_file_is_read_and_written(
    lab: Lab, tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    make, words = ODD[kind]
    do(lab, "tenant", **NEW)
    path = tmp_path / "login.yml"
    make(path)
    before = path.lstat().st_mode
    result = refused(lab, "tenant", **options, credentials_file=str(path))
    assert words in result["msg"]
    assert path.lstat().st_mode == before
    gone = do(lab, "tenant", **GONE, credentials_file=str(path))
    assert path.lstat().st_mode == before
    assert any(words in line for line in gone["warnings"])


@contextmanager
def full_disk() -> Iterator[None]:
    """Let the kernel refuse each write to a file: here for the limit of its size (EFBIG), on a full
    disk or with a quota by the same call with ENOSPC or EDQUOT.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("password", [None, PASSWORD], ids=["plain", "vault"])
def test_full_disk_is_noticed_before_the_token_is_made(
    lab: Lab, tmp_path: Path, password: str | None
) -> None:
    file = tmp_path / "login.yml"
    place: dict[str, Any] = {"credentials_file": str(file), "vault_password": password}
    with full_disk():
        result = lab.run("tenant", **NEW, **place)
    assert "File too large" in result["msg"]
    assert result["changed"] is False
    assert lab.simulator.writes() == []
    assert list(tmp_path.iterdir()) == []
    do(lab, "tenant", **NEW, **place)
    login = login_of(file, password)
    lab.simulator.reset_log()
    with full_disk():
        result = lab.run("tenant", **ROTATED, **place)
    assert "File too large" in result["msg"]
    assert lab.simulator.writes() == []
    assert login_of(file, password) == login
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o700])
def test_permissions_are_repaired(lab: Lab, tmp_path: Path, mode: int) -> None:
    file = tmp_path / "login.yml"
    options = {**NEW, "credentials_file": str(file)}
    do(lab, "tenant", **options)
    login = login_of(file)
    file.chmod(mode)
    foreseen = do(lab, "tenant", check=True, **options)
    assert mode_of(file) == mode
    result = do(lab, "tenant", **options)
    assert mode_of(file) == 0o600
    assert login_of(file) == login
    assert result["changed"]
    assert foreseen["changed"]
    assert result["diff"] == foreseen["diff"]
    assert result["plan"] == foreseen["plan"] == result["done"]
    assert result["plan"] == [f"Set the mode of {file} from {mode:04o} to 0600"]
    assert bool(result.get("warnings")) == bool(mode & 0o077)
    assert not do(lab, "tenant", **options)["changed"]


def test_plain_file_is_encrypted_once_there_is_a_password(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "login.yml"
    options = {**NEW, "credentials_file": str(file)}
    do(lab, "tenant", **options)
    login = login_of(file)
    result = do(lab, "tenant", **options, vault_password=PASSWORD)
    assert result["plan"] == [f"Encrypt {file}"]
    assert login_of(file, PASSWORD) == login
    assert not do(lab, "tenant", **options, vault_password=PASSWORD)["changed"]


WRONG = [
    ("open simsim", "the vault password is wrong"),
    (None, "it is encrypted with ansible-vault, and no password is given"),
    ("", "it is empty"),
]


@pytest.mark.parametrize("options", [NEW, ROTATED, GONE], ids=["present", "rotated", "absent"])
@pytest.mark.parametrize(("password", "words"), WRONG, ids=["wrong", "none", "empty"])
def test_wrong_password_is_noticed_before_anything_is_changed(
    lab: Lab, tmp_path: Path, options: dict[str, Any], password: str | None, words: str
) -> None:
    file = tmp_path / "login.yml"
    do(lab, "tenant", **NEW, credentials_file=str(file), vault_password=PASSWORD)
    do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G")
    text = file.read_bytes()
    lab.simulator.reset_log()
    place: dict[str, Any] = {"credentials_file": str(file), "vault_password": password}
    result = refused(lab, "tenant", **options, **place)
    assert words in result["msg"]
    assert PASSWORD not in str(result)
    assert file.read_bytes() == text
    assert tokens(lab) == ["fleet"]


def test_vaulted_file_of_the_operator_is_read_and_of_another_tenant_refused(
    lab: Lab, tmp_path: Path
) -> None:
    """ansible-vault rekeyed it, with an identity; or it has another name."""
    file = tmp_path / "login.yml"
    place: dict[str, Any] = {"credentials_file": str(file), "vault_password": PASSWORD}
    do(lab, "tenant", **NEW, **place)
    vault = VaultLib([("prod", VaultSecret(PASSWORD.encode()))])
    plain = vault.decrypt(file.read_bytes())
    file.write_bytes(vault.encrypt(plain, vault_id="prod"))
    assert not do(lab, "tenant", **NEW, **place)["changed"]
    other = {**NEW, "name": "hooli"}
    assert "is not the login of tenant hooli" in refused(lab, "tenant", **other, **place)["msg"]
    gone = do(lab, "tenant", **{**GONE, "name": "hooli", "confirm": "hooli"}, **place)
    assert any("login.yml stays" in line for line in gone["warnings"])
    assert file.exists()


def test_damaged_vaulted_file_is_refused(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "login.yml"
    place: dict[str, Any] = {"credentials_file": str(file), "vault_password": PASSWORD}
    texts = {
        "$ANSIBLE_VAULT;1.1;AES256\nzz\n": "damaged",
        "$ANSIBLE_VAULT;1.1;AES256\n3661\n": "damaged",
        "$ANSIBLE_VAULT;1.0;AES\n3661\n": "not encrypted with AES256",
        "$ANSIBLE_VAULT;": "not encrypted with AES256",
    }
    for text, words in texts.items():
        file.write_text(text, encoding="utf-8")
        assert words in refused(lab, "tenant", **NEW, **place)["msg"]
        assert file.read_text(encoding="utf-8") == text


def test_two_tokens_and_no_file_have_a_way_out(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "login.yml"
    do(lab, "tenant", **NEW)
    do(lab, "tenant", **ROTATED, old_token="keep")
    place: dict[str, Any] = {"credentials_file": str(file)}
    assert "set state=rotated" in refused(lab, "tenant", **NEW, **place)["msg"].replace(
        "Set", "set"
    )
    result = refused(lab, "tenant", **ROTATED, **place)
    assert "tenant_current_token" in result["msg"]
    do(lab, "tenant", **ROTATED, **place, current_token="fleet-2")
    assert tokens(lab) == ["fleet"]
    assert login_of(file)["token_id"] == "tenant_initech@pve!fleet"
