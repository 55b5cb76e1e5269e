"""Storages of every kind, their contents, uploads and downloads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.simulator.process import DEMO, Simulator
from tests.simulator_tests.client import Client, login_as_root
from tests.simulator_tests.conftest import QUICK

SUMMED = "https://example.org/summed.iso"
KINDS = {
    "dirs": ("dirs:100/vm-100-disk-0.raw", True),
    "thin": ("thin:vm-100-disk-0", False),
    "tank": ("tank:vm-100-disk-0", False),
    "ceph": ("ceph:vm-100-disk-0", False),
    "share": ("share:100/vm-100-disk-0.raw", True),
}


@pytest.fixture(scope="module")
def kinds_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A cluster with one storage of each kind."""
    document = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    document["storages"] += [
        {"storage": "dirs", "type": "dir", "path": "/srv/dirs", "content": ["images", "iso"]},
        {
            "storage": "thin",
            "type": "lvmthin",
            "vgname": "vg",
            "thinpool": "thin",
            "content": ["images"],
        },
        {"storage": "tank", "type": "zfspool", "pool": "tank", "content": ["images"]},
        {
            "storage": "share",
            "type": "nfs",
            "server": "10.99.0.200",
            "export": "/srv",
            "content": ["images", "iso"],
        },
    ]
    path = tmp_path_factory.mktemp("kinds") / "kinds.yml"
    document["web"].append({"url": SUMMED, "size": 4096, "sha256": "ab" * 32})
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with Simulator("--cluster", path, *QUICK) as sim:
        yield sim


@pytest.fixture
def kinds(kinds_server: Simulator) -> Client:
    """root's token at the cluster with all kinds of storage."""
    kinds_server.reset()
    return Client(kinds_server)


@pytest.mark.parametrize("store", sorted(KINDS))
def test_volume_names_by_kind(kinds: Client, store: str) -> None:
    volid, _files = KINDS[store]
    path = kinds.create(100, scsi0=f"{store}:1")
    assert kinds.config(path)["scsi0"] == f"{volid},size=1G"
    assert volid in kinds.volumes(store)
    kinds.ok("DELETE", path)
    assert volid not in kinds.volumes(store)


@pytest.mark.parametrize("store", sorted(KINDS))
def test_snapshots_by_kind(kinds: Client, store: str) -> None:
    path = kinds.create(100, scsi0=f"{store}:1")
    expected = "snapshot feature is not available" if KINDS[store][1] else "OK"
    assert kinds.do("POST", f"{path}/snapshot", snapname="s1") == expected


@pytest.mark.parametrize("store", sorted(KINDS))
def test_templates_and_linked_clones_by_kind(kinds: Client, store: str) -> None:
    path = kinds.create(100, scsi0=f"{store}:1" + (",format=qcow2" if KINDS[store][1] else ""))
    kinds.ok("POST", f"{path}/template")
    kinds.ok("POST", f"{path}/clone", newid=101)
    kinds.ok("POST", f"{path}/clone", newid=102, full=1)
    linked, full = (kinds.config(f"/nodes/pve1/qemu/{vmid}")["scsi0"] for vmid in (101, 102))
    assert "base-100-disk-0" not in full
    # A thin volume does not know what it was made from, and lives on without it.
    assert ("base-100-disk-0" in linked) is (store != "thin")
    result = kinds.do("DELETE", path)
    assert ("still in use by linked cloned" in result) is (store != "thin")


@pytest.mark.parametrize(("store", "is_refused"), [("ceph", True), ("dirs", False)])
def test_a_volume_on_a_shared_storage_needs_a_quorum(
    kinds: Client, kinds_server: Simulator, store: str, is_refused: bool
) -> None:
    """pve-storage: Storage.pm, vdisk_alloc, locks the storage; of a shared one in /etc/pve."""
    kinds_server.steer("/cluster", {"quorate": False})
    name = "vm-100-new" if store == "ceph" else "vm-100-new.raw"
    data = {"vmid": 100, "filename": name, "size": "1G"}
    path = f"/nodes/pve1/storage/{store}/content"
    answer = kinds.call("POST", path, data)
    if is_refused:
        assert answer.message.strip() == "cfs-lock 'storage-ceph' error: no quorum!"
    else:
        assert answer.data == "dirs:100/vm-100-new.raw"


