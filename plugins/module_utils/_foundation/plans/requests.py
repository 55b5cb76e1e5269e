# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The requests of a plan in a form that can be kept, compared and shown (pure)."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from ..api.request import encode
from ..core.propstring import sub_keys

# Parts of values that each run chooses: the marker at the end of the notes of a guest (decision
# 0001) except its image, the comment in the notes of a node (0028), the reservation of the file for
# the login of a tenant, and the identity of a new VM.
_OF_A_RUN = {
    "comment": re.compile(r", run [0-9a-f]+(?= \[pve\.fleet: )"),
    "description": re.compile(
        r"\n?<!-- pve\.fleet(?::| maintenance | maintained )(?:[^>]*?( image=[^ >]+))?[^>]* -->\s*\Z"
    ),
    "smbios1": re.compile(r"(?<=uuid=)[0-9a-f-]{36}"),
}
# The digest of a reading also differs if the change does not depend on the difference, and each run
# has its own lock of SDN. A guest that moves takes its local disks and its connections with it.
_NOT_KEPT = frozenset(
    ("digest", "lock-token", "release-lock", "with-local-disks", "with-conntrack-state")
)
_NODE = 2  # the place of the node in a path
# In place of a node in the path of a planned request: the guest may be on any node.
ANY = "*"
# In place of a value that a run chooses later, such as an archive that it makes itself.
LATER = "<chosen by the run>"
# In place of the name of a volume that PVE chooses: storage and VMID are known.
_ASSIGNED = re.compile(r"\*-(\d+)-disk-\*")
_VOLUME = r"(?:[^\s,:]+/)?(?:vm|subvol)-{}-disk-\d+(?:\.[a-z0-9]+)?"
_DELETE = "delete"
# PVE changes a configuration by PUT, or in a task by POST (qemu-server: API2/Qemu.pm,
# update_vm_async).
_CONFIG = "/config"
# The VMID in the path of a guest.
_OF_A_GUEST = re.compile(r"/nodes/[^/]+/[a-z]+/(\d+)/")
# Requests that go with any other of their area: the cloud-init drive gets the configuration of its VM,
# and a run releases its lock and takes back its own pending changes.
_COMPANIONS = re.compile(
    r"PUT /nodes/[^/]+/[a-z]+/\d+/cloudinit"
    r"|(?:POST|DELETE) /cluster/sdn/(?:lock|rollback)"
    r"|DELETE /nodes/[^/]+/network"
)
_AREAS = re.compile(
    r"/cluster/sdn|/nodes/[^/]+/network|(?P<guest>/nodes/[^/]+/[a-z]+/\d+)/(?:config|cloudinit)\Z"
)
# Steps that write a file beside the cluster: the content can have secrets that no option marks.
_FILE = "FILE"
# Steps that stand for the writes of a guest's firewall below their path: these are planned from a
# reading when the step is carried out.
STAND_IN = "FIREWALL"
# The beginning of a hash in place of a secret.
HASHED = "secret:"


class Secrets:
    """Replaces secrets by a keyed hash: equal secrets have equal hashes, and a guess cannot
    be tested without the key.
    """

    def __init__(self, key: bytes, values: Collection[str]) -> None:
        self._key = key
        self._values = frozenset(filter(None, values))

    def hide(self, text: str) -> str:
        """Return the text, or its hash if it contains a secret."""
        if any(value in text for value in self._values):
            return self.hash(text)
        return text

    def hide_all(self, value: Any) -> Any:
        """Return a value of arguments without secrets, and without options that are not set."""
        if isinstance(value, Mapping):
            found = {str(key): self.hide_all(one) for key, one in value.items()}
            return {key: one for key, one in found.items() if one is not None}
        if isinstance(value, (list, tuple)):
            return [self.hide_all(one) for one in value]
        hidden = None if value is None else self.hide(str(value))
        return value if hidden == str(value) else hidden

    def hash(self, text: str) -> str:
        """Return the keyed hash of a text."""
        return HASHED + hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class PlannedRequest:
    """A request of a plan, without secrets and without values that differ in each run."""

    method: str
    path: str
    data: Mapping[str, Any]
    summary: str = ""

    def is_like(self, other: PlannedRequest) -> bool:
        """Return whether both have the same method and path. An approved path can have any node."""
        return self.method == other.method and other.path in (self.path, self.path_on_any_node)

    @property
    def path_on_any_node(self) -> str:
        """The path with any node in place of its node."""
        parts = self.path.split("/")
        parts[_NODE : _NODE + 1] = [ANY]
        return "/".join(parts)

    @property
    def created_path(self) -> str:
        """The path of the guest that this request creates, empty if it creates none."""
        vmid = self.data.get("vmid")
        return f"{self.path}/{vmid}" if self.method == "POST" and vmid else ""

    def is_among(self, approved: Iterable[PlannedRequest]) -> bool:
        """Return whether approved requests have the effect of this one.

        A run that completes an interrupted one sets the same values by other PUT requests.
        """
        known = list(approved)
        if _COMPANIONS.fullmatch(f"{self.method} {self.path}"):
            areas = (area_of(self.path), area_of(self.path_on_any_node))
            if any(area_of(one.path) in areas for one in known):
                return True
        alike = [one for one in known if self.is_like(one)]
        if self.method != "PUT":
            return any(_is_part(self.data, one.data) for one in alike)
        guest = _OF_A_GUEST.search(self.path)
        own = f"vm-{guest[1]}-" if guest else ""
        return bool(alike) and all(
            any(_has(one.data, key, value, own) for one in alike)
            for key, value in self.data.items()
        )


