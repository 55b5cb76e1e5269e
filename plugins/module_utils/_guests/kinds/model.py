# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest as desired, and a guest as read: the part that VMs and containers share. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._foundation.cluster.quota import Limits, TenantSites
from ..._foundation.cluster.rules import PlacementRules
from ..._foundation.cluster.vmids import VmidAllocator, VmidRange, VmidRanges, comes_early
from .identity import Identity
from .kind import Kind
from .marker import Marker, split_notes

# The number of candidates for a VMID that follows from a name. With half of a range in use, no
# guest gets a later one.
LIKELY = 32


@dataclass(frozen=True)
class GuestSource:
    """The source of a new guest, as the user named it: a VMID, a volume ID or a name.

    `version` is the version of an image, None for its newest version on the node of the guest.
    `snapshot` is the state of the source that is cloned; `storage` and `format` apply to the disks
    of a full clone. `live`: PVE starts the VM while it restores the disks from an archive.
    `in_place`: the archive is of the guest itself, which a failed restore has removed.
    """

    vmid: int | None = None
    volume: str | None = None
    name: str | None = None
    version: str | None = None
    full: bool | None = None
    snapshot: str | None = None
    storage: str | None = None
    format: str | None = None
    live: bool = False
    in_place: bool = False


@dataclass(frozen=True)
class GuestIsolation:
    """The firewall that separates a guest from guests of other tenants.

    `group` is the security group of its tenant. `members` are the addresses that each NIC on a VNet
    of the tenant may use, and `networks` are the names of these VNets by their IDs.
    """

    group: str
    members: Mapping[str, tuple[str, ...]]
    networks: Mapping[str, str]


@dataclass(frozen=True)
class Guest:
    """A desired guest. Options that are missing here stay unchanged."""

    kind: Kind
    name: str | None
    vmid: int | None
    node: str | None
    state: str = "present"
    tenant: str | None = None
    tenant_prefix: str = "tenant_"
    pool: str | None = None  # an empty text for no pool
    only_unowned: bool = False  # no guest with the tag of a tenant may be changed
    adopt: bool = False
    create: bool = True
    blank: bool = False  # whether a new VM may have neither a source nor a disk
    replace_image: bool = False
    replacement: Marker | None = None  # the marker with another image, while its disk is replaced
    source: GuestSource | None = None
    tags: frozenset[str] | None = None
    tags_exact: bool = False
    description: str | None = None
    vmid_ranges: VmidRanges = VmidRanges()
    vmid_choice: str = "by_name"
    rules: PlacementRules = PlacementRules()
    rebalance: bool = False
    shared_sources: frozenset[str] = frozenset()  # names and VMIDs
    limits: Limits | None = None
    # the sites of its tenant; their names are empty unless the quota is over these sites
    sites: TenantSites = field(default=TenantSites(), hash=False)
    # names of storages, networks and cpu_types that its tenant may use; a missing key allows all
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    # None if nothing separates it, or nothing is left to do
    isolation: GuestIsolation | None = None
    # guests that the same run removes; a quota does not count them
    leaving: frozenset[int] = frozenset()
    migrate: bool = True
    reboot: str = "never"
    graceful: bool = False
    force: bool = False
    shutdown_timeout: int = 60

    @property
    def own_tags(self) -> set[str]:
        """The tags that are always wanted: the listed tags, and the tenant's tag."""
        tags = set(self.tags or ())
        if self.tenant_tag:
            tags.add(self.tenant_tag)
        return tags

    @property
    def keeps_other_tags(self) -> bool:
        """Whether the guest keeps tags that are not listed."""
        return self.tags is None or not self.tags_exact

    @property
    def tenant_tag(self) -> str | None:
        return f"{self.tenant_prefix}{self.tenant}".lower() if self.tenant else None

    @property
    def vmids(self) -> VmidAllocator:
        """The VMIDs that a new guest may get."""
        vmid_range = (
            self.vmid_ranges.template if self.state == "template" else self.vmid_ranges.automatic
        )
        return self._vmids_in(vmid_range)

    @property
    def likely_vmids(self) -> frozenset[int] | None:
        """The VMIDs that a guest of this name may have, None if VMIDs do not follow from names."""
        if self.vmid_choice != "by_name":
            return None
        vmid_ranges = (self.vmid_ranges.automatic, self.vmid_ranges.template)
        return frozenset().union(
            *(self._vmids_in(vmid_range).first(LIKELY) for vmid_range in vmid_ranges)
        )

    def may_have_created(self, vmid: int, name: str) -> bool:
        """Return whether a guest of that name for the same tenant may have got the VMID."""
        tag = self.tenant_tag or ""
        vmid_ranges = (self.vmid_ranges.automatic, self.vmid_ranges.template)
        return any(comes_early(vmid, vmid_range, tag, name, LIKELY) for vmid_range in vmid_ranges)

    def _vmids_in(self, vmid_range: VmidRange) -> VmidAllocator:
        return VmidAllocator(
            vmid_range, self.tenant_tag, self.name or "", self.vmid_choice == "by_name"
        )

    @property
    def label(self) -> str:
        """The name of the guest in messages."""
        noun = self.kind.noun
        if self.name and self.vmid:
            return f"{noun} '{self.name}' ({self.vmid})"
        return f"{noun} '{self.name}'" if self.name else f"{noun} {self.vmid}"


@dataclass(frozen=True)
class Actual:
    """The present state of a guest: `live` is the running configuration, `target` the next one."""

    kind: Kind
    vmid: int
    node: str
    status: str  # running, paused, hibernated, stopped, or another state of QEMU
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
        return self.kind.name_in(self.target) or f"{self.kind.noun} {self.vmid}"

    @property
    def identity(self) -> Identity:
        """The fingerprint that distinguishes it from a later guest with its VMID."""
        volumes = self.kind.volumes_in(self.target)
        return self.kind.identity_in(self.live, name=self.name, volumes=volumes)

    @property
    def lock(self) -> str | None:
        return self.live.get("lock")

    @property
    def notes(self) -> str:
        """The notes of the guest without our marker."""
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
        return f"{self.kind.noun} '{self.name}' ({self.vmid}) on node {self.node}"

    @property
    def unnamed(self) -> str:
        """The name of the guest in messages for users who must not see its real name."""
        return f"{self.kind.noun} {self.vmid}"

    @property
    def path(self) -> tuple[str | int, ...]:
        """The segments of its own path in the API."""
        return self.kind.path(self.node, self.vmid)
