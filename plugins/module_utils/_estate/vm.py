# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM as an item of module vms, proven by that module's own plan (pure).

The settings of a VM are expressed in groups. The plan of all of them must not change the VM; if it
does, each group is tried separately, and settings that cannot be kept are listed in C(lost).
"""

from __future__ import annotations

from .._cluster.quota import Figures
from .._cluster.tenant import parse_tags, tenants_of
from .._core.quantities import MIB, read_size, whole_number
from .._guest.model import Actual
from .._vm.config.actual import DRIVE, is_disk
from .cloud_init import cloud_init_pieces, secrets_of
from .devices import device_pieces
from .guests.common import adopted, identity, notes, source, state, without_owners
from .hardware import hardware_pieces, parsed, tags_piece
from .model import Choices, Config, ExportedVm
from .proof import VM_PLANNING, ClusterContext, Proof


def describe(actual: Actual, around: ClusterContext, choices: Choices) -> ExportedVm:
    """Return the VM as an item of module vms that does not change it."""
    config = actual.target
    tags = parse_tags(config.get("tags"))
    owners = tenants_of(tags, choices.prefix)
    proof = Proof(VM_PLANNING, actual, around, choices.prefix)
    pieces = [
        *identity(actual, choices, owners),
        source(actual, around.cluster),
        state(actual, choices),
        *cloud_init_pieces(config),
        # The devices come first: other settings can depend on them.
        *device_pieces(config),
        *hardware_pieces(config),
        *tags_piece(without_owners(tags, owners)),
        *notes(actual),
    ]
    kept = proof.keep(pieces)
    exported = ExportedVm(
        vmid=actual.vmid,
        name=config.get("name", ""),
        tenant=str(kept.options.get("tenant", "")),
        actual=actual,
        options=kept.options,
        lost=tuple(kept.lost),
        secrets=secrets_of(config),
        steps=proof.steps_of_any_run,
        figures=_figures(config),
    )
    is_free = not owners and not actual.template
    if choices.adopt and is_free:
        return adopted(exported, proof, choices.adopt)
    return exported


def _figures(config: Config) -> Figures:
    """Return the figures of a VM for a quota, from its configuration."""
    disk = 0
    for slot in filter(DRIVE.match, config):
        drive = parsed(slot, config[slot])
        if is_disk(drive):
            disk += read_size(drive.get("size")) or 0
    if config.get("template") == "1":
        return Figures(disk=disk)
    memory = parsed("memory", config.get("memory", "512"))
    mebibytes = whole_number(memory.get("current", "")) or 0
    cores = whole_number(config.get("cores", "1")) or 1
    sockets = whole_number(config.get("sockets", "1")) or 1
    return Figures(vms=1, cores=cores * sockets, memory=mebibytes * MIB, disk=disk)
