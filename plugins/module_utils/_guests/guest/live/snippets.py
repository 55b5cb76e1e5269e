# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data: PVE's API cannot upload a snippet, so it is written into a local mount of the
storage.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ...._foundation.cluster.snippets import visible
from ...._foundation.cluster.snippets.files import LocalDirectory
from ...._foundation.core.errors import ConfigurationError
from ...._foundation.resource.plan import Step
from ...kinds.hardware import AnyDesired, Snippet
from ..plan.steps import write_step

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def _directory(snippet: Snippet) -> LocalDirectory:
    return LocalDirectory(os.path.dirname(snippet.file))


def with_present_content(desired: AnyDesired) -> AnyDesired:
    """Return the desired guest with the present content of the file of its user data.

    Raises ConfigurationError if it cannot be read.
    """
    snippet = desired.hardware.snippet
    if snippet is None:
        return desired
    data = _directory(snippet).read(os.path.basename(snippet.file))
    try:
        now = None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"Snippet {snippet.volume} could not be read: {error}",
            "Use another name for the user data: that file is not a text",
            "snippet",
        ) from error
    return desired.with_hardware(snippet=replace(snippet, now=now))


def files_beside(snippet: Snippet | None) -> frozenset[str]:
    """Return the names of the files in the directory of a snippet, as PVE lists them."""
    return frozenset() if snippet is None else _directory(snippet).names()


def write_snippet(client: Client, snippet: Snippet | None, node: str) -> list[str]:
    """Write the file unless it already has the content, and return the summary of the step."""
    if snippet is None or not snippet.is_written:
        return []
    step = write_step(snippet, node)
    put_snippet(client, step)
    return [step.summary]


def put_snippet(client: Client, step: Step) -> None:
    """Write the file of a step, which the node must see. Raises ConfigurationError."""
    visible.put_snippet(
        client,
        LocalDirectory(os.path.dirname(str(step.path[0]))),
        str(step.data["volume"]),
        str(step.data["node"]),
        str(step.data["content"]).encode(),
        is_new=bool(step.data["new"]),
    )
