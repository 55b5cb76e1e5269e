# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rooms of a VM pass to each other: the wish, what is there, the steps and the plan. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._cluster.quota import Limits
from .._cluster.rules import Rules
from .._cluster.vmids import Bands

# What a mapping says of a sub-key that shall go.
REMOVE = None
# More sockets than this are possible, but hardly meant.
MOST_SOCKETS = 4


@dataclass(frozen=True)
class Disk:
    """One drive as wished. `size` is in bytes; `options` are PVE's sub-keys, REMOVE takes one out."""

    slot: str
    state: str = "present"
    size: int | None = None
    storage: str | None = None
    format: str | None = None
    import_from: str | None = None
    volume: str | None = None  # an existing volume to attach, such as an ISO
    options: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_cdrom(self) -> bool:
        return self.options.get("media") == "cdrom"


@dataclass(frozen=True)
class Snippet:
    """User data as wished, the file it belongs into, and the volume that PVE knows it by."""

    content: str = field(repr=False)
    file: str
    volume: str


@dataclass(frozen=True)
class Source:
    """Where a new VM comes from, as the user said it: a VMID, a volume ID or a name.

    `snapshot` is the state of the source that is cloned; `storage` and `format` are those of the disks of a full clone.
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
    """A VM as wished, in PVE's own keys and canonical values. What is not here is left alone."""

    name: str | None
    vmid: int | None
    node: str | None
    state: str = "present"
    tenant: str | None = None
    tenant_prefix: str = "tenant_"
    pool: str | None = None
    adopt: bool = False
    source: Source | None = None
    plain: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    disks: tuple[Disk, ...] = ()
    tags: frozenset[str] | None = None
    tags_exact: bool = False
    description: str | None = None
    ssh_keys: tuple[str, ...] | None = None
    password: str | None = field(default=None, repr=False)
    update_password: str = "on_create"
    disks_exact: bool = False
    nics_exact: bool = False
    snippet: Snippet | None = None
    cloud_init_drive: str | None = None  # slot
    cloud_init_storage: str | None = None
    default_storage: str = "local-lvm"
    bands: Bands = Bands()
    rules: Rules = Rules()
    rebalance: bool = False
    shared_sources: frozenset[str] = frozenset()  # names and VMIDs
    limits: Limits | None = None
    migrate: bool = True
    reboot: str = "never"
    graceful: bool = False
    force: bool = False
    shutdown_timeout: int = 60

    @property
    def advice(self) -> tuple[str, ...]:
        """What a person should hear of the wish although it can be fulfilled."""
        sockets = int(self.plain.get("sockets") or 1)
        if sockets <= MOST_SOCKETS:
            return ()
        return (f"{self.label}: guests are seldom made for {sockets} sockets; give it cores instead",)

    @property
    def tenant_tag(self) -> str | None:
        return f"{self.tenant_prefix}{self.tenant}".lower() if self.tenant else None

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
    def template(self) -> bool:
        return self.live.get("template") == "1"

    @property
    def label(self) -> str:
        return f"VM '{self.name}' ({self.vmid}) on node {self.node}"

    @property
    def path(self) -> tuple[str | int, ...]:
        """The segments of its own path in the API."""
        return ("nodes", self.node, "qemu", self.vmid)


@dataclass(frozen=True)
class Step:
    """One request of a plan. `reread`: what follows depends on facts that only exist once this step is done."""

    action: str
    summary: str
    method: str
    path: tuple[str | int, ...]
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    is_task: bool = True
    reread: bool = False
    timeout: int | None = None


# What a diff shows beside the options of the VM's configuration.
_NO_OPTIONS = frozenset(("vmid", "node", "pool", "status", "restarted"))


@dataclass(frozen=True)
class Plan:
    """Ordered steps and what they change. An empty plan makes no write."""

    steps: tuple[Step, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    pending: tuple[str, ...] = ()  # keys that will wait for a stop when the plan is done
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    @property
    def keys(self) -> set[str]:
        """The options of the VM's configuration that it changes."""
        return {*self.before, *self.after} - _NO_OPTIONS

    @property
    def summaries(self) -> list[str]:
        return [step.summary for step in self.steps]
