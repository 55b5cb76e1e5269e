# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of single VMs, fetched side by side within bounds: one slow or broken guest costs only itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .._api.client import Client
from .._core.errors import FleetError
from .._vm.addresses import Address, AddressRule, agent_addresses, choose_address, cloud_init_addresses, nic_macs
from .hosts import Guest

DETAILS = ("addresses", "config", "snapshots")
# Neither shown nor cached, not even as the stars that PVE sends.
_HIDDEN = frozenset({"cipassword"})
NOT_THE_ANSWER = "malformed answer"


@dataclass(frozen=True)
class Limits:
    """Threads, seconds for one call, seconds for everything, and how old a cached detail may get in seconds.

    0 means without end for the last two.
    """

    workers: int = 10
    call: float = 5.0
    whole: float = 120.0
    max_age: float = 3600.0


def fetch_details(
    clients: Mapping[str, Client],
    guests: Sequence[Guest],
    kinds: Collection[str],
    limits: Limits,
    earlier: Mapping[str, Mapping[str, Any]] | None = None,
    offline: Collection[tuple[str, str]] = (),
) -> dict[str, dict[str, Any]]:
    """Return the details of each guest by its key, with the reason of each failure under `errors`; never raises.

    A guest without an agent is not asked for addresses when its configuration is known to say so; a stopped one never.
    `earlier` are details that may be out of date: their snapshots are kept where the digest of the configuration,
    which PVE makes of the snapshots too, is still the same. `offline` are pairs of site and node that are not asked.
    """
    if not guests or not kinds:
        return {}
    clock = next(iter(clients.values())).clock
    end = clock.monotonic() + limits.whole if limits.whole > 0 else float("inf")

    def one(guest: Guest) -> dict[str, Any]:
        left = end - clock.monotonic()
        wanted = [kind for kind in kinds if kind != "addresses" or _may_have_addresses(guest)]
        if (guest.site, guest.node) in offline:
            return {"errors": dict.fromkeys(wanted, f"node {guest.node} is offline")}
        if left <= 0:
            return {"errors": dict.fromkeys(wanted, f"not asked within {limits.whole:g} s")}
        return _details(clients[guest.site], guest, wanted, min(limits.call, left), (earlier or {}).get(guest.key, {}))

    with ThreadPoolExecutor(max_workers=max(1, min(limits.workers, len(guests)))) as pool:
        return dict(zip((guest.key for guest in guests), pool.map(one, guests), strict=True))


def _details(
    client: Client, guest: Guest, kinds: Collection[str], timeout: float, earlier: Mapping[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    errors: dict[str, str] = {}
    base = ("nodes", guest.node, "qemu", guest.vmid)

    def ask(kind: str, *rest: str) -> Any:
        try:
            answer = client.get(*base, *rest, timeout=timeout, tries=1)
            if is_wellformed(kind, answer):
                return answer
            errors[kind] = NOT_THE_ANSWER
        except FleetError as error:
            errors[kind] = error.reason or error.message
        except Exception as error:  # a mistake about one guest must not cost the others
            errors[kind] = f"{type(error).__name__}: {error}"
        return None

    config = None
    if "config" in kinds:
        config = ask("config", "config")
        if isinstance(config, Mapping):
            found["config"] = {key: value for key, value in config.items() if key not in _HIDDEN}
    if "snapshots" in kinds:
        if "snapshots" in earlier and _digest(config) and _digest(config) == _digest(earlier.get("config")):
            found["snapshots"] = earlier["snapshots"]
        else:
            found["snapshots"] = _snapshots(ask("snapshots", "snapshot"))
    if "addresses" in kinds:
        if config is not None and not _has_agent(config):
            errors["addresses"] = "agent not configured"
        else:
            answer = ask("addresses", "agent", "network-get-interfaces")
            found["addresses"] = [one.as_list() for one in agent_addresses(answer)]
    return {**found, **({"errors": errors} if errors else {})}


def is_wellformed(kind: str, answer: Any) -> bool:
    """Return whether an answer is of the form that PVE gives it; what a guest's agent says comes through as it is."""
    if kind == "config":
        return isinstance(answer, Mapping)
    if kind == "addresses" and isinstance(answer, Mapping):
        answer = answer.get("result")
    return isinstance(answer, list)


def _may_have_addresses(guest: Guest) -> bool:
    return guest.status == "running" and not guest.template


def _digest(config: Any) -> str:
    return str(config.get("digest") or "") if isinstance(config, Mapping) else ""


def _snapshots(answer: Any) -> list[dict[str, Any]]:
    """Return what is shown of each snapshot, without the entry that stands for the present."""
    return [
        {key: snapshot.get(key) for key in ("name", "description", "snaptime", "parent")}
        for snapshot in (answer if isinstance(answer, list) else [])
        if isinstance(snapshot, Mapping) and snapshot.get("name") != "current"
    ]


def detail_variables(details: Mapping[str, Any], kinds: Collection[str], rule: AddressRule) -> dict[str, Any]:
    """Return the variables for what was fetched (pure)."""
    variables: dict[str, Any] = {}
    config: Mapping[str, Any] = details.get("config") or {}
    if "config" in kinds:
        variables["proxmox_config"] = config
    if "snapshots" in kinds:
        variables["proxmox_snapshots"] = details.get("snapshots") or []
    if "addresses" in kinds:
        macs = nic_macs(config)
        addresses = [Address(*one) for one in details.get("addresses") or ()]
        chosen = choose_address(addresses, rule, macs)
        if chosen is None and config:
            planned = cloud_init_addresses(config)
            chosen = choose_address(planned, rule, macs)
            addresses = addresses or planned
        variables["proxmox_addresses"] = [address.address for address in addresses]
        variables["proxmox_interfaces"] = [
            {"name": one.interface, "mac": one.mac, "address": one.address, "prefix": one.prefix} for one in addresses
        ]
        variables["proxmox_address"] = chosen.address if chosen else None
        variables["proxmox_address_source"] = chosen.source if chosen else None
    if details.get("errors"):
        variables["proxmox_errors"] = dict(details["errors"])
    return variables


def _has_agent(config: Any) -> bool:
    text = str(config.get("agent") or "0") if isinstance(config, Mapping) else "0"
    first = text.partition(",")[0]
    return first.removeprefix("enabled=").strip() in ("1", "yes", "on", "true")
