"""What a download wants, and which node does it: tables of options and pictures."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    FleetError,
    NotSupported,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.desired import (
    DesiredFile,
    read_desired_file,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.download import (
    choose_node,
    plan_absent,
    plan_present,
    run,
)
from tests.fake_api import FakeApi

SHA = "a" * 64


def file_of(**options: Any) -> DesiredFile:
    return read_desired_file({"storage": "local", **options})


@pytest.mark.parametrize(
    ("options", "volume"),
    [
        ({"source_url": "https://x/a/b.iso"}, "local:iso/b.iso"),
        ({"source_url": "https://x/b.img"}, "local:iso/b.img"),
        ({"source_url": "https://x/b.img", "content": "import"}, "local:import/b.qcow2"),
        (
            {"source_url": "https://x/b.img", "content": "import", "filename": "c.raw"},
            "local:import/c.raw",
        ),
        ({"source_url": "https://x/b.qcow2?token=1"}, "local:import/b.qcow2"),
        ({"source_url": "https://x/b%2Bc.ova"}, "local:import/b_c.ova"),
        ({"source_url": "https://x/b.iso.gz", "compression": "gz"}, "local:iso/b.iso"),
        ({"source_url": "https://x/b.tar.zst"}, "local:vztmpl/b.tar.zst"),
        ({"filename": "b.iso"}, "local:iso/b.iso"),
    ],
)
def test_the_volume_of_a_url(options: dict[str, Any], volume: str) -> None:
    assert file_of(**options).volume == volume


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (None, None)),
        ({"checksum": f"sha256:{SHA}"}, (SHA, "sha256")),
        ({"checksum": f"SHA256:{SHA.upper()}"}, (SHA, "sha256")),
        ({"checksum": SHA}, (SHA, "sha256")),
        ({"checksum": "b" * 128}, ("b" * 128, "sha512")),
        ({"checksum": "b" * 32, "checksum_algorithm": "md5"}, ("b" * 32, "md5")),
    ],
)
def test_a_checksum_is_read(
    options: dict[str, Any], expected: tuple[str | None, str | None]
) -> None:
    file = file_of(filename="x.iso", **options)
    assert (file.checksum, file.algorithm) == expected


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "filename"),
        ({"source_url": "https://x/"}, "source_url"),
        ({"source_url": "file:///x.iso"}, "source_url"),
        ({"source_url": "https://x/y"}, "filename"),
        ({"filename": "a/b.iso"}, "filename"),
        ({"filename": ".iso"}, "filename"),
        ({"filename": "a b+c.iso"}, "filename"),
        ({"filename": "x.iso", "content": "vztmpl"}, "filename"),
        ({"filename": "x.iso", "checksum": "zz"}, "checksum"),
        ({"filename": "x.iso", "checksum": f"md5:{SHA}"}, "checksum"),
        (
            {"filename": "x.iso", "checksum": f"sha256:{SHA}", "checksum_algorithm": "md5"},
            "checksum_algorithm",
        ),
        ({"filename": "x.iso", "storage": "no space"}, "storage"),
        ({"filename": "x.iso", "node": "no_node"}, "node"),
    ],
)
def test_what_is_refused_names_the_option(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(FleetError) as caught:
        file_of(**options)
    assert (caught.value.category, caught.value.reason) == ("ValidationFailed", reason)
    assert caught.value.next_step


def test_a_secret_of_the_url_is_sent_but_not_shown() -> None:
    file = file_of(source_url="https://ops:hunter2@x/b.iso?sig=hunter2", node="pve1")
    plan = plan_present(file, None)
    assert "hunter2" not in f"{plan}"
    assert plan.steps[0].data["url"] == file.url


def test_a_file_that_is_there_is_left_alone_and_one_that_is_gone_stays_gone() -> None:
    file = file_of(filename="b.iso", node="pve1")
    there = {"volid": "local:iso/b.iso", "size": 7}
    assert plan_present(file, there).steps == ()
    assert plan_absent(file, None).steps == ()
    assert plan_absent(file, there).before == {
        "volid": "local:iso/b.iso",
        "node": "pve1",
        "size": 7,
    }


ROWS: list[dict[str, Any]] = [
    {"type": "node", "node": "pve1", "status": "offline"},
    {"type": "node", "node": "pve2", "status": "online"},
    {"type": "node", "node": "pve3", "status": "online"},
    *(
        {
            "type": "storage",
            "storage": "local",
            "node": node,
            "status": "available",
            "content": "iso,import",
        }
        for node in ("pve1", "pve2", "pve3")
    ),
    {
        "type": "storage",
        "storage": "thin",
        "node": "pve2",
        "status": "available",
        "content": "images",
    },
]


@pytest.mark.parametrize(
    ("preferred", "node"),
    [([], "pve2"), (["pve3"], "pve3"), (["pve1"], "pve2"), (["pve9", "pve1", "pve3"], "pve3")],
)
def test_a_node_that_is_up_and_has_the_storage(preferred: list[str], node: str) -> None:
    assert (
        choose_node(file_of(filename="b.iso"), cluster_state_of(ROWS, {"qemu"}), preferred) == node
    )


@pytest.mark.parametrize(
    ("storage", "word"), [("thin", "it takes images"), ("nosuch", "local, thin")]
)
def test_no_node_for_it(storage: str, word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        choose_node(file_of(filename="b.iso", storage=storage), cluster_state_of(ROWS, {"qemu"}))


def test_an_old_version_has_no_images_to_import() -> None:
    api = FakeApi(lambda request: {"version": "8.2"} if request.segments == ("version",) else [])
    with pytest.raises(NotSupported, match="came with 8.3"):
        run({"storage": "local", "filename": "b.qcow2"}, api.client())