@pytest.mark.parametrize(("store", "shared"), [("thin", 0), ("dirs", 0), ("ceph", 1), ("share", 1)])
def test_what_is_shared_is_on_every_node(kinds: Client, store: str, shared: int) -> None:
    assert kinds.get(f"/nodes/pve1/storage/{store}/status")["shared"] == shared
    kinds.create(100, scsi0=f"{store}:1")
    assert bool(kinds.volumes(store, "pve2")) is bool(shared)


def test_the_space_of_a_storage(kinds: Client) -> None:
    before = kinds.get("/nodes/pve1/storage/ceph/status")
    assert before["total"] == before["used"] + before["avail"]
    path = kinds.create(100, scsi0="local-lvm:10")
    entry = next(
        item for item in kinds.get("/nodes/pve1/storage") if item["storage"] == "local-lvm"
    )
    assert entry["active"] == 1
    assert kinds.config(path)["scsi0"].endswith("size=10G")


def test_a_storage_that_is_not_there(kinds: Client) -> None:
    assert (
        kinds.call("GET", "/nodes/pve1/storage/none/content").reason
        == "storage 'none' does not exist"
    )
    answer = kinds.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "scsi0": "none:1"})
    assert "none" in answer.reason or "none" in kinds.wait(answer.data)


def test_defining_and_removing_a_storage(kinds: Client) -> None:
    kinds.post("/storage", storage="more", type="dir", path="/srv/more", content="images,iso")
    assert kinds.get("/storage/more")["path"] == "/srv/more"
    answer = kinds.call("POST", "/storage", {"storage": "more", "type": "dir", "path": "/x"})
    assert answer.reason == "create storage failed: storage ID 'more' already defined"
    kinds.put("/storage/more", nodes="pve1")
    answer = kinds.call("GET", "/nodes/pve2/storage/more/content")
    assert answer.reason == "storage 'more' is not available on node 'pve2'"
    kinds.put("/storage/more", delete="nodes", disable=1)
    assert (
        kinds.call("GET", "/nodes/pve1/storage/more/content").reason == "storage 'more' is disabled"
    )
    kinds.delete("/storage/more")
    assert (
        kinds.call("DELETE", "/storage/more").reason
        == "delete storage failed: storage 'more' does not exist"
    )


def test_filling_the_contents_listing(kinds: Client) -> None:
    kinds.create(100, scsi0="dirs:1,format=qcow2")
    (item,) = kinds.get("/nodes/pve1/storage/dirs/content", vmid=100)
    assert (item["volid"], item["format"], item["size"]) == (
        "dirs:100/vm-100-disk-0.qcow2",
        "qcow2",
        1 << 30,
    )
    assert {
        item["content"] for item in kinds.get("/nodes/pve1/storage/local/content", content="iso")
    } == {"iso"}


def upload(client: Client, name: str, data: bytes, **fields: str) -> str:
    """Upload a file and return how the task ended."""
    files = [(key, (None, value)) for key, value in fields.items()]
    files.append(("filename", (name, data, "application/octet-stream")))  # type: ignore[arg-type]
    answer = client.call("POST", "/nodes/pve1/storage/local/upload", files=files)
    return client.wait(answer.data) if answer.status == 200 else f"{answer.status} {answer.body}"


def test_uploading(pve: Client) -> None:
    data = b"x" * 4096
    assert upload(pve, "my.iso", data, content="iso") == "OK"
    (item,) = (
        item
        for item in pve.get("/nodes/pve1/storage/local/content")
        if item["volid"] == "local:iso/my.iso"
    )
    assert item["size"] == 4096
    good, wrong = hashlib.sha256(data).hexdigest(), "0" * 64
    fields = {"content": "iso", "checksum-algorithm": "sha256"}
    assert upload(pve, "two.iso", data, **fields, checksum=good) == "OK"
    assert "checksum mismatch" in upload(pve, "three.iso", data, **fields, checksum=wrong)
    # The fields have an order, and PVE insists on it.
    assert upload(pve, "two.iso", data, checksum=good, **fields) == "400 None"
    assert "wrong file extension" in upload(pve, "four.exe", data, content="iso")
    pve.ok("DELETE", "/nodes/pve1/storage/local/content/local:iso/my.iso")
    assert "local:iso/my.iso" not in pve.volumes("local")


