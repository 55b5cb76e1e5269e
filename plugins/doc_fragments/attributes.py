# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the attributes of modules, written once."""

from __future__ import annotations


class ModuleDocFragment:
    """The fragments `pve.fleet.attributes` and `pve.fleet.attributes.<name>`."""

    # The attributes that every module has.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the
      target.
  diff_mode:
    description: Returns details on what has changed (or would change in C(check_mode)), when in
      diff mode.
  idempotent:
    description:
      - When run twice in a row outside check mode, with the same arguments, the second invocation
        indicates no change.
      - This assumes that the system controlled or queried by the module has not changed in a
        relevant way.
  platform:
    description: Target OS or family that can be operated against.
    support: full
    platforms: posix
"""

    # A module that changes something and predicts it.
    FULL = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""

    # A module that only reads.
    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details:
      - This module does not modify state.
  diff_mode:
    support: N/A
    details:
      - This module does not modify state.
  idempotent:
    support: full
    details:
      - This module does not modify state.
"""
