# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of a cluster file, with comments (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..._foundation.core.texts.checksum import with_checksum
from ..._foundation.core.texts.yaml_text import lines_of, one_line

_HEAD = """\
---
# The configuration of a cluster that pve.fleet.export wrote. Edit it, keep it in git, and run
#
#   ansible-playbook pve.fleet.cluster -e @cluster.yml
#
# Another export replaces this file only if it was not edited.
"""
_SECRETS = "# Proxmox VE does not return these secrets:"
_NOTES = "# Not exported, because it is not in force yet:"
_MISSING = "# NOT COMPLETE, and not to be used with cluster_exact:"
VARIABLE = "cluster_{}"


def text_of(
    sections: Mapping[str, Any],
    secrets: Mapping[str, Sequence[str]],
    missing: Sequence[str],
    notes: Sequence[str] = (),
) -> str:
    """Return the text of a cluster file. The same cluster has the same text in each run."""
    lines = [*_comment(_MISSING, missing), *_comment(_NOTES, notes)]
    for name, value in sections.items():
        lines.append("")
        lines += _comment(_SECRETS, secrets.get(name, ()))
        lines += lines_of({VARIABLE.format(name): value})
    rest = "\n".join([*lines, ""])
    return with_checksum(f"{_HEAD}{rest}", _HEAD)


def _comment(head: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        if not number:
            yield head
        yield f"# - {one_line(text)}"
