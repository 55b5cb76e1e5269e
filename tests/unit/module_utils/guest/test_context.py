# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task wants to know of its guest."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.context import read_settings


def test_a_role_without_these_options_has_the_defaults_of_the_modules() -> None:
    request = read_settings({})
    assert (request.wait_for, request.timeout, request.rule.family) == ("none", 300, "ipv4")
