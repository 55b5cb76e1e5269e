# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data from the options; content that cloud-init would refuse is refused (pure)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ....._foundation.core import validate
from ....._foundation.core.errors import ConfigurationError, ValidationFailed
from ....kinds.hardware import Snippet


def read_snippet(cloud_init: Mapping[str, Any]) -> Snippet | None:
    """Return the user data of the options, or None. Raises ValidationFailed."""
    content = cloud_init.get("user_data")
    if content is None:
        return None
    volume = (cloud_init.get("snippets") or {}).get("user")
    directory = cloud_init.get("snippet_directory")
    if not volume or not directory:
        missing = "snippets.user" if not volume else "snippet_directory"
        raise ValidationFailed(
            attempted="cloud_init.user_data was refused",
            answer=f"cloud_init.{missing} is not given, and PVE's API cannot upload a snippet",
            next_step=(
                "Name the volume with snippets.user and where its storage is mounted with"
                " snippet_directory"
            ),
            reason="cloud_init.user_data",
        )
    storage, _colon, path = validate.volume(volume, "cloud_init.snippets.user").partition(":")
    folder, _slash, name = path.partition("/")
    if folder != "snippets" or not name or "/" in name or not storage:
        raise validate.refused(
            "cloud_init.snippets.user",
            volume,
            "is not a snippet",
            "Write it as storage:snippets/name.yml",
        )
    _require_cloud_config(content)
    return Snippet(content, os.path.join(directory, name), volume)


def _require_cloud_config(content: str) -> None:
    """Refuse user data that cloud-init would not accept: not YAML, or without its first line."""
    if content.startswith(("#!", "Content-Type: multipart")):
        return  # a script or several parts: not checked
    if not content.startswith("#cloud-config"):
        raise ValidationFailed(
            attempted="cloud_init.user_data was refused",
            answer="its first line is not #cloud-config",
            next_step="Begin it with #cloud-config, or with #! for a script",
            reason="cloud_init.user_data",
        )
    try:
        import yaml
    except ImportError:
        raise ConfigurationError(
            attempted="cloud_init.user_data could not be checked",
            answer="the Python library PyYAML is missing",
            next_step="Install PyYAML",
            reason="missing library yaml",
        ) from None
    try:
        parsed = yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        # The text around a mistake may contain a secret, so only the line number is reported.
        raise ValidationFailed(
            attempted="cloud_init.user_data was refused",
            answer=f"it is not valid YAML{where}",
            next_step="Correct it",
            reason="cloud_init.user_data",
        ) from None
    if not isinstance(parsed, dict):
        raise validate.refused(
            "cloud_init.user_data",
            type(parsed).__name__,
            "is not a mapping",
            "Give cloud-config keys",
        )
