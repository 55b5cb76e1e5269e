# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes this collection importable, wherever it is installed.

ansible-rulebook runs plugins as single files. It does not set up the import of collections as
Ansible does.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

NAME = "ansible_collections.pve.fleet"


def _is_importable() -> bool:
    try:
        return find_spec(NAME) is not None
    except ModuleNotFoundError:
        return False


def make_importable(file: str) -> None:
    """Add the directory that this installation is in to the places of collections."""
    if _is_importable():
        return
    namespaces = Path(file).absolute().parents[5]
    sys.path.append(str(namespaces.parent))
    known = sys.modules.get(namespaces.name)
    if known is not None and str(namespaces) not in known.__path__:
        known.__path__.append(str(namespaces))


make_importable(__file__)
