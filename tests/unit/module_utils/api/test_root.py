# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusal of requests that PVE accepts from root@pam with a password only."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.endpoint import Endpoint
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.root import require_root
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ConnectionSettings,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    PermissionDenied,
)


def test_root_with_a_password_passes() -> None:
    connection = ConnectionSettings(Endpoint("pve1"), user="root@pam", password="s3cret")
    require_root(connection.login, "The disk was not wiped")


@pytest.mark.parametrize("login", ["root@pam!fleet", "admin@pve", "root@pve"])
def test_other_logins_are_refused(login: str) -> None:
    """Also a token of root@pam: PVE compares the whole name (pve-http-server: AnyEvent.pm)."""
    with pytest.raises(PermissionDenied) as raised:
        require_root(login, "The disk was not wiped")
    assert f"the login is {login}" in raised.value.message
    assert "set user=root@pam and password" in raised.value.message


def test_token_goes_before_user() -> None:
    connection = ConnectionSettings(Endpoint("pve1"), user="root@pam", token_id="root@pam!fleet")
    assert connection.login == "root@pam!fleet"


def test_refused_options_are_named() -> None:
    causes = {"args": "only root can set 'args' config"}
    with pytest.raises(PermissionDenied) as raised:
        require_root("admin@pve", "VM 'web' was not planned", "leave it out", causes)
    assert raised.value.parameters == causes
    assert raised.value.next_step.endswith("never to a token; leave it out")
