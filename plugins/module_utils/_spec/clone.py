# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argument specification of module clone, without the connection: that of vm, and how a clone is made."""

from __future__ import annotations

from .vm import FORMATS, Spec, vm_spec

# What makes no sense for a clone: it is never taken over from others.
_NOT_OF_CLONES = frozenset(("adopt",))


def clone_spec() -> Spec:
    """Return the options of module clone."""
    shared = {name: option for name, option in vm_spec().items() if name not in _NOT_OF_CLONES}
    return {
        **shared,
        "source": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "started", "stopped"], "default": "present"},
        "storage": {"type": "str"},
        "format": {"type": "str", "choices": FORMATS},
        "snapshot": {"type": "str"},
    }
