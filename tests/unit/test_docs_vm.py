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


# The rows of the list of features (issue 4) and where docs/vm.md shows each.
SHOWN: dict[int, tuple[str, str]] = {
    10: ("Create", "source: debian-13"),
    11: ("Import a disk image", "local:import/"),
    12: ("Update", "cores: 4"),
    13: ("Remove", "state: absent"),
    14: ("Power", "state: paused"),
    15: ("Template", "state: template"),
    16: ("CPU and memory", "cpulimit"),
    17: ("CPU and memory", "memory_floor"),
    18: ("Disks", "state: detached"),
    19: ("Storage classes", "storage_class: fast"),
    20: ("Network cards and networks", "trunks"),
    21: ("Network cards and networks", "network: lan"),
    22: ("Network cards and networks", "The bridge must exist"),
    23: ("Cloud-init", "user_data"),
    24: ("Firmware, machine and guest system", "pre-enrolled-keys"),
    25: ("Firmware, machine and guest system", "ostype: windows"),
    26: ("Boot order and other options", "boot: [disk, network]"),
    27: ("Boot order and other options", "mapping: gpu1"),
    28: ("Boot order and other options", "watchdog"),
    29: ("Classes", "class: worker"),
    30: ("What it tells, and waiting", "console_url"),
    31: ("What it tells, and waiting", "wait_for: address"),
    32: ("What waits for a stop", "reboot: if_needed"),
}


@pytest.mark.parametrize("row", range(10, 33))
def test_every_row_has_an_example(row: int) -> None:
    heading, text = SHOWN[row]
    sections = PAGES[0].read_text(encoding="utf-8").split("\n## ")
    (section,) = [one for one in sections if one.startswith(f"{heading}\n")]
    assert "```yaml" in section
    assert text in section