def area_of(path: str) -> str:
    """Return the part of the API to which a path belongs, in which requests can go with others: all of
    SDN, the network of a node, the configuration of a guest; any other path is its own area.
    """
    found = _AREAS.match(path)
    if not found:
        return path
    return f"{found['guest']}{_CONFIG}" if found["guest"] else found[0]


def parents_of(path: str) -> list[str]:
    """Return the paths above a path."""
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(2, len(parts))]


def planned_request(
    method: str,
    path: tuple[str | int, ...],
    data: Mapping[str, Any],
    secrets: Secrets,
    summary: str = "",
) -> PlannedRequest:
    """Return a request of a plan in the form that is kept."""
    if method == _FILE:
        kept: dict[str, Any] = {key: secrets.hash(str(value)) for key, value in data.items()}
    else:
        kept = {}
        for key, value in encode(data).items():
            if key not in _NOT_KEPT:
                kept[key] = _kept(key, value, secrets)
    place = "/" + "/".join(map(str, path))
    if place.endswith(_CONFIG) and method == "POST":
        method = "PUT"
    return PlannedRequest(method, place, kept, summary)


def _kept(key: str, value: Any, secrets: Secrets) -> Any:
    if isinstance(value, list):
        return [secrets.hide(item) for item in value]
    pattern = _OF_A_RUN.get(key)
    if pattern:
        value = pattern.sub(lambda found: "".join(filter(None, found.groups())), value)
    return secrets.hide(value)


def _is_part(now: Mapping[str, Any], planned: Mapping[str, Any]) -> bool:
    """Return whether both are equal, or lists of now are parts of planned lists: a bulk action for
    the guests that are left.
    """
    if now.keys() != planned.keys():
        return False
    for key, value in now.items():
        if planned[key] == LATER:
            continue
        is_list = isinstance(value, list) and isinstance(planned[key], list)
        if not (set(value) <= set(planned[key]) if is_list else value == planned[key]):
            return False
    return True


def _has(data: Mapping[str, Any], key: str, value: Any, own: str) -> bool:
    """Return whether approved data has a value. `own` begins the names of the guest's volumes."""
    if key == _DELETE:  # PVE also removes a text that is set to an empty one
        empty = {name for name, text in data.items() if text == ""}
        return set(str(value).split(",")) <= empty.union(str(data.get(key, "")).split(","))
    if key not in data:
        return False
    planned, now = str(data[key]), str(value)
    if _ASSIGNED.search(planned):
        return planned == now or _fits(planned, now)
    return planned == now or _is_assigned(planned, now, own)


def assigned_volume(storage: str, vmid: int) -> str:
    """Return the text in a plan for a volume of a guest whose name PVE chooses."""
    return f"{storage}:*-{vmid}-disk-*"


def _fits(planned: str, now: str) -> bool:
    """Return whether the difference is the names of volumes that PVE has chosen."""
    texts, vmids = _ASSIGNED.split(planned)[::2], _ASSIGNED.findall(planned)
    volumes = [_VOLUME.format(vmid) for vmid in vmids]
    pattern = "".join(chain(*zip_longest(map(re.escape, texts), volumes, fillvalue="")))
    return re.fullmatch(pattern, now) is not None


def _is_assigned(planned: str, now: str, own: str) -> bool:
    """Return whether PVE has assigned the difference to a new guest: the MAC address of a
    NIC, the name of a volume that it has copied.
    """
    before, after = sub_keys(planned), sub_keys(now)
    first, volume = before.pop("", ""), after.pop("", "")
    if not volume:
        after.pop(first, None)  # the model of a NIC, with its address
    if "hwaddr" not in before:
        after.pop("hwaddr", None)
    if before != after:
        return False
    same_storage = first.partition(":")[0] == volume.partition(":")[0]
    was_own, is_own = (
        bool(own) and one.rpartition("/")[2].rpartition(":")[2].startswith(own)
        for one in (first, volume)
    )
    return volume in ("", first) or (same_storage and is_own and not was_own)
