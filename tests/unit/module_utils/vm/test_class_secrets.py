# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in classes are found, whatever shape the arguments have before anybody checks them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.layers import (
    class_secrets,
)


def classes(**cloud_init: Any) -> dict[str, Any]:
    return {"web": {"cores": 2, "cloud_init": {"user": "ops", **cloud_init}}, "db": {"cores": 4}}


@pytest.mark.parametrize(
    ("arguments", "secrets"),
    [
        ({}, set()),
        ({"classes": classes()}, set()),
        ({"classes": classes(password="one", user_data="two")}, {"one", "two"}),
        ({"classes": classes(password=1234)}, {"1234"}),
        ({"classes": '{"web": {"cloud_init": {"password": "json"}}}'}, {"json"}),
        (
            {
                "classes": classes(password="one"),
                "vms": [{"classes": classes(password="three")}, 7],
            },
            {"one", "three"},
        ),
        ({"classes": ["wrong"], "vms": "wrong"}, set()),
        ({"classes": {"web": "wrong", "db": {"cloud_init": 3}}, "vms": None}, set()),
    ],
)
def test_secrets_in_classes_are_found(arguments: dict[str, Any], secrets: set[str]) -> None:
    assert class_secrets(arguments) == secrets
