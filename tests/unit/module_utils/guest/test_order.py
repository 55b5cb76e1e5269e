# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of guests by their names."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._guest.order import followers_by_name

NAMES = st.one_of(st.none(), st.text(), st.from_regex(r"[a-z]{0,2}\d{0,3}-?\d{0,3}"))


def rows(*names: str | None) -> list[dict[str, Any]]:
    return [{"vmid": 100 + number, "name": name} for number, name in enumerate(names)]


def test_numbers_in_names_count_by_their_value() -> None:
    assert followers_by_name(rows("web-10", "db", "web-2", "web-9")) == {
        "101": "102",
        "102": "103",
        "103": "100",
    }


def test_no_guests_have_no_followers() -> None:
    assert followers_by_name([]) == {}


@given(st.lists(NAMES))
def test_every_guest_but_the_first_follows_one_whatever_the_names(names: list[str | None]) -> None:
    found = followers_by_name(rows(*names))
    assert len(set(found.values())) == len(found) == max(len(names) - 1, 0)
