# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the items of a fleet: copied from the options of a VM, because they are the
same.
"""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.vm_options import ModuleDocFragment as Vm


def _options(*texts: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in texts:
        found.update(yaml.safe_load(text)["options"])
    return found


def _of_guests() -> dict[str, Any]:
    """Return the options of a VM, without the options of its tenant."""
    found = _options(Vm.DOCUMENTATION, Vm.LIFE, Vm.GUEST)
    del found["allowed"]
    return found


def _referring(options: dict[str, Any], path: str, *, within_list: bool = False) -> dict[str, Any]:
    """Return options that refer to those given for all VMs.

    Only the items of nested lists keep their defaults.
    """
    found: dict[str, Any] = {}
    for name, option in options.items():
        given = {key: value for key, value in option.items() if key != "default" or within_list}
        given["description"] = f"As O({path}{name}), for this VM."
        if "suboptions" in option:
            listed = option["type"] == "list"
            below = f"{path}{name}[]." if listed else f"{path}{name}."
            given["suboptions"] = _referring(
                option["suboptions"], below, within_list=within_list or listed
            )
        found[name] = given
    return found


class ModuleDocFragment:
    """The fragment `pve.fleet.fleet_item`."""

    DOCUMENTATION: str = yaml.safe_dump(
        {
            "options": {
                "vms": {
                    "suboptions": {
                        "name": {
                            "description": "Name of the VM, a DNS name. A new VM needs it.",
                            "type": "str",
                        },
                        "vmid": {
                            "description": [
                                (
                                    "Number of the VM. A new one without it gets a free one of"
                                    " O(vmid_range)."
                                ),
                                "With O(vms[].name) too, a different name renames the VM.",
                            ],
                            "type": "int",
                        },
                        "site": {
                            "description": [
                                (
                                    "Site of the VM. It overrides that of its tenant in"
                                    " O(tenant_settings), which overrides that of the task."
                                ),
                                "The task must define it with O(sites) or O(sites_file).",
                                (
                                    "V(auto) chooses one of the C(sites) of its tenant by"
                                    " O(vms[].site_placement)."
                                ),
                            ],
                            "type": "str",
                        },
                        **_referring(_of_guests(), ""),
                        "backup": {
                            "description": "As O(backup), with the same suboptions, for this VM.",
                            "type": "dict",
                        },
                        "site_placement": {
                            "description": "As O(site_placement), with the same suboptions, for this VM.",
                            "type": "dict",
                        },
                    }
                }
            }
        },
        sort_keys=False,
    )
