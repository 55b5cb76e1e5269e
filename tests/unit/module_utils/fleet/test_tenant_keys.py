# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role tenant accepts the settings that the module vms accepts, and every option of access."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ansible_collections.pve.fleet.plugins.module_utils._fleet.tenants import _spec

ROLE = Path(__file__).resolve().parents[4] / "roles" / "tenant"


def test_role_knows_the_settings_of_a_tenant() -> None:
    known = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    assert set(known["_tenant_keys"]) == set(_spec())
    tasks = (ROLE / "tasks" / "main.yml").read_text(encoding="utf-8")
    assert set(known["_tenant_access_keys"]) == set(re.findall(r"_tenant_access\.(\w+)", tasks))
