# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of images: their texts, their order, and their tags."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import VmRow
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.storages.images import (
    ImageVersion,
    newest_for,
    parse_image,
    version_key,
    version_of,
    with_version,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    NotFound,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import (
    Marker,
    join_notes,
    split_notes,
)


def template(vmid: int, node: str, version: str = "") -> VmRow:
    tags = ("image", f"version-{version}") if version else ("image",)
    return VmRow(
        "qemu", vmid, node, "golden", "stopped", tags, None, True, None, 1, 2**30, 2**30, 0
    )


@pytest.mark.parametrize(
    "versions",
    [
        ["2026.9.30", "2026.10.1", "2026.11.20"],
        ["9", "10"],
        ["1.2", "1.2.1", "1.10"],
        ["", "0"],
        ["13-rc1", "13-rc2"],
        ["1", "9" * 5000],  # more digits than Python converts to a number
    ],
)
def test_versions_are_ordered_by_their_numbers(versions: list[str]) -> None:
    mixed = versions[::-1]
    assert sorted(mixed, key=version_key) == versions


@pytest.mark.parametrize("version", ["2026.11.20", "1", "13-rc1", "a.b-c"])
def test_a_version_survives_the_tag_and_the_marker(version: str) -> None:
    """PVE: JSONSchema.pm, pve_verify_tag, allows these characters in tags."""
    tag = f"version-{version}"
    assert validate.tag(tag) == tag
    assert version_of(["image", tag.upper()]) == version
    marker = Marker(origin=9000, image=ImageVersion("golden", version), run="a1", stale=True)
    notes, found = split_notes(join_notes("By hand", marker))
    assert (notes, found) == ("By hand", marker)
    assert found.completed == Marker(origin=9000, image=ImageVersion("golden", version))


@pytest.mark.parametrize("tags", [[], ["image"], ["version-"], ["version-.x"], ["versions-1"]])
def test_other_tags_are_not_versions(tags: list[str]) -> None:
    assert version_of(tags) == ""


@pytest.mark.parametrize("text", ["golden@", "golden@-1", "golden@a b", "golden@1_2", "g@1@2"])
def test_a_wrong_version_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed, match="is not the version of an image"):
        parse_image(text)


def test_the_text_of_an_image() -> None:
    assert parse_image("golden@2026.11.RC1") == ImageVersion("golden", "2026.11.rc1")
    assert parse_image("golden@1").label == "golden@1"
    assert parse_image("golden").label == "golden"


def test_templates_without_a_version_count_only_among_themselves() -> None:
    plain, old, new = template(1, "pve1"), template(2, "pve1", "9"), template(3, "pve2", "10")
    assert with_version([plain], None, "golden") == [plain]
    assert with_version([plain, old, new], None, "golden") == [old, new]
    assert with_version([plain, old, new], "10", "golden") == [new]
    with pytest.raises(NotFound, match=r"there are 9, 10\b"):
        with_version([plain, old, new], "11", "golden")
    with pytest.raises(NotFound, match="there are none with a version"):
        with_version([plain], "11", "golden")


def test_the_newest_image_of_a_node() -> None:
    rows = [template(1, "pve1", "9"), template(2, "pve1", "8"), template(3, "pve2", "10")]
    assert newest_for(rows, "pve1") == ImageVersion("golden", "9")
    assert newest_for(rows, "pve3") == ImageVersion("golden", "10")
    assert newest_for([template(1, "pve1")], "pve1") is None
