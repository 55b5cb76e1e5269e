# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role tenant passes on every setting of `access` that an estate may have, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.tenants import _OF_ACCESS

ROLE = Path(__file__).resolve().parents[4] / "roles" / "tenant"


def test_role_knows_the_settings_of_access() -> None:
    tasks = "".join(path.read_text(encoding="utf-8") for path in (ROLE / "tasks").glob("*.yml"))
    assert set(_OF_ACCESS) == set(re.findall(r"_tenant_access\.(\w+)", tasks))
