# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The signature of a plan: Ed25519, by the library cryptography, which ansible-core requires.

The library is loaded only for a key: it takes a module a tenth of a second.
"""

from __future__ import annotations

import base64
import binascii
from importlib.util import find_spec

from ..core.errors import ConfigurationError, FleetError
from ..core.files import read_regular
from .document import refused


def sign(digest: str, key_file: str) -> str:
    """Return the signature of a digest by the private key in a file (PEM without a password).

    Raises ConfigurationError.
    """
    data = _key_in(key_file)
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unusable(key_file, "it is not a private key in PEM without a password") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _unusable(key_file, "it is not an Ed25519 key")
    return base64.b64encode(key.sign(digest.encode())).decode()


def require_signed(digest: str, signature: str, key_file: str, place: str) -> None:
    """Raise ValidationFailed unless the key that belongs to this public key (PEM) has signed the
    digest of the plan at `place`, ConfigurationError for an unusable key.
    """
    data = _key_in(key_file)
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unusable(key_file, "it is not a public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _unusable(key_file, "it is not an Ed25519 key")
    try:
        key.verify(base64.b64decode(signature, validate=True), digest.encode())
    except (InvalidSignature, binascii.Error) as error:
        answer = f"its signature is not by the key that belongs to {key_file}"
        if not signature:
            answer = "it is not signed"
        raise refused(place, answer, "Sign it with plan_signing_key when it is made") from error


def _key_in(path: str) -> bytes:
    if find_spec("cryptography") is None:
        raise _unusable(path, "this Python has no library cryptography")
    try:
        content = read_regular(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if content is None:
        raise _unusable(path, "there is no such file")
    return content.data


def _unusable(path: str, why: str) -> FleetError:
    return ConfigurationError(
        f"The key {path} could not be used: {why}",
        "Make one: openssl genpkey -algorithm ed25519, and openssl pkey -pubout",
        "plan key",
    )
