# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rooms of a VM pass to each other: the desired VM, what exists, the steps and the plan.

Data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._cluster.quota import Limits
from .._cluster.rules import Rules
from .._cluster.vmids import Band, Bands, Numbers, comes_early
from .._guest.marker import Marker, split_notes

# The value of a sub-key that is to be removed.
REMOVE = None
# As many VMIDs of its order as a VM may have got: with half of a band in use, no VM gets a later
# one.
LIKELY = 32
# More sockets than this are possible, but hardly meant.
MOST_SOCKETS = 4


@dataclass(frozen=True)
class Disk:
    """One drive as desired.

    `size` is in bytes; `options` are PVE's sub-keys, REMOVE takes one out.
    """

    slot: str
    state: str = "present"
    size: int | None = None
    storage: str | None = None
    format: str | None = None
    import_from: str | None = None
    volume: str | None = None  # an existing volume to attach, such as an ISO
    allocation: str | None = None  # thin or thick, as its storage class asks for
    options: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_cdrom(self) -> bool:
        return self.options.get("media") == "cdrom"

    @property
    def has_content(self) -> bool:
        """Whether anything is asked for that only a disk has."""
        return any((self.size, self.storage, self.import_from, self.format))


@dataclass(frozen=True)
class Snippet:
    """User data as desired, the file it belongs into, and the volume that PVE knows it by."""

    content: str = field(repr=False)
    file: str
    volume: str


@dataclass(frozen=True)
class Source:
    """Where a new VM comes from, as the user said it: a VMID, a volume ID or a name.

    `snapshot` is the state of the source that is cloned; `storage` and `format` are those of the
    disks of a full clone.
    """

    vmid: int | None = None
    volume: str | None = None
    name: str | None = None
    full: bool | None = None
    snapshot: str | None = None
    storage: str | None = None
    format: str | None = None


@dataclass(frozen=True)
class Desired:
    """A VM as desired, in PVE's own keys and canonical values. What is not here is left alone."""

    name: str | None
    vmid: int | None
    node: str | None
    state: str = "present"
    tenant: str | None = None
    tenant_prefix: str = "tenant_"
    pool: str | None = None  # an empty text for none
    adopt: bool = False
    source: Source | None = None
    scalars: Mapping[str, str] = field(default_factory=dict)
    property_strings: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    disks: tuple[Disk, ...] = ()
    tags: frozenset[str] | None = None
    tags_exact: bool = False
    description: str | None = None
    ssh_keys: tuple[str, ...] | None = None
    password: str | None = field(default=None, repr=False)
    update_password: str = "on_create"
    default_agent: bool = True  # whether a new VM that says nothing of it gets the guest agent
    disks_exact: bool = False
    nics_exact: bool = False
    snippet: Snippet | None = None
    cloud_init_drive: str | None = None  # slot
    cloud_init_storage: str | None = None
    default_storage: str = "local-lvm"
    bands: Bands = Bands()
    vmid_choice: str = "by_name"
    rules: Rules = Rules()
    rebalance: bool = False
    shared_sources: frozenset[str] = frozenset()  # names and VMIDs
    limits: Limits | None = None
    # VMs that the same run removes; a quota does not count them
    leaving: frozenset[int] = frozenset()
    migrate: bool = True
    reboot: str = "never"
    graceful: bool = False
    force: bool = False
    shutdown_timeout: int = 60

    @property
    def advice(self) -> tuple[str, ...]:
        """Warnings about what is possible and seldom meant."""
        sockets = int(self.scalars.get("sockets") or 1)
        if sockets <= MOST_SOCKETS:
            return ()
        return (
            f"{self.label}: guests are seldom made for {sockets} sockets; give it cores instead",
        )

    @property
    def slots(self) -> set[str]:
        """The slots of the drives that are named."""
        return {disk.slot for disk in self.disks}

    @property
    def own_tags(self) -> set[str]:
        """The tags that are wanted in any case: those that are listed, and the tenant's."""
        tags = set(self.tags or ())
        if self.tenant_tag:
            tags.add(self.tenant_tag)
        return tags

    @property
    def keeps_other_tags(self) -> bool:
        """Whether the VM keeps tags that are not listed."""
        return self.tags is None or not self.tags_exact

    @property
    def tenant_tag(self) -> str | None:
        return f"{self.tenant_prefix}{self.tenant}".lower() if self.tenant else None

    @property
    def numbers(self) -> Numbers:
        """The VMIDs that a new VM may get."""
        band = self.bands.template if self.state == "template" else self.bands.automatic
        return self._numbers_in(band)

    @property
    def likely_vmids(self) -> frozenset[int] | None:
        """The VMIDs that a VM of this name may have got.

        None where its number does not follow from it.
        """
        if self.vmid_choice != "by_name":
            return None
        bands = (self.bands.automatic, self.bands.template)
        return frozenset().union(*(self._numbers_in(band).first(LIKELY) for band in bands))

    def may_have_made(self, vmid: int, name: str) -> bool:
        """Return whether a VM of that name for the same tenant may have got the number."""
        tag = self.tenant_tag or ""
        bands = (self.bands.automatic, self.bands.template)
        return any(comes_early(vmid, band, tag, name, LIKELY) for band in bands)

    def _numbers_in(self, band: Band) -> Numbers:
        return Numbers(band, self.tenant_tag, self.name or "", self.vmid_choice == "by_name")

    @property
    def label(self) -> str:
        """How messages call this VM."""
        if self.name and self.vmid:
            return f"VM '{self.name}' ({self.vmid})"
        return f"VM '{self.name}'" if self.name else f"VM {self.vmid}"


@dataclass(frozen=True)
class Actual:
    """A VM as it is: `live` is what runs now, `target` what PVE will run after the next stop."""

    vmid: int
    node: str
    status: str  # running, paused, hibernated, stopped, or what else QEMU says of itself
    live: Mapping[str, str]
    target: Mapping[str, str]
    digest: str | None = None
    pool: str | None = None
    uptime: int = 0
    listed: bool = False  # whether the power state comes from the listing, which lags

    @property
    def running(self) -> bool:
        return self.status not in ("stopped", "hibernated")

    @property
    def name(self) -> str:
        return self.target.get("name") or f"VM {self.vmid}"

    @property
    def lock(self) -> str | None:
        return self.live.get("lock")

    @property
    def notes(self) -> str:
        """Its notes without our marker."""
        notes, _marker = split_notes(self.target.get("description"))
        return notes

    @property
    def marker(self) -> Marker:
        """The marker in its notes."""
        _notes, marker = split_notes(self.target.get("description"))
        return marker

    @property
    def template(self) -> bool:
        return self.live.get("template") == "1"

    @property
    def label(self) -> str:
        return f"VM '{self.name}' ({self.vmid}) on node {self.node}"

    @property
    def path(self) -> tuple[str | int, ...]:
        """The segments of its own path in the API."""
        return ("nodes", self.node, "qemu", self.vmid)
