# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms of answers: a row of a known shape is tested, another row is converted field by field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers import forms
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers.generated.answers import (
    READS,
)

FIELDS = {
    "vmid": forms.vmid,
    "name": forms.name,
    "tags": forms.text,
    "mem": forms.whole,
    "cpu": forms.number,
    "template": forms.flag,
    "ctime": forms.moment,
    "cores": forms.count,
}
ROW = {"vmid": 100, "name": "web", "tags": "", "mem": 2**40, "cpu": 0.5, "template": 0}
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 100, 2**63 - 1, 2**63, -(2**63), 253402300800),
    *(0.5, 2.0, 1e30, float("inf"), float("nan"), "", "0", "web", "1.5", [], {}, [1], {"a": 1}),
)


def by_field(row: dict[str, Any]) -> dict[str, Any]:
    """The answer of the rules of each field alone: the reference."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        try:
            typed = None if value is None else FIELDS.get(key, forms.unchanged)(value)
        except forms.WrongForm as error:
            raise error.within(key) from None
        if typed is not None or key not in FIELDS:
            found[key] = typed
    for key in ("vmid", "name"):
        if key not in found:
            raise forms.WrongForm("is missing", (key,))
    return found


def outcome(form: forms.Form, row: dict[str, Any]) -> str:
    """The text of the result, or of the problem."""
    try:
        return repr(form(dict(row)))
    except forms.WrongForm as error:
        return f"{error.place}: {error}"


@given(st.dictionaries(st.sampled_from([*FIELDS, "new"]), st.sampled_from(VALUES)))
def test_a_row_of_a_known_shape_is_read_like_a_row_of_a_new_shape(row: dict[str, Any]) -> None:
    form = forms.ObjectForm({key: FIELDS[key] for key in ("vmid", "name")}, FIELDS)
    expected = outcome(by_field, row)
    assert outcome(form, row) == expected
    assert outcome(form, row) == expected
    assert outcome(form, {**ROW, **row}) == outcome(by_field, {**ROW, **row})


def test_a_row_in_its_form_is_returned_without_a_copy() -> None:
    form = forms.ObjectForm({"vmid": forms.vmid}, FIELDS)
    assert form(ROW) is ROW


@pytest.mark.parametrize(
    ("key", "value"),
    [("vmid", 0), ("mem", 2**63), ("cpu", float("nan")), ("template", 2), ("name", "")],
)
def test_a_wrong_value_is_found_in_a_known_shape(key: str, value: Any) -> None:
    """The class of the value is right, so that the row has the shape of the row before it."""
    form = forms.rows(forms.ObjectForm({"vmid": forms.vmid, "name": forms.name}, FIELDS))
    with pytest.raises(forms.WrongForm) as caught:
        form([ROW, {**ROW, key: value}])
    assert caught.value.place == (1, key)


def test_an_option_named_by_digits_has_a_text_as_name() -> None:
    """Perl's JSON can have a text of digits as a number."""
    form = READS["nodes/*/qemu/*/pending"]
    assert form([{"key": 0, "value": "x"}]) == [{"key": "0", "value": "x"}]


def test_shapes_beyond_the_limit_are_read_all_the_same() -> None:
    form = forms.ObjectForm({"vmid": forms.vmid}, FIELDS)
    for number in range(300):
        assert form({**ROW, f"new{number}": 1})
    with pytest.raises(forms.WrongForm, match="mem"):
        form({**ROW, "another": 1, "mem": "x"})


def test_most_rows_of_a_cluster_need_no_conversion() -> None:
    """The listing of a cluster is the largest answer of most tasks (pve-manager: API2/Cluster.pm,
    resources), and its figures are numbers.
    """
    row = {"type": "qemu", "node": "pve1", "id": "qemu/100", "status": "running", **ROW}
    (found,) = READS["cluster/resources"]([row])
    assert found is row
