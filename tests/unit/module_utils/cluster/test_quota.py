# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers, bands, quotas and sources: pure, in tables and properties."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.find.lookup import (
    require_own_source,
    require_own_volume,
    volume_owner,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.quota import (
    QuotaFigures,
    beyond,
    excess,
    figures_by_vm,
    growth,
    read_limits,
    total,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    VmRow,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.vmids import (
    VmidAllocator,
    VmidRanges,
    advice,
    read_vmid_ranges,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    QuotaExceeded,
    ValidationFailed,
)

GIB = 1 << 30


@given(st.frozensets(st.integers(100, 140)), st.integers(1, 60), st.integers())
def test_a_number_is_free_and_in_its_band(taken: frozenset[int], losses: int, seed: int) -> None:
    free = set(range(100, 131)) - taken
    for by_name in (True, False):
        vmids = VmidAllocator((100, 130), "tenant_acme", "web1", by_name)
        if not free:
            with pytest.raises(QuotaExceeded, match="all 31 numbers from 100 to 130"):
                vmids.free_after(taken, losses, random.Random(seed))
            continue
        assert vmids.free(taken) == next(vmid for vmid in vmids.order() if vmid in free)
        assert vmids.free_after(taken, losses, random.Random(seed)) in free


@given(st.text(max_size=20), st.text(max_size=20), st.integers(100, 999), st.integers(0, 300))
def test_the_order_by_name_has_every_number_once(
    tenant: str, name: str, first: int, size: int
) -> None:
    vmids = VmidAllocator((first, first + size), tenant, name)
    order = list(vmids.order())
    assert sorted(order) == list(range(first, first + size + 1))
    assert order == list(VmidAllocator((first, first + size), tenant.lower(), name).order())
    assert vmids.first(3) == set(order[:3])


def test_the_number_of_a_name_never_changes() -> None:
    """Other versions of the collection and other sites must give a VM the same number."""
    vmid_range = (10000, 99999)
    assert next(VmidAllocator(vmid_range, "tenant_acme", "web1").order()) == 15046
    assert next(VmidAllocator(vmid_range, None, "web1").order()) == 61629
    assert list(VmidAllocator((100, 999), "tenant_acme", "web1").order())[:3] == [646, 729, 812]


def test_fifty_names_get_fifty_numbers_at_the_first_try() -> None:
    vmid_range = (10000, 99999)
    first = {
        next(VmidAllocator(vmid_range, f"tenant_t{index % 3}", f"race-{index}").order())
        for index in range(50)
    }
    assert len(first) == 50


def test_those_who_lose_together_part_quickly() -> None:
    """Fifty runs that all saw the same picture: each round, every number goes to one of those who
    ask for it.
    """
    waiting, taken, rounds = dict.fromkeys(range(50), 0), set[int](), 0
    rngs = {index: random.Random(index) for index in range(50)}
    vmid_range = (10000, 99999)
    all_wanted = dict.fromkeys(range(50), 10000)
    while waiting:
        rounds += 1
        for index in list(waiting):
            if all_wanted[index] in taken:
                waiting[index] += 1
            else:
                taken.add(all_wanted[index])
                del waiting[index]
        lowest = VmidAllocator(vmid_range, None, "web1", by_name=False)
        all_wanted = {
            index: lowest.free_after(taken, losses, rngs[index])
            for index, losses in waiting.items()
        }
    assert len(taken) == 50
    assert rounds <= 10
    assert max(taken) < 11000


@pytest.mark.parametrize(
    ("vmid", "word"),
    [
        (100, None),
        (999, None),
        (1000, None),
        (9999, None),
        (10000, "automatic"),
        (100000, "reserved"),
        (5, "none of"),
    ],
)
def test_a_number_by_hand_outside_its_bands_is_advised_against(vmid: int, word: str | None) -> None:
    said = advice(vmid, VmidRanges())
    assert said is None if word is None else word in (said or "")


def test_bands_are_read() -> None:
    vmid_ranges = read_vmid_ranges([500, 600], {"manual": [700, 800], "template": None})
    assert vmid_ranges == VmidRanges(automatic=(500, 600), manual=(700, 800))
    for wrong in ([1], [3, 2], [1, 200], [100, 1 << 40]):
        with pytest.raises(ValidationFailed, match="vmid_bands.manual"):
            read_vmid_ranges(None, {"manual": wrong})


def test_limits_are_those_of_the_tenant() -> None:
    several = {"Acme": {"vms": 3}, "globex": {"memory": "4G", "disk": 10, "cores": None}}
    assert read_limits({"tenant": "acme", "quotas": several}) == {"vms": 3}
    assert read_limits({"tenant": "globex", "quotas": several}) == {
        "memory": 4 * GIB,
        "disk": 10 * GIB,
    }
    assert read_limits({"tenant": "other", "quotas": several}) is None
    assert read_limits({"quotas": several}) is None
    assert read_limits({"tenant": "acme", "quotas": several, "quota": {"memory": 512}}) == {
        "memory": GIB // 2
    }


@pytest.mark.parametrize(
    "options",
    [
        {"quota": {"vms": 1}},
        {"tenant": "a", "quota": {"vms": -1}},
        {"tenant": "a", "quota": {"memory": "much"}},
        {"tenant": "a", "quotas": {"a": 5}},
        {"tenant": "a", "quotas": {"a": {"vm": 5}}},
        {"tenant": "a", "quotas": {"no tag": {"vms": 5}}},
    ],
    ids=str,
)
def test_limits_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed, match="quota"):
        read_limits(options)


