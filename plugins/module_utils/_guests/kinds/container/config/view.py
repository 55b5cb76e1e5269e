# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The form of a container's configuration in results and in diffs (pure).

Keys are PVE's own. Property strings become dictionaries, tags become a list, a volume becomes its
storage and size. The values of variables, and values that PVE generates, are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....._foundation.cluster.tenant import parse_tags
from ....._foundation.schema.lxc import LXC
from ....._foundation.schema.values import typed_option, typed_sub_keys
from ...config.view import format_options
from ...marker import split_notes
from .actual import VOLUME, mounts, read_environment, storage_of, volumes_in

# Not part of a user's configuration: PVE generates them, or they are state.
HIDDEN = frozenset("digest lock snapstate parent".split())


def format_config(config: Mapping[str, str], keys: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a configuration as plain data, all of it or only `keys`."""

    def format_value(key: str, text: str) -> Any:
        if VOLUME.match(key):
            return _mount(key, config)
        if key == "env":  # often with passwords
            return dict.fromkeys(read_environment(text), "(set)")
        if key == "tags":
            return sorted(parse_tags(text))
        if key == "description":
            return split_notes(text)[0]
        return typed_option(key, text, LXC)

    return format_options(config, keys, HIDDEN, format_value)


def _mount(slot: str, config: Mapping[str, str]) -> dict[str, Any]:
    """Return a mount with its storage and size; the volume of a bind mount is its path."""
    values = typed_sub_keys(slot, mounts(config).get(slot, {}), LXC)
    source = values.pop("volume", "")
    volume = volumes_in(config).get(slot)
    if volume is None:
        return {"path": source, **values}
    return {"storage": storage_of(volume), **values}