def test_downloading(pve: Client) -> None:
    url = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
    pve.ok(
        "POST",
        "/nodes/pve2/storage/local/download-url",
        content="import",
        filename="new.qcow2",
        url=url,
    )
    assert "local:import/new.qcow2" in pve.volumes("local", "pve2")
    pve.ok(
        "POST",
        "/nodes/pve2/qemu",
        vmid=100,
        scsi0="ceph:0,import-from=local:import/new.qcow2",
        scsihw="virtio-scsi-pci",
    )
    assert pve.config("/nodes/pve2/qemu/100")["scsi0"].endswith("size=3G")
    result = pve.do(
        "POST",
        "/nodes/pve1/storage/local/download-url",
        content="iso",
        filename="no.iso",
        url="https://example.org/no.iso",
    )
    assert result != "OK"


def test_a_download_and_its_checksum(kinds: Client) -> None:
    call = "/nodes/pve1/storage/local/download-url"
    params = {"content": "iso", "filename": "s.iso", "url": SUMMED, "checksum-algorithm": "sha256"}
    result = kinds.do("POST", call, checksum="0" * 64, **params)
    assert result == f"checksum mismatch: got '{'ab' * 32}' != expect '{'0' * 64}'"
    kinds.ok("POST", call, checksum="ab" * 32, **params)
    kinds.ok("POST", call, checksum="ab" * 32, **params)
    assert "aborting" in kinds.do("POST", call, checksum="0" * 64, **params)
    assert "refusing to override existing file" in kinds.do(
        "POST", call, content="iso", filename="s.iso", url=SUMMED
    )


def test_a_described_file_has_checksums_of_its_own(pve: Client) -> None:
    """Only one checksum of each kind is right: that of `data`, with zeros up to `size`."""
    call = "/nodes/pve2/storage/local/download-url"
    url = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
    params = {"content": "import", "filename": "d.qcow2", "url": url, "checksum-algorithm": "md5"}
    right = hashlib.md5(bytes(335544320), usedforsecurity=False).hexdigest()
    result = pve.do("POST", call, checksum="0" * 32, **params)
    assert result == f"checksum mismatch: got '{right}' != expect '{'0' * 32}'"
    assert "local:import/d.qcow2" not in pve.volumes("local", "pve2")
    pve.ok("POST", call, checksum=right.upper(), **params)


def test_an_image_on_another_node_is_not_there(pve: Client) -> None:
    pve.sim.steer(
        "/volumes/pve2", {"volid": "local:import/debian-13-genericcloud-amd64.qcow2", "gone": True}
    )
    params = {
        "vmid": 100,
        "scsi0": "ceph:0,import-from=local:import/debian-13-genericcloud-amd64.qcow2",
    }
    answer = pve.call("POST", "/nodes/pve2/qemu", params)
    assert answer.status != 200 or pve.wait(answer.data) != "OK"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a/b.raw", "unable to parse volume filename 'a/b.raw'"),
        ("vm-100-disk-0", "unable to parse volume filename 'vm-100-disk-0'"),
        ("snap-x.qcow2", "'snap-x.qcow2' is a snapshot filename, not a volume!"),
    ],
)
def test_names_that_no_image_can_have(pve: Client, name: str, text: str) -> None:
    params = {"vmid": 100, "filename": name, "size": "1M"}
    assert pve.call("POST", "/nodes/pve1/storage/local/content", params).reason == text


@pytest.mark.parametrize(
    ("storage", "volume", "text"),
    [
        ("local", "import/debian-13-genericcloud-amd64.qcow2", "invalid format"),
        ("local", "iso/x.iso", "invalid content type 'iso'"),
        ("ceph", "vm-100-disk-0", "storage does not support the importer API"),
    ],
)
def test_volumes_that_are_not_appliances(pve: Client, storage: str, volume: str, text: str) -> None:
    call = f"/nodes/pve1/storage/{storage}/import-metadata"
    assert pve.call("GET", call, {"volume": volume}).reason == text


