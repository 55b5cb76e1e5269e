# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client without the libraries that requests need: inventory and lookup have no other check."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import Endpoint
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http import backend
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ConnectionSettings,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
)


@pytest.mark.parametrize(
    ("name", "library"), [("ProxmoxResource", "proxmoxer"), ("requests", "requests")]
)
def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, name: str, library: str) -> None:
    monkeypatch.setattr(backend, name, None)
    connection = ConnectionSettings(Endpoint("127.0.0.1"), user="root@pam", password="s3cret")
    with pytest.raises(ConfigurationError) as caught:
        Client(connection).get("version")
    assert caught.value.reason == f"missing library {library}"
    assert f"{library} cannot be imported by {sys.executable}" in caught.value.message
