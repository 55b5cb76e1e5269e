# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a snippet, checked (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ..desired import DesiredFile

SNIPPETS = "snippets"

_OWN = ("text", "snippet_directory", "ssh")
_NAME = re.compile(r"[A-Za-z0-9_][^/\x00-\x1f]{0,254}")


def require_snippet_options(params: Mapping[str, Any], file: DesiredFile) -> None:
    """Raise ValidationFailed for snippet options with other content, and for a snippet that the
    options do not allow to write.
    """
    given = [option for option in _OWN if params.get(option) is not None]
    if file.content != SNIPPETS:
        if given:
            raise validate.refused(
                given[0],
                file.volume,
                "is not a snippet",
                f"Leave out {given[0]}, or set content=snippets",
            )
        return
    if params.get("state") != "absent":
        _require_place(params, file)


def _require_place(params: Mapping[str, Any], file: DesiredFile) -> None:
    if params.get("source_url"):
        raise validate.refused(
            "source_url",
            file.volume,
            "is a snippet, and no node downloads snippets",
            "Download the file, and set src",
        )
    if params.get("text") is None and not params.get("src"):
        return
    if not _NAME.fullmatch(file.name):
        raise validate.refused(
            "filename", file.name, "is not the name of a snippet", "Use a name without a path"
        )
    if not params.get("snippet_directory") and params.get("ssh") is None:
        raise ValidationFailed(
            attempted=f"{file.volume} was not written",
            answer="the API of Proxmox VE does not take snippets",
            next_step="Set snippet_directory, or ssh to write the file on the node",
            reason="snippet_directory",
        )
