# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of drills is well-formed, asks for nothing, and shows every text of others as text."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.pve.fleet.plugins.filter.drill_html import drill_html
from ansible_collections.pve.fleet.plugins.filter.drill_record import drill_record
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.formatting import printable
from tests.unit.module_utils.drill.test_record import FAILED, PROVEN, validate
from tests.unit.module_utils.report.test_page import HOSTILE, read

NODE = {"node": "pve1", "copy_vmid": 900412}


def record(*rows: dict[str, Any], **more: Any) -> Any:
    return drill_record(list(rows), run="00ff00", began=1_000_000, ended=1_000_300, **more)


def test_the_page_shows_proof_times_and_failures() -> None:
    document = record({**PROVEN, **NODE}, {**FAILED, "vmid": 101, "name": "db"})
    validate(document)
    page = drill_html(document, "Drills of Berlin")
    read(page)
    for text in (
        "Drills of Berlin",
        "1 proven",
        "1 failed",
        "90\u00a0s",
        "110\u00a0s",
        "900412 on pve1",
    ):
        assert text in page
    assert page.count("never") == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_others_stay_text(text: str) -> None:
    page = drill_html(record({**PROVEN, "name": text, "tenant": text, "volume": text}), text)
    reader = read(page)
    assert "".join(reader.texts).count(printable(text).replace("\r", "")) >= 4
    assert "<script" not in page
    assert "<img" not in page


def test_an_empty_drill_has_a_page() -> None:
    document = record()
    validate(document)
    assert "No guest was chosen" in drill_html(document)


def test_checks_decide() -> None:
    document = record({**PROVEN, **NODE}, checks={"100": ""})
    assert document["guests"][0]["proof"] == "checks"
    document = record({**PROVEN, **NODE}, checks={"100": "no answer"})
    assert document["guests"][0]["outcome"] == "failed"
    assert document["guests"][0]["msg"] == "no answer"


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(AnsibleFilterError):
        drill_html({"version": 0})
    with pytest.raises(AnsibleFilterError):
        record(previous="[]")
    with pytest.raises(AnsibleFilterError):
        drill_record("guests", run="00ff00", began=1, ended=2)
