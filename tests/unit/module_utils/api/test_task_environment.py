# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits and parallelism come from the task, else from the environment, else from their
defaults.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import ENVIRONMENT
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import VM_SPECS
from ansible_collections.pve.fleet.plugins.plugin_utils import _arguments

PACKAGE = "ansible_collections.pve.fleet.plugins"
NEEDED: dict[str, dict[str, Any]] = {
    "vm": {"name": "a"},
    "snapshot": {"name": "a"},
    "storage_download": {"storage": "a", "filename": "a.iso"},
    "vms": {"vms": []},
}
NEEDED["clone"] = {"name": "a", "source": "b"}


NAMES = {
    "answer_timeout": "PROXMOX_ANSWER_TIMEOUT",
    "task_timeout": "PROXMOX_TASK_TIMEOUT",
    "wait_timeout": "PROXMOX_WAIT_TIMEOUT",
    "shutdown_timeout": "PROXMOX_SHUTDOWN_TIMEOUT",
    "reboot_batch": "PROXMOX_REBOOT_BATCH",
    "parallel": "PROXMOX_PARALLEL",
    "parallel_per_node": "PROXMOX_PARALLEL_PER_NODE",
    "parallel_per_storage": "PROXMOX_PARALLEL_PER_STORAGE",
    "parallel_per_template": "PROXMOX_PARALLEL_PER_TEMPLATE",
}
PAIRS = [(module, option) for module in NEEDED for option in NAMES]


def entry_of(module: str) -> ModuleEntry:
    found: ModuleEntry = importlib.import_module(f"{PACKAGE}.modules.{module}").ENTRY
    return found


@pytest.mark.parametrize(
    ("module", "option"), [pair for pair in PAIRS if pair[1] in entry_of(pair[0]).spec]
)
def test_precedence(module: str, option: str, monkeypatch: pytest.MonkeyPatch, repo: Path) -> None:
    entry = entry_of(module)

    def value(**given: int) -> object:
        checked = _arguments.check(entry, module, {**NEEDED[module], **given})
        assert not checked.error
        return checked.params[option]

    default = entry.spec[option]["default"]
    assert value() == default
    monkeypatch.setenv(NAMES[option], "")
    assert value() == default
    monkeypatch.setenv(NAMES[option], "77")
    assert value() == 77
    assert value(**{option: 5}) == 5
    monkeypatch.setenv(NAMES[option], "many")
    assert option in _arguments.check(entry, module, NEEDED[module]).error
    texts = [file.read_text(encoding="utf-8") for file in (repo / "plugins").glob("*/*.py")]
    assert any(f"E({NAMES[option]})" in text for text in texts)


def test_the_environment_does_not_outdo_what_the_task_gives_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROXMOX_TASK_TIMEOUT", "77")
    given = {"vms": [{"name": "a"}], "task_timeout": 5}
    params = _arguments.check(entry_of("vms"), "vms", given).params
    assert (params["task_timeout"], params["vms"][0].get("task_timeout")) == (5, None)
    assert "fallback" not in VM_SPECS.item["task_timeout"]


def test_every_time_limit_and_every_number_at_once_has_a_variable(repo: Path) -> None:
    for file in (repo / "plugins" / "modules").glob("*.py"):
        entry = entry_of(file.stem)
        for option, rule in entry.spec.items():
            of_task = option.endswith(("_timeout", "_batch")) or option.startswith("parallel")
            if of_task and option not in ENVIRONMENT:
                assert rule["fallback"][1] == [NAMES[option]], f"{file.stem}: {option}"


@pytest.mark.parametrize("module", ["vms", "snapshot", "storage_download"])
def test_the_variables_are_documented(module: str) -> None:
    source = importlib.import_module(f"{PACKAGE}.modules.{module}")
    documented = yaml.safe_load(source.DOCUMENTATION)["options"]
    assert NAMES.keys() & documented.keys()
    for option in NAMES.keys() & documented.keys():
        assert f"Environment variable E({NAMES[option]})." in documented[option]["description"]
