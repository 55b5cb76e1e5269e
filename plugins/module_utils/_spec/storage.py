# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module storage_download, without the connection."""

from __future__ import annotations

from .vm import Spec

# PVE's own enumerations (POST /nodes/{node}/storage/{storage}/download-url).
CONTENTS = ["import", "iso", "vztmpl"]
ALGORITHMS = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]
COMPRESSIONS = ["bz2", "gz", "lzo", "zst"]


def storage_download_spec() -> Spec:
    """Return the options of module storage_download."""
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "storage": {"type": "str", "required": True},
        "node": {"type": "str"},
        "source_url": {"type": "str"},
        "filename": {"type": "str"},
        "content": {"type": "str", "choices": CONTENTS},
        "checksum": {"type": "str"},
        "checksum_algorithm": {"type": "str", "choices": ALGORITHMS},
        "compression": {"type": "str", "choices": COMPRESSIONS},
        "verify_certificates": {"type": "bool", "default": True},
        "task_timeout": {"type": "int", "default": 1800},
    }
