"""Certificates of nodes (pve-manager: API2/Certificates.pm, CertHelpers.pm)."""

from __future__ import annotations

from pathlib import Path

from tests.certificates import self_signed
from tests.simulator_tests.client import Client

CUSTOM = "/nodes/pve1/certificates/custom"
_BODY = "-----BEGIN {0}-----\nAAAA\n-----END {0}-----\n"


def test_texts_of_refused_certificates(pve: Client, tmp_path: Path) -> None:
    """CertHelpers.pm: set_cert_files; pve-common, Certificate.pm: check_pem, read_certificate."""
    pair = self_signed(tmp_path)
    own = pair.certificate.read_text(encoding="ascii")
    key = pair.key.read_text(encoding="ascii")
    refused = pve.call("POST", CUSTOM, {"certificates": "none", "key": key})
    assert refused.errors == {
        "certificates": "invalid format - not a valid PEM-formatted string.\n"
    }
    refused = pve.call("POST", CUSTOM, {"certificates": own})
    assert refused.errors == {
        "key": "Attempted to upload custom certificate without (existing) key."
    }
    refused = pve.call("POST", CUSTOM, {"certificates": _BODY.format("CERTIFICATE"), "key": key})
    assert refused.reason == (
        "Setting certificate files failed - unable to read certificate from"
        " '/etc/pve/nodes/pve1/pveproxy-ssl.pem'"
    )
    pve.post(CUSTOM, certificates=f"leading text\n{own}", key=key)
    refused = pve.call("POST", CUSTOM, {"certificates": own})
    assert refused.reason == "Custom certificate file exists but force flag is not set."
    pve.post(CUSTOM, certificates=own, force=1)
    pve.delete(CUSTOM)
