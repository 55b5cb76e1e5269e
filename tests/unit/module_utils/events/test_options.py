# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the event source."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.follow import read_options

GIVEN: dict[str, Any] = {"state_file": "/tmp/events.json"}


def test_defaults() -> None:
    wanted, connection, state_file = read_options(GIVEN)
    assert (wanted.interval, wanted.slow_interval, wanted.longest_pause) == (30, 3600, 600)
    assert (wanted.storage_limit, wanted.quota_limit, wanted.prefix) == (90, 90, "tenant_")
    assert not wanted.has_slow_part
    assert (connection, state_file) == ({}, "/tmp/events.json")


def test_connection_quotas_and_backups() -> None:
    given = {
        **GIVEN,
        "host": "pve1",
        "interval": "10",
        "quotas": {"Acme": {"memory": "64GiB", "vms": None}, "other": {"vms": 3}},
        "backup_max_age": 26,
    }
    wanted, connection, _state_file = read_options(given)
    assert connection == {"host": "pve1"}
    assert wanted.interval == 10
    assert wanted.quotas == {"acme": {"memory": 64 << 30}, "other": {"vms": 3}}
    assert wanted.max_age == 26 * 3600
    assert wanted.has_slow_part


def test_drift_has_the_defaults_of_its_module() -> None:
    wanted, _connection, _state_file = read_options({**GIVEN, "drift": {"vms": [{"name": "a"}]}})
    assert wanted.drift is not None
    assert wanted.drift["vms"] == [{"name": "a"}]
    assert "tenants_required" in wanted.drift


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"state_file": None}, "state_file"),
        ({"interval": 0}, "interval"),
        ({"interval": "often"}, "interval"),
        ({"storage_limit": 101}, "storage_limit"),
        ({"backup_max_age": 0.5}, "backup_max_age"),
        ({"quotas": {"acme": {"vm": 3}}}, "quotas.acme"),
        ({"drift": {"vms": []}}, "drift"),
        ({"drift": {"vm": []}}, "vm"),
        ({"intervall": 3}, "intervall"),
    ],
)
def test_mistakes_are_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        read_options({**GIVEN, **given})
    assert text in caught.value.message
