"""Sizes: what people write, what PVE writes, and the limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.quantities import (
    GIB,
    MIB,
    TIB,
    parse_disk_size,
    parse_memory,
    parse_size,
    read_size,
    readable_size,
    readable_sizes,
    render_gib,
    render_size,
    whole_number,
)


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        (2048, 2048),
        ("2048", 2048),
        ("4G", 4096),
        ("4g", 4096),
        ("4Gi", 4096),
        ("4GiB", 4096),
        ("4 GB", 4096),
        ("512M", 512),
        ("1.5G", 1536),
        ("65536K", 64),
        ("2T", 2 * TIB // MIB),
        ("64", 64),
    ],
)
def test_memory_is_binary_and_a_bare_number_is_mib(text: object, mib: int) -> None:
    assert parse_memory(text) == mib


@pytest.mark.parametrize(
    "text", ["63", "3T", "0", "-1G", "4X", "G", "", "1e3", "4 4G", True, None, "1.3M", "100K"]
)
def test_memory_out_of_range_or_without_sense_is_refused(text: object) -> None:
    with pytest.raises(ValidationFailed) as failure:
        parse_memory(text)
    assert failure.value.next_step


def test_the_floor_of_memory_is_a_policy() -> None:
    assert parse_memory("16M", minimum=16) == 16


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (20, 20 * GIB),
        ("20", 20 * GIB),
        ("20G", 20 * GIB),
        ("1T", TIB),
        ("1536M", 1536 * MIB),
        ("1.5", 1536 * MIB),
        ("512M", 512 * MIB),
        ("0.125", 128 * MIB),
        ("1M", MIB),
    ],
)
def test_a_bare_disk_size_is_gib(text: object, size: int) -> None:
    assert parse_disk_size(text) == size


@pytest.mark.parametrize("text", ["0", "512K", "101T", "-5", "20Z", "abc"])
def test_disk_size_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        parse_disk_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(32 * GIB, "32G"), (1536 * MIB, "1536M"), (TIB, "1T"), (528384, "516K"), (1000, "1000")],
)
def test_sizes_are_written_as_pve_writes_them(size: int, text: str) -> None:
    assert render_size(size) == text
    assert read_size(text) == size


def test_equal_sizes_in_other_words_are_equal() -> None:
    assert parse_disk_size("32G") == read_size("32768M") == 32 * GIB
    assert read_size("none") is None
    assert read_size(None) is None


@given(st.integers(min_value=1, max_value=100 * 1024 * 1024))
def test_any_size_survives_being_written_and_read(kib: int) -> None:
    size = kib * 1024
    assert read_size(render_size(size)) == size
    assert parse_disk_size(render_gib(size), minimum=0) == size


@pytest.mark.parametrize("text", ["web1", "", "²", "٣", "-1", "1.0", "9" * 5000])
def test_what_names_a_vm_is_not_a_number(text: str) -> None:
    assert whole_number(text) is None
    assert whole_number("100") == 100


@pytest.mark.parametrize(
    ("sizes", "texts"),
    [
        ((3893 * GIB, 10 * 3893 * GIB, 92160 * GIB), ("3.8 TiB", "38 TiB", "90 TiB")),
        ((4800 * GIB, 4801 * GIB), ("4800 GiB", "4801 GiB")),
        ((512 * MIB, GIB), ("512 MiB", "1 GiB")),
        ((GIB, GIB), ("1 GiB", "1 GiB")),
        ((0, TIB + 1), ("0 B", "1 TiB")),
        ((100 * TIB, 100 * TIB + 1), ("100 TiB", "100 TiB")),
    ],
)
def test_different_sizes_of_one_sentence_differ_in_it(
    sizes: tuple[int, ...], texts: tuple[str, ...]
) -> None:
    assert readable_sizes(*sizes) == texts


@given(st.integers(min_value=0, max_value=1 << 60))
def test_a_size_for_people_is_never_a_power_of_ten(size: int) -> None:
    assert "e+" not in readable_size(size)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (2147483648, "If bytes are meant, write 2G"),
        ("536870912", "If bytes are meant, write 512M"),
        (4194304, "a bare number is MiB"),
    ],
)
def test_memory_in_bytes_is_recognized(value: object, hint: str) -> None:
    with pytest.raises(ValidationFailed, match="memory was refused") as failure:
        parse_memory(value)
    assert hint in failure.value.message


def test_a_disk_in_bytes_is_recognized() -> None:
    with pytest.raises(ValidationFailed, match="If bytes are meant, write 32G"):
        parse_disk_size(34359738368)


@pytest.mark.parametrize("bare", [MIB, GIB])
def test_a_quota_in_bytes_is_refused(bare: int) -> None:
    """A quota has no maximum, and 32 GiB in bytes would never be reached as MiB."""
    with pytest.raises(ValidationFailed, match=r"quota\.memory was refused.*write 32G"):
        parse_size(34359738368, bare=bare, what="quota.memory")
    assert parse_size("34359738368B", bare=bare, what="quota.memory") == 32 * GIB


def test_an_amount_to_add_is_not_a_size() -> None:
    with pytest.raises(ValidationFailed, match="'\\+5G' is an amount to add.*Write the new size"):
        parse_disk_size("+5G")


def test_a_boolean_is_not_a_size() -> None:
    with pytest.raises(ValidationFailed, match="true is a boolean, not a size"):
        parse_memory(True)
