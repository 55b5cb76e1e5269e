# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts in the encrypted format of ansible-vault.

Code of modules cannot import `ansible.parsing.vault`, so this file implements the format: AES256 in
counter mode, with an HMAC, keys from PBKDF2 (ansible-core: lib/ansible/parsing/vault/__init__.py,
VaultAES256). The primitives come from the library `cryptography`, which ansible-core requires.
"""

from __future__ import annotations

import os
from binascii import Error as NotHex
from binascii import hexlify, unhexlify
from typing import NamedTuple

HEADER = b"$ANSIBLE_VAULT;"
_FIRST_LINE = b"$ANSIBLE_VAULT;1.1;AES256"
_CIPHER = 2  # the field of the first line that names the cipher
_LINE = 80
_SALT = 32
_KEY = 32
_BLOCK = 16
_ROUNDS = 10000


class VaultError(ValueError):
    """The text cannot be decrypted; the message has the reason."""


class _Keys(NamedTuple):
    cipher: bytes
    hmac: bytes
    counter: bytes


def encrypt(data: bytes, password: str) -> str:
    """Return data as the content of a file that ansible-vault decrypts.

    Raises ImportError without the library cryptography.
    """
    from cryptography.hazmat.primitives.padding import PKCS7

    salt = os.urandom(_SALT)
    keys = _derive(password, salt)
    padder = PKCS7(8 * _BLOCK).padder()
    padded = padder.update(data) + padder.finalize()
    encrypted = _transform(keys, padded)
    parts = (salt, _hmac(keys, encrypted), encrypted)
    body = hexlify(b"\n".join(hexlify(part) for part in parts))
    lines = [body[start : start + _LINE] for start in range(0, len(body), _LINE)]
    return b"\n".join([_FIRST_LINE, *lines, b""]).decode("ascii")


def decrypt(data: bytes, password: str) -> bytes:
    """Return the plain data of a file that ansible-vault wrote.

    Raises VaultError if the password is wrong or the file is damaged, ImportError without the
    library cryptography.
    """
    from cryptography.hazmat.primitives.constant_time import bytes_eq
    from cryptography.hazmat.primitives.padding import PKCS7

    salt, hmac, encrypted = _parts(data)
    keys = _derive(password, salt)
    if not bytes_eq(hmac, _hmac(keys, encrypted)):
        raise VaultError("the vault password is wrong, or the file is damaged")
    unpadder = PKCS7(8 * _BLOCK).unpadder()
    return unpadder.update(_transform(keys, encrypted)) + unpadder.finalize()


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return salt, HMAC and encrypted data. Raises VaultError."""
    first, *lines = data.split(b"\n")
    fields = first.strip().split(b";")
    if len(fields) <= _CIPHER or fields[_CIPHER] != b"AES256":
        raise VaultError("the file is not encrypted with AES256")
    try:
        salt, hmac, encrypted = unhexlify(b"".join(map(bytes.strip, lines))).split(b"\n", 2)
        return unhexlify(salt), unhexlify(hmac), unhexlify(encrypted)
    except (NotHex, ValueError) as error:
        raise VaultError("the encrypted file is damaged") from error


def _derive(password: str, salt: bytes) -> _Keys:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    derivation = PBKDF2HMAC(
        algorithm=SHA256(), length=2 * _KEY + _BLOCK, salt=salt, iterations=_ROUNDS
    )
    derived = derivation.derive(password.encode("utf-8"))
    return _Keys(derived[:_KEY], derived[_KEY : 2 * _KEY], derived[2 * _KEY :])


def _transform(keys: _Keys, data: bytes) -> bytes:
    """Encrypt or decrypt: in counter mode, both are the same."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import CTR

    encryptor = Cipher(AES(keys.cipher), CTR(keys.counter)).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def _hmac(keys: _Keys, encrypted: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.hmac import HMAC

    code = HMAC(keys.hmac, SHA256())
    code.update(encrypted)
    return code.finalize()
