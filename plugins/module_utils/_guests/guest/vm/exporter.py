# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs in an export: their settings as options, planned as module vm does it (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.core.quantities import MIB, read_size, whole_number
from ...._foundation.resource.plan import Step
from ...._foundation.spec.vm import vm_spec
from ...kinds.model import Actual
from ...kinds.vm.config.actual import DRIVE, is_disk
from ..export.settings import ClusterContext, Config, Exporter, SettingGroup, parsed
from ..plan.origin import require_origin
from .desired.parse import read_options
from .export.devices import cloud_init_pieces, device_pieces, secrets_of
from .export.hardware import hardware_pieces
from .plan.refusals.options import unknown_names
from .plan.update import plan_update


class VmExporter(Exporter):
    """How VMs become items of module vms."""

    spec = vm_spec()

    def settings(self, config: Config) -> Iterator[SettingGroup]:
        yield from cloud_init_pieces(config)
        # The devices come first: other settings can depend on them.
        yield from device_pieces(config)
        yield from hardware_pieces(config)

    def secrets(self, config: Config) -> tuple[str, ...]:
        return secrets_of(config)

    def figures(self, actual: Actual) -> QuotaFigures:
        config = actual.target
        disk = 0
        for slot in filter(DRIVE.match, config):
            drive = parsed(slot, config[slot])
            if is_disk(drive):
                disk += read_size(drive.get("size")) or 0
        if config.get("template") == "1":
            return QuotaFigures(disk=disk)
        memory = parsed("memory", config.get("memory", "512"))
        mebibytes = whole_number(memory.get("current", "")) or 0
        cores = whole_number(config.get("cores", "1")) or 1
        sockets = whole_number(config.get("sockets", "1")) or 1
        return QuotaFigures(vms=1, cores=cores * sockets, memory=mebibytes * MIB, disk=disk)

    def steps(
        self, given: Mapping[str, Any], actual: Actual, around: ClusterContext
    ) -> tuple[Step, ...] | str:
        desired = read_options(given).desired
        require_origin(desired.guest, actual, around.cluster)
        plan = plan_update(desired, actual, bases=around.bases)
        for name in unknown_names(desired):
            return f"{name.dotted} is not known to this version of pve.fleet"
        return plan.steps


VM_EXPORTER = VmExporter()
