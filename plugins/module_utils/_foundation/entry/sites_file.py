# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the file with the sites."""

from __future__ import annotations

import os
import re
from typing import Any

from ..core.errors import ConfigurationError
from .remotes import sites_with_remotes

_VAULT = re.compile(r"(?m)^\s*\$ANSIBLE_VAULT;|:\s*!vault\b")


def read_sites_file(path: str) -> Any:
    """Return the data of a YAML file with sites.

    Raises ConfigurationError if the file cannot be read.
    """
    attempted = f"Could not read the sites file {path}"
    try:
        import yaml
    except ImportError:
        raise _sites_error(
            attempted, "the Python library PyYAML is missing", "Install PyYAML"
        ) from None
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            text = stream.read()
        if _VAULT.search(text):
            raise _sites_error(
                attempted,
                "ansible-vault encrypted it, and a module has no key",
                "Set sites to lookup('ansible.builtin.unvault', FILE) | from_yaml; in the file of"
                " an inventory, write the list itself",
            )
        given = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise _sites_error(attempted, str(error), "Correct sites_file") from error
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1})"
        # The text of the error may quote a secret, so only the line is reported.
        raise _sites_error(attempted, f"it is not valid YAML{where}", "Correct the file") from None
    if isinstance(given, dict) and given.get("sites_from"):
        return sites_with_remotes(given, path)
    return given


def _sites_error(attempted: str, answer: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(f"{attempted}: {answer}", next_step, "unreadable sites file")
