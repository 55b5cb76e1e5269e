"""The configured and the running networks, and the lock of both.

Source: pve-network, Network/SDN.pm (pending_config, lock_sdn_config, commit_config).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..cluster.sections import SectionFile
from ..core.api import Ctx
from ..errors import ApiError, PveError
from ..schema.formats import split_list

# The files that an apply takes over.
_SEEN = ("zones", "vnets", "subnets", "controllers")
APPLIED = (*_SEEN, "fabrics", "fabric_nodes")
_WRONG_TOKEN = "invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."
Entries = dict[str, dict[str, Any]]


@dataclass
class Sdn:
    """The files by name, their running state, and the token of the lock's holder. `addresses` are
    those that the address management of PVE knows, by zone and network.
    """

    files: dict[str, SectionFile] = field(default_factory=dict)
    running: dict[str, Entries] = field(default_factory=dict)
    token: str | None = None
    addresses: dict[str, dict[str, Entries]] = field(default_factory=dict)
    not_reloaded: set[str] = field(default_factory=set)  # nodes that run an older version

    def file(self, name: str) -> SectionFile:
        """The configured entries of a kind."""
        return self.files.setdefault(name, SectionFile())

    def entries(self, name: str) -> Entries:
        """The configured entries of a kind by their IDs."""
        return self.file(name).entries

    def apply(self) -> None:
        """Apply the configuration."""
        self.running = {name: copy.deepcopy(self.entries(name)) for name in APPLIED}

    def roll_back(self) -> None:
        """Restore the running state as the configuration."""
        for name in APPLIED:
            self.file(name).entries = copy.deepcopy(self.running.get(name, {}))

    def zones_on(self, node: str) -> dict[str, str]:
        """The status of each zone that runs on a node (pve-network: SDN/Zones.pm, status)."""
        status = "pending" if node in self.not_reloaded else "available"
        found: dict[str, str] = {}
        for name, zone in sorted(self.running.get("zones", {}).items()):
            nodes = split_list(str(zone.get("nodes") or ""))
            if not nodes or node in nodes:
                found[name] = status
        return found

    @property
    def has_pending(self) -> bool:
        """Whether anything is configured that does not run. PVE does not look at fabrics (SDN.pm,
        has_pending_changes).
        """
        return any("pending" in row for name in _SEEN for row in self.pending(name).values())

    def pending(self, name: str) -> Entries:
        """The running state, with its differences from the configuration."""
        running, configured = self.running.get(name, {}), self.entries(name)
        rows: Entries = {}
        for ident in sorted(running):
            rows[ident] = _changed(running[ident], configured.get(ident))
        for ident in sorted(configured.keys() - running.keys()):
            rows[ident] = _new(configured[ident])
        return rows


_PLAIN = ("type", "vnet")


def _new(entry: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {key: entry[key] for key in _PLAIN if key in entry}
    row["state"] = "new"
    row["pending"] = {key: value for key, value in entry.items() if key not in _PLAIN}
    return row


def _changed(running: dict[str, Any], configured: dict[str, Any] | None) -> dict[str, Any]:
    row = dict(running)
    if configured is None:
        return {**row, "state": "deleted", "pending": {}}
    pending = {key: "deleted" for key in running if key not in configured}
    for key, value in configured.items():
        if key not in _PLAIN and value != running.get(key):
            pending[key] = value
    if pending:
        row.update(state="changed", pending=pending)
    return row


def sdn_of(ctx: Ctx) -> Sdn:
    """The networks of the cluster."""
    found: Sdn | None = ctx.cluster.sections.get("sdn")
    if found is None:
        found = Sdn()
        # The file of address managements has its own of PVE from the start.
        found.entries("ipams")["pve"] = {"type": "pve"}
        ctx.cluster.sections["sdn"] = found
    return found


@contextmanager
def locked(ctx: Ctx, attempted: str, token: str | None) -> Iterator[Sdn]:
    """Hold the configuration during a change; refuse who has not the token of the lock.

    While nothing is locked, any token is taken.
    """
    sdn = sdn_of(ctx)
    before = copy.deepcopy(sdn.files)
    try:
        if sdn.token is not None and token != sdn.token:
            raise PveError(_WRONG_TOKEN)
        yield sdn
    except ApiError as error:
        sdn.files = before
        raise PveError(f"{attempted}: {error.text}") from None


def view(ctx: Ctx, name: str, p: dict[str, Any]) -> tuple[Entries, str | None]:
    """The entries that a request asks for, and the digest of the file."""
    sdn = sdn_of(ctx)
    if p.get("pending"):
        return sdn.pending(name), None
    if p.get("running"):
        return sdn.running.get(name, {}), None
    return sdn.entries(name), sdn.file(name).digest
