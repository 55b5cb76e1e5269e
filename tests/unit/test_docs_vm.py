"""Every example of docs/vm.md and docs/placement.md is one that the module takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._vm.desired import read_desired

PAGES = [Path(__file__).resolve().parents[2] / "docs" / name for name in ("vm.md", "placement.md")]


def examples() -> Iterator[dict[str, Any]]:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        for task in yaml.safe_load(block):
            if "pve.fleet.vm" in task:
                yield task["pve.fleet.vm"]


@pytest.mark.parametrize("options", list(examples()), ids=lambda options: "+".join(options)[:60])
def test_the_module_takes_it(options: dict[str, Any]) -> None:
    checked = ArgumentSpecValidator(vm_spec()).validate(options)
    assert not checked.error_messages
    assert read_desired(checked.validated_parameters).name == options["name"]


def test_there_are_many() -> None:
    assert len(list(examples())) > 25