def test_backups_are_kept_only_where_they_can_be(pve: Client) -> None:
    assert (
        pve.call("GET", "/nodes/pve1/storage/ceph/prunebackups").reason
        == "storage 'ceph' does not support backups"
    )
    assert pve.call("GET", "/cluster/backup/none").errors == {"id": "No such job 'none'"}
    # PVE/API2/Backup.pm dies again with the text of the error: `die "$@" if ($@)`.
    refused = pve.call("DELETE", "/cluster/backup/none")
    assert (refused.status, refused.reason) == (500, "400 Parameter verification failed.")
    assert "id: No such job 'none'" in refused.text


def test_cluster_files_of_this_suite_are_complete() -> None:
    for path in sorted(Path(DEMO.parent).glob("*.yml")):
        assert set(yaml.safe_load(path.read_text(encoding="utf-8"))) >= {
            "nodes",
            "storages",
            "tokens",
        }


@pytest.fixture
def root(kinds_server: Simulator, kinds: Client) -> Client:
    """root@pam with a ticket: the method has no permissions, so that no other login may call it."""
    return login_as_root(kinds_server)


def copy_of(store: str, volume: str, target: str, node: str = "pve2") -> tuple[str, dict[str, str]]:
    """The path and the parameters of a copy from the first node."""
    path = f"/nodes/pve1/storage/{store}/content/{volume}"
    return path, {"target": target, "target_node": node}


def test_a_copy_to_another_node(kinds: Client, root: Client) -> None:
    """Sources: pve-storage, API2/Storage/Content.pm (copy), Storage.pm (storage_migrate)."""
    iso = "local:iso/debian-13-netinst.iso"
    path, data = copy_of("local", iso, "local:iso/copy.iso")
    refused = kinds.call("POST", path, data)
    assert (refused.status, refused.reason) == (403, "Permission check failed (user != root@pam)")
    assert root.do("POST", path, **data) == "OK"
    assert "local:iso/copy.iso" in kinds.volumes("local", "pve2")
    assert "local:iso/copy.iso" not in kinds.volumes("local", "pve1")
    again = root.do("POST", path, **data)
    assert again.startswith("command 'set -o pipefail && pvesm export local:iso/debian-13-netinst")
    assert again.endswith("-allow-rename 0' failed: exit code 255")
    path, data = copy_of("local", iso, "local:iso/copy.iso", "pve9")
    assert root.do("POST", path, **data).startswith("hostname lookup 'pve9' failed")


@pytest.mark.parametrize(
    ("target", "result"),
    [
        ("thin:vm-100-disk-0", "OK"),
        ("tank:vm-100-disk-0", "OK"),
        ("dirs:100/vm-100-disk-0.raw", "OK"),
        ("dirs:100/vm-100-disk-0.qcow2", "failed: exit code 255"),
        ("ceph:vm-100-disk-7", "OK"),  # shared: PVE ends without a copy
        ("local:backup/a.vma", "cannot migrate from storage type 'dir' to 'dir'"),
    ],
)
def test_copies_of_disks(kinds: Client, root: Client, target: str, result: str) -> None:
    """Sources: the functions volume_export_formats and volume_import of the plugins."""
    store = target.partition(":")[0]
    source = "local:iso/debian-13-netinst.iso"
    if store != "local":
        path = kinds.create(100, scsi0=f"{store}:1")
        source = kinds.config(path)["scsi0"].partition(",")[0]
    path, data = copy_of(store, source, target)
    assert root.do("POST", path, **data).endswith(result)
    is_there = target in kinds.volumes(store, "pve2")
    assert is_there is (result == "OK" and store != "ceph")


def test_a_copy_stays_on_its_storage(root: Client) -> None:
    path, data = copy_of("local", "iso/debian-13-netinst.iso", "dirs:iso/a.iso")
    answer = root.call("POST", path, data)
    assert (answer.status, answer.errors) == (
        400,
        {"volume": "storage ID mismatch (dirs != local)\n"},
    )
