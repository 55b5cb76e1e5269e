# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate authorities and certificates of servers, also such as must not be trusted."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class Pair:
    """The files of a server's certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A CA. `file` has its certificate, PEM files are written to `directory`."""

    def __init__(self, directory: Path, name: str = "test CA") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _named(name)
        certificate = _certificate(
            _builder(self._subject, self._subject, self._key.public_key()), self._key, ca=True
        )
        self.file = directory / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, address: str = ADDRESS, days_ago: float = 0.0) -> Pair:
        """Make a certificate for an address; `name` is the name of its files.

        It is valid for a day, which began an hour before now, or `days_ago` before that.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(address), self._subject, key.public_key(), days_ago)
        certificate = _certificate(builder, self._key, address)
        return _written(self._directory / name, certificate, key)


def self_signed(directory: Path, address: str = ADDRESS) -> Pair:
    """Make a certificate that no CA signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named(address)
    certificate = _certificate(_builder(name, name, key.public_key()), key, address)
    return _written(directory / "self-signed", certificate, key)


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _written(base: Path, certificate: Any, key: Any) -> Pair:
    pair = Pair(base.with_suffix(".pem"), base.with_suffix(".key"))
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: Any, days_ago: float = 0.0
) -> x509.CertificateBuilder:
    """Return a certificate without extensions and signature."""
    began = datetime.datetime.now(datetime.timezone.utc) - DAY * days_ago
    began -= datetime.timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + DAY)
    )


def _certificate(
    builder: x509.CertificateBuilder, signing_key: Any, address: str = "", *, ca: bool = False
) -> Any:
    """Return a signed certificate for an address, or for a CA."""
    constraints = x509.BasicConstraints(ca=ca, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    if address:
        name = x509.IPAddress(ipaddress.ip_address(address))
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
    return builder.sign(signing_key, hashes.SHA256())


def some_certificate() -> str:
    """Return a certificate that no CA signed, in PEM format."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named(ADDRESS)
    certificate = _certificate(_builder(name, name, key.public_key()), key, ADDRESS)
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
