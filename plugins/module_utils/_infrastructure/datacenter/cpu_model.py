# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of custom CPU models (pve-manager: API2/Cluster/Qemu/CustomCPUModels.pm; qemu-server:
CPUConfig.pm). A VM refers to the model NAME as C(custom-NAME).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..._foundation.api.access.listed import Way
from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import as_set, flag_field, matching_text, send_set, text_field
from .property_strings import number

_ALL = Call(("cluster", "qemu", "custom-cpu-models"))
_ONE = Call((*_ALL.path, "{name}"))
_PREFIX = "custom-"
SINCE = (9, 2)
"""The version of Proxmox VE whose API has custom CPU models."""
_FLAG = re.compile(r"[+-][a-zA-Z0-9\-_.]+")
_VENDOR = re.compile(r"[a-zA-Z0-9]{1,12}")
_LONGEST = 40


def _name(value: str, what: str) -> str:
    name = validate.config_id(value.removeprefix(_PREFIX), what)
    if len(name) > _LONGEST:
        raise validate.refused(what, name, "is too long", f"Use {_LONGEST} characters")
    return name


def _flags(values: Any) -> frozenset[str]:
    for flag in values:
        if not _FLAG.fullmatch(str(flag)):
            raise validate.refused(
                "flags", flag, "is not a flag of a CPU", "Write it as +aes or -pcid"
            )
    return frozenset(map(str, values))


_vendor = matching_text(
    "hv_vendor_id", _VENDOR, "is not a vendor ID", "Use up to 12 letters and digits"
)


def _number(option: str, minimum: int, maximum: int, *words: str) -> Callable[[Any], str]:
    """Return a function that accepts a number, one of these words, or an empty text."""

    read = number(minimum, maximum, whole=True)

    def want(value: Any) -> str:
        text = str(value).strip()
        return text if text in words else read(text, option)

    return want


def _rows(answer: Any, _keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{**row, "cputype": str(row["cputype"]).removeprefix(_PREFIX)} for row in answer or []]


def _of_name(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    rows = {row["cputype"]: row for row in _rows(answer, keys)}
    return rows.get(keys["name"])


def _ways(keys: Mapping[str, str]) -> tuple[Way, ...]:
    """Return the ways in which PVE lists a model (pve-manager: API2/Cluster/Qemu/CustomCPUModels.pm,
    config).
    """
    path = f"/mapping/cpu/{keys['name']}"
    return tuple(((path, f"Mapping.{name}"),) for name in ("Audit", "Use", "Modify"))


def resolve(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises NotSupported for a version without custom CPU models."""
    attempted = f"CPU model '{desired.keys['name']}' was not changed"
    step = "Edit /etc/pve/virtual-guest/cpu-models.conf"
    validate.require_since(SINCE, client.version(), attempted, "CPU models in the API", step)
    return desired


def precheck(_client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Return a warning about a deletion: PVE does not look for VMs that use the model."""
    if not change.deletes:
        return ()
    return (f"A VM with cpu {_PREFIX}{desired.keys['name']} cannot start without the model",)


CPU_MODEL = Table(
    kind="cpu_model",
    title="CPU model",
    keys=(Key("name", "cputype", _name),),
    fields=(
        text_field("reported_model", required=True),
        Field("flags", "flags", want=_flags, read=as_set(";"), send=send_set(";"), show=sorted),
        flag_field("hidden"),
        text_field("hv_vendor_id", want=_vendor),
        text_field("phys_bits", want=_number("phys_bits", 8, 64, "host")),
        text_field("guest_phys_bits", want=_number("guest_phys_bits", 32, 64)),
        text_field("level", want=_number("level", 0, 2**32 - 1)),
    ),
    digest=("PUT",),
    read_call=_ALL,
    create_call=Call(_ALL.path, {"cputype": "{name}"}),
    update_call=_ONE,
    delete_call=_ONE,
    pick=_of_name,
    rows=_rows,
    resolve=resolve,
    precheck=precheck,
    listed=_ways,
)
