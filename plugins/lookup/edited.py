# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.edited`: why an export must not replace a file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: edited
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Why an export must not replace a file
description:
  - C(pve.fleet.export) writes the checksum of an estate file into its head. Returns a text for each
    file that is not as it was written, because of an edit or because an older version without
    checksums wrote it, and for each file that cannot be read.
  - A file that does not exist, and a file whose ends of lines were converted, can be replaced.
  - Nothing is asked of Proxmox VE.
options:
  _terms:
    description: Paths of files on the controller.
    required: true
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Check that the estate is as export wrote it
  ansible.builtin.assert:
    that: query('pve.fleet.edited', '/srv/fleet/estate.yml') | length == 0
"""

RETURN = r"""
_raw:
  description: Why files cannot be replaced, with their paths.
  type: list
  elements: str
"""

import os
import stat
from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from ..module_utils._foundation.core.texts.checksum import find_edit


class LookupModule(LookupBase):
    """Files that an export must not replace."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[str]:
        """Return a text for each file that must not be replaced."""
        self.set_options(var_options=variables, direct=options)
        causes = ((str(path), _cause(str(path))) for path in terms)
        return [f"{path} exists, and {cause}" for path, cause in causes if cause]


def _cause(path: str) -> str:
    """Return why a file must not be replaced, an empty text if it can be or does not exist."""
    if not os.path.lexists(path):
        return ""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is not a regular file"
        with open(path, "rb") as stream:
            return find_edit(stream.read())
    except FileNotFoundError:
        return f"it is a link to {os.readlink(path)}, which does not exist"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
