# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reading of a tenant after the work: whether its failure fails the task."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.work import (
    TenantProgress,
    read_result,
)
from tests.fake_api import FakeApi

STEP = "Create role 'Acme'"


def failing() -> Client:
    denied = PermissionDenied(attempted="Could not read the cluster", answer="Permission denied")
    return FakeApi(lambda _request: denied).client()


def test_a_failed_reading_fails_the_task_and_names_what_was_done() -> None:
    with pytest.raises(PermissionDenied) as caught:
        read_result(failing(), TenantProgress(done=[STEP]), None)
    assert caught.value.details["done"] == [STEP]


@pytest.mark.parametrize(
    ("login", "blinds"), [({"token_id": "acme@pve!fleet"}, False), (None, True)]
)
def test_a_failed_reading_is_a_warning_after_a_new_login_or_a_loss_of_rights(
    login: dict[str, Any] | None, blinds: bool
) -> None:
    report = TenantProgress(blinds=blinds, done=[STEP])
    assert read_result(failing(), report, login) is None
    (warning,) = report.warnings
    assert "Could not read the cluster: Permission denied" in warning
