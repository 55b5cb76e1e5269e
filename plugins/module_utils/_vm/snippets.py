# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Full user data: PVE's API cannot upload a snippet, so it is written where the storage is mounted here."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import replace

from .._core.errors import ConfigurationError
from .model import Actual, Plan, Snippet, Step
from .steps import regenerate


def current_content(snippet: Snippet | None) -> str | None:
    """Return what the snippet's file holds now, or None. Raises ConfigurationError where it cannot be read."""
    if snippet is None:
        return None
    if not os.path.isdir(os.path.dirname(snippet.file)):
        raise _unusable(snippet, f"there is no directory {os.path.dirname(snippet.file)}")
    try:
        with open(snippet.file, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(snippet, str(error)) from error


def write_snippet(snippet: Snippet | None, now: str | None) -> list[str]:
    """Write the file where it does not hold the content already, and return what was done, in words."""
    if snippet is None or snippet.content == now:
        return []
    write_content(snippet.file, snippet.content)
    return [f"Write user data to {snippet.file}"]


def write_content(file: str, content: str) -> None:
    """Put the content into the file in one move, readable as PVE needs it. Raises ConfigurationError."""
    directory = os.path.dirname(file)
    name = None
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=directory, delete=False) as stream:
            name = stream.name
            stream.write(content)
        os.chmod(name, 0o640)
        os.replace(name, file)
    except OSError as error:
        if name:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise ConfigurationError(
            attempted=f"User data could not be written to {file}",
            answer=str(error),
            next_step="Check snippet_directory and its rights on the machine where the task runs",
            reason="snippet",
        ) from error


def with_snippet(plan: Plan, snippet: Snippet | None, now: str | None, actual: Actual | None) -> Plan:
    """Return the plan with the file written first, where it does not hold the content already (pure).

    A VM that runs gets its cloud-init drive written anew; any other gets that when it starts.
    """
    if snippet is None or snippet.content == now:
        return plan
    data = {"content": snippet.content}
    write = Step("snippet", f"Write user data to {snippet.file}", "FILE", (snippet.file,), data, is_task=False)
    steps = [write, *plan.steps]
    if (
        actual is not None
        and actual.running
        and not {"cloudinit", "reboot", "shutdown", "stop"} & {step.action for step in plan.steps}
    ):
        steps.append(regenerate(actual))
    before = {**plan.before, "user_data": fingerprint(now)} if actual is not None else plan.before
    after = {**plan.after, "user_data": fingerprint(snippet.content)}
    return replace(plan, steps=tuple(steps), before=before, after=after)


def fingerprint(content: str | None) -> str | None:
    """Return what a diff shows of user data, which may hold secrets."""
    return None if content is None else f"sha256:{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _unusable(snippet: Snippet, why: str) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"The snippet {snippet.volume} could not be read",
        answer=why,
        next_step="Name the directory where the storage's snippets are mounted on the machine where the task runs",
        reason="snippet",
    )
