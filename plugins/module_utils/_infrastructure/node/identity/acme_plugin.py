# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of ACME plugins, which prove the control of a domain (pve-manager:
PVE/API2/ACMEPlugin.pm; libproxmox-acme-perl: PVE/ACME/DNSChallenge.pm).
"""

from __future__ import annotations

import base64
import re
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.resource.table import Call, Key, Table
from ...._foundation.resource.values import flag_field, number_field, secret, set_field, text_field

_ALL = ("cluster", "acme", "plugins")
_DNS = ("dns",)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def as_plugin_data(given: Any, option: str) -> str:
    """Return the variables of a DNS plugin as PVE stores them: lines in Base64.

    Raises ValidationFailed, which does not contain the values.
    """
    lines: list[str] = []
    for name, value in sorted(given.items()):
        text = str(value)
        if not _NAME.fullmatch(str(name)) or "\n" in text:
            raise ValidationFailed(
                attempted=f"The option {option} was refused",
                answer=f"{name} is not a variable with a text of one line",
                next_step="Write variables as the plugin has them, such as CF_Token",
                reason=option,
                dispatched=False,
            )
        lines.append(f"{name}={text}\n")
    return base64.b64encode("".join(lines).encode()).decode()


ACME_PLUGIN = Table(
    kind="acme_plugin",
    title="ACME plugin",
    keys=(Key("name", "plugin", validate.config_id),),
    fields=(
        text_field("type", fixed=True, required=True),
        text_field("api", required=_DNS, variants=_DNS),
        number_field("validation_delay", 30, name="validation-delay", variants=_DNS),
        set_field("nodes"),
        flag_field("disable"),
    ),
    secrets=(secret("data", "data", _DNS, as_plugin_data),),
    variant="type",
    digest=("PUT",),
    list_call=Call(_ALL),
    read_call=Call(("cluster", "acme", "plugins", "{name}")),
    create_call=Call(_ALL, {"id": "{name}"}),
)
