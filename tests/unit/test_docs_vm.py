"""Every example of docs/vm.md and docs/placement.md is one that the module takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.connection import (
    connection_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.desired.parse import (
    read_options,
)

PAGES = [Path(__file__).resolve().parents[2] / "docs" / name for name in ("vm.md", "placement.md")]


def examples() -> Iterator[dict[str, Any]]:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        for task in yaml.safe_load(block):
            if "pve.fleet.vm" in task:
                yield task["pve.fleet.vm"]


@pytest.mark.parametrize("options", list(examples()), ids=lambda options: "+".join(options)[:60])
def test_example_is_accepted(options: dict[str, Any]) -> None:
    checked = ArgumentSpecValidator(vm_spec()).validate(options)
    assert not checked.error_messages
    assert read_options(checked.validated_parameters).desired.guest.name == options["name"]


def test_page_has_many_examples() -> None:
    assert len(list(examples())) > 25


def test_every_option_is_in_one_group() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    table = text.partition("\n## Options by purpose\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|`]+ \| (`.*) \|$", table, re.M)
    named = [option for row in rows for option in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted([*vm_spec(), *connection_spec()])


# The features of the module, and the section and text of docs/vm.md that show each.
SHOWN = {
    "a clone of a template": ("Create", "source: debian-13"),
    "a disk image": ("Import a disk image", "local:import/"),
    "an update": ("Update", "cores: 4"),
    "a removal": ("Remove", "state: absent"),
    "power states": ("Power", "state: paused"),
    "a conversion to a template": ("Template", "state: template"),
    "CPU limits": ("CPU and memory", "cpulimit"),
    "a memory floor": ("CPU and memory", "memory_floor"),
    "detached disks": ("Disks", "state: detached"),
    "storage classes": ("Storage classes", "storage_class: fast"),
    "network cards": ("Network cards and networks", "trunks"),
    "named networks": ("Network cards and networks", "network: lan"),
    "a check of bridges": ("Network cards and networks", "The bridge must exist"),
    "cloud-init": ("Cloud-init", "user_data"),
    "UEFI": ("Firmware, machine and guest system", "pre-enrolled-keys"),
    "the guest system": ("Firmware, machine and guest system", "ostype: windows"),
    "the boot order": ("Boot order and other options", "boot: [disk, network]"),
    "devices of the host": ("Boot order and other options", "mapping: gpu1"),
    "options of PVE": ("Boot order and other options", "watchdog"),
    "classes": ("Classes", "class: worker"),
    "the console": ("Results and waiting", "console_url"),
    "waiting": ("Results and waiting", "wait_for: address"),
    "reboots": ("Changes that need a reboot", "reboot: if_needed"),
}


@pytest.mark.parametrize("feature", SHOWN)
def test_every_feature_has_an_example(feature: str) -> None:
    heading, text = SHOWN[feature]
    sections = PAGES[0].read_text(encoding="utf-8").split("\n## ")
    (section,) = [one for one in sections if one.startswith(f"{heading}\n")]
    assert "```yaml" in section
    assert text in section
