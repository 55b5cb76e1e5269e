# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fills in the injectors of a credential type as AWX does for a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.awx.rules import FACTS


def inject(kind: Mapping[str, Any], values: Mapping[str, Any], directory: Path) -> dict[str, str]:
    """Return the environment that a credential gives to a job, and write its files.

    An input without a value is undefined in templates, and a boolean without one is false. A file
    is written even if it is empty. Variables that AWX refuses are left out.
    """
    known: dict[str, Any] = {}
    for field in kind["inputs"]["fields"]:
        value = values.get(field["id"], False if field["type"] == "boolean" else "")
        if isinstance(value, bool) or value:
            known[field["id"]] = value
    tower = SimpleNamespace()
    known["tower"] = tower
    sandbox = ImmutableSandboxedEnvironment()
    for number, (name, template) in enumerate(kind["injectors"].get("file", {}).items()):
        path = directory / f"tmp{number}"
        path.write_text(sandbox.from_string(template).render(known), encoding="utf-8")
        path.chmod(0o600)
        _unused, dot, label = name.partition(".")
        if not dot:
            tower.filename = str(path)
            continue
        if not hasattr(tower, "filename"):
            tower.filename = SimpleNamespace()
        setattr(tower.filename, label, str(path))
    return {
        name: sandbox.from_string(template).render(known)
        for name, template in kind["injectors"].get("env", {}).items()
        if not name.startswith(FACTS["refused_prefix"]) and name not in FACTS["refused_variables"]
    }
