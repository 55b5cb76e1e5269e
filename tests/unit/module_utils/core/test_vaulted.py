# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that we encrypt are those of ansible-vault, and the other way round."""

from __future__ import annotations

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.vaulted import (
    VaultError,
    decrypt,
    encrypt,
)

PASSWORD = "öpen sesame"
SIZES = (0, 1, 15, 16, 17, 4000)
VAULT = VaultLib([("default", VaultSecret(PASSWORD.encode()))])


@pytest.mark.parametrize("size", SIZES)
def test_both_ways(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    encrypted = encrypt(data, PASSWORD)
    assert VAULT.decrypt(encrypted.encode()) == data
    assert decrypt(VAULT.encrypt(data), PASSWORD) == data
    assert encrypt(data, PASSWORD) != encrypted


def test_lines_are_those_of_ansible_vault() -> None:
    ours, theirs = encrypt(b"x" * 300, PASSWORD), VAULT.encrypt(b"x" * 300).decode()
    assert [len(line) for line in ours.split("\n")] == [len(line) for line in theirs.split("\n")]


@pytest.mark.parametrize("position", [30, -10])
def test_changed_text_is_noticed(position: int) -> None:
    text = bytearray(encrypt(b"secret", PASSWORD).encode())
    text[position] = ord("0") if text[position] != ord("0") else ord("1")
    with pytest.raises(VaultError):
        decrypt(bytes(text), PASSWORD)


def test_other_password_is_noticed() -> None:
    with pytest.raises(VaultError, match="password is wrong"):
        decrypt(VAULT.encrypt(b"secret"), "other")