def test_what_a_tenant_has() -> None:
    base = {
        "type": "qemu",
        "node": "n1",
        "name": "x",
        "maxcpu": 2,
        "maxmem": GIB,
        "maxdisk": 5 * GIB,
        "status": "stopped",
    }
    rows = [
        {**base, "vmid": 100, "tags": "tenant_acme"},
        {**base, "vmid": 101, "tags": "tenant_acme;tenant_globex"},
        {**base, "vmid": 102, "tags": "tenant_acme2"},
        {**base, "vmid": 103, "tags": "Tenant_Acme;web", "template": 1},
    ]
    found = figures_by_vm(
        cluster_state_of(rows, {"qemu"}), "tenant_acme", "tenant_", {100: 7 * GIB, 103: GIB}
    )
    assert found == {100: QuotaFigures(1, 2, GIB, 7 * GIB), 103: QuotaFigures(disk=5 * GIB)}
    assert total(found.values()) == QuotaFigures(1, 2, GIB, 12 * GIB)


FIGURES = st.builds(QuotaFigures, *[st.integers(0, 9)] * 4)
LIMITS = st.dictionaries(st.sampled_from(["vms", "cores", "memory", "disk"]), st.integers(0, 12))


@given(LIMITS, FIGURES, FIGURES)
def test_only_what_grows_can_exceed(
    limits: dict[str, int], used: QuotaFigures, more: QuotaFigures
) -> None:
    over = excess(limits, used, more)
    for kind in ("vms", "cores", "memory", "disk"):
        wanted = getattr(more, kind)
        fits = kind not in limits or wanted == 0 or getattr(used, kind) + wanted <= limits[kind]
        assert (kind in over) is not fits
    if over:
        error = beyond("acme", over, "VM 1 was refused", "Raise it")
        assert error.category == "QuotaExceeded"
        assert error.details["quota"] == over
        assert all(kind in error.message for kind in over)
    assert growth(used, more) + QuotaFigures() == QuotaFigures(
        *(
            max(0, getattr(more, kind) - getattr(used, kind))
            for kind in ("vms", "cores", "memory", "disk")
        )
    )


ROW = VmRow("qemu", 9000, "n1", "debian", "stopped", (), None, True, None, 1, GIB, GIB, 0)


@pytest.mark.parametrize(
    ("tags", "template", "shared", "allowed"),
    [
        ([], True, [], True),
        ([], False, [], False),
        ([], False, ["9000"], True),
        ([], False, ["debian"], True),
        ([], False, ["debia"], False),
        (["tenant_acme"], False, [], True),
        (["tenant_globex"], True, [], False),
        (["tenant_globex"], True, ["9000"], True),
        (["tenant_acme2"], True, [], False),
        (["tenant_acme", "tenant_globex"], True, [], False),
    ],
)
def test_what_a_tenant_may_clone(
    tags: list[str], template: bool, shared: list[str], allowed: bool
) -> None:
    row = replace(ROW, template=template, tags=tuple(tags))
    seen = replace(cluster_state_of([], {"qemu"}), vms={9000: row})
    require_own_source(row, tags, None, "tenant_")
    if allowed:
        require_own_source(row, tags, "tenant_acme", "tenant_", shared)
        require_own_volume("ceph:base-9000-disk-0", seen, "tenant_acme", "tenant_", shared)
        return
    with pytest.raises(Conflict, match="shared_sources"):
        require_own_source(row, tags, "tenant_acme", "tenant_", shared)
    with pytest.raises(Conflict, match="shared_sources"):
        require_own_volume("ceph:base-9000-disk-0", seen, "tenant_acme", "tenant_", shared)


@pytest.mark.parametrize(
    ("volume", "owner"),
    [
        ("local-lvm:vm-100-disk-0", 100),
        ("local:100/vm-100-disk-0.qcow2", 100),
        ("ceph:base-9000-disk-0/vm-100-disk-1", 100),
        ("nfs:9000/base-9000-disk-0.raw/100/vm-100-disk-0.qcow2", 100),
        ("local-lvm:vm-100-cloudinit", 100),
        ("local-lvm:vm-100-state-before", 100),
        ("local:iso/vm-100-like.iso", None),
        ("local:import/debian.qcow2", None),
        ("local:iso/debian.iso", None),
        ("none", None),
    ],
)
def test_whose_a_volume_is(volume: str, owner: int | None) -> None:
    assert volume_owner(volume) == owner


def test_a_volume_of_an_unknown_vm_is_left_alone() -> None:
    with pytest.raises(Conflict, match="VM 77"):
        require_own_volume(
            "ceph:vm-77-disk-0", cluster_state_of([], {"qemu"}), "tenant_acme", "tenant_"
        )
    require_own_volume(
        "ceph:vm-77-disk-0", cluster_state_of([], {"qemu"}), "tenant_acme", "tenant_", ["77"]
    )
    require_own_volume("ceph:vm-77-disk-0", cluster_state_of([], {"qemu"}), None, "tenant_")
