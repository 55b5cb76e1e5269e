# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options to set and to delete so that a configuration becomes the desired one (pure).

Values are compared by meaning: tags as sets, MACs in upper case, sizes as bytes, property strings
by key, PVE's own default for a missing option. Options and sub-keys that the task does not mention
stay unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ....._foundation.core.errors import FleetError, ValidationFailed
from ....._foundation.schema.formats import Schema
from ....._foundation.schema.lxc import LXC
from ...config.change import ConfigChange
from ...config.update import ConfigUpdate, SubKeys
from ..model import DesiredContainer
from .actual import read_environment, render_environment
from .volumes import change_volumes

# Defaults of a new container that is not cloned. By default PVE would create a privileged one.
NEW_CONTAINER: Mapping[str, str] = {"unprivileged": "1"}
_NIC = re.compile(r"^net(?=\d+$)")
_BRIDGE = "vmbr0"


def all_changes(
    desired: DesiredContainer, target: Mapping[str, str], *, new: bool = False
) -> ConfigChange:
    """Return the change from `target` to the desired configuration; `target` is empty for a `new`
    container. The differences that PVE cannot change are in `drives.refused`.
    """
    update = _ContainerConfigUpdate(desired, target, new)
    update.set_scalars()
    update.set_privilege()
    update.set_volumes()
    update.unset_options()
    update.set_property_strings()
    update.set_environment()
    update.predict_template()
    update.set_tags()
    update.set_notes()
    update.drives.refused |= update.refused
    return update.change


@dataclass
class _ContainerConfigUpdate(ConfigUpdate):
    """The desired container beside its present configuration, and the change from both."""

    desired: DesiredContainer
    refused: dict[str, FleetError] = field(default_factory=dict)
    defaults: ClassVar[Mapping[str, str]] = NEW_CONTAINER
    name_key: ClassVar[str] = "hostname"
    schema: ClassVar[Schema] = LXC
    of_nic: ClassVar[re.Pattern[str]] = _NIC

    def set_privilege(self) -> None:
        """Set whether a new container is unprivileged: API and schema of PVE differ in the default.

        A difference in an existing container is refused.
        """
        if self.new:
            default = self.defaults["unprivileged"]
            scalars = self.desired.hardware.scalars
            self.sets["unprivileged"] = scalars.get("unprivileged", default)
            return
        if "unprivileged" not in self.sets:
            return
        wanted = self.sets.pop("unprivileged")
        kinds = {"0": "privileged", "1": "unprivileged"}
        now = kinds[self.target.get("unprivileged", "0")]
        self.refused["unprivileged"] = ValidationFailed(
            attempted=f"{self.desired.guest.label} could not be made {kinds[wanted]}",
            answer=f"it is {now}, which PVE fixes at creation",
            next_step="Back it up and restore it with the other setting, or leave it out",
            reason="unprivileged",
        )

    def set_volumes(self) -> None:
        """Add the changes of the volumes."""
        self.drives = change_volumes(self.desired, self.target, new=self.new)
        self.sets.update(self.drives.sets)
        self.deletes |= self.drives.detached

    def desired_values(
        self, key: str, wanted: SubKeys, existing: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the sub-keys to set, with the defaults of a new NIC."""
        nic = _NIC.match(key)
        if nic is None or existing:
            return dict(wanted)
        number = key.removeprefix(nic.group())
        return {"name": f"eth{number}", "bridge": _BRIDGE, "type": "veth", **wanted}

    def set_environment(self) -> None:
        """Set the variables that differ; other variables stay."""
        found = read_environment(self.target.get("env", ""))
        merged = dict(found)
        for name, value in self.desired.hardware.environment.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        # PVE does not keep blanks at the end of a line of the configuration.
        text = render_environment(merged).rstrip()
        if text != render_environment(found):
            self.set_or_delete("env", text)
