# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names an estate gives to things: sizes (classes), networks and storages become plain VM options
(pure).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.validation import check_type_dict

from ..._cluster.allocation import THICK, THIN
from ..._core import validate
from ..._core.errors import ConfigurationError, ValidationFailed
from ..._core.options import check_options
from ..._spec.fleet import without_defaults
from ..._spec.vm_options import hardware_spec
from .layers import lay_over
from .values import without_left_out

# What each name means where the user's own map does not say otherwise; vmbr* and VNet names mean
# themselves.
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "lan": {"bridge": "vmbr0"},
    "default": {"bridge": "vmbr0"},
    "dmz": {"bridge": "vmbr1"},
    "mgmt": {"bridge": "vmbr2"},
    "management": {"bridge": "vmbr2"},
}

_NETWORK_KEYS = frozenset(
    "bridge vlan trunks firewall mtu rate queues model gateway gateway6 link_down".split()
)
_CLOUD_INIT = hardware_spec()["cloud_init"]["options"]
_CLASS_SECRETS = tuple(name for name, rule in _CLOUD_INIT.items() if rule.get("no_log"))
_CLOUD_INIT_DEFAULTS = {
    name: rule["default"] for name, rule in _CLOUD_INIT.items() if "default" in rule
}
_NOT_STATIC = (None, "", "dhcp", "auto")
_STORAGE_KEYS = frozenset("storage type format cache ssd discard iothread backup replicate".split())


def resolve(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the module's params with class, network and storage class names replaced by what they
    stand for.

    What the VM says itself wins over its class, what a NIC or disk says over its network or storage
    class. Raises ConfigurationError for a name that no map has, ValidationFailed for a map of the
    wrong shape.
    """
    options = _with_class(without_left_out(params))
    networks = _maps(options.get("networks"), "networks", _NETWORK_KEYS, shorthand="bridge")
    storages = _maps(
        options.get("storage_classes"), "storage_classes", _STORAGE_KEYS, shorthand="storage"
    )
    if options.get("nics") is not None:
        known = {**NETWORKS, **networks}
        options["nics"] = [_nic(item, known) for item in options["nics"]]
    if options.get("disks") is not None:
        options["disks"] = [_disk(item, storages) for item in options["disks"]]
    return options


def _with_class(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options over those of their class.

    Defaults of Ansible within cloud_init do not count as given.
    """
    label = options.get("class")
    if not label:
        return options
    own = dict(options)
    cloud_init = own.get("cloud_init")
    if isinstance(cloud_init, Mapping):
        own["cloud_init"] = {
            key: value
            for key, value in cloud_init.items()
            if value != _CLOUD_INIT_DEFAULTS.get(key)
        }
    return {**own, **lay_over(class_options(label, own.get("classes") or {}), own)}


def class_options(label: str, classes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a class, checked and converted as Ansible does it with those of the
    module.

    Raises ConfigurationError for a class that is not there and ValidationFailed for options that a
    class cannot have.
    """
    if label not in classes:
        raise _unknown("class", label, classes)
    content = classes[label]
    if not isinstance(content, Mapping):
        raise validate.refused(
            f"classes.{label}",
            content,
            "is not a dictionary",
            "Give it options such as cores and memory",
        )
    spec = {
        **without_defaults(hardware_spec()),
        "source": {"type": "str"},
        "full": {"type": "bool"},
    }
    try:
        return without_left_out(check_options(spec, content))
    except ValidationFailed as error:
        raise ValidationFailed(
            attempted=f"classes.{label} was refused",
            answer=error.answer,
            next_step="A class takes the options of a VM that are not its name, place or state",
            reason="classes",
        ) from None


def class_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in the classes of a task's arguments, and of its VMs', which nothing has
    checked yet.
    """
    found: set[str] = set()
    vms = arguments.get("vms")
    for said in (arguments, *(vms if isinstance(vms, list) else ())):
        for content in _as_dict(_as_dict(said).get("classes")).values():
            cloud_init = _as_dict(_as_dict(content).get("cloud_init"))
            found |= {str(cloud_init[name]) for name in _CLASS_SECRETS if cloud_init.get(name)}
    return found


def _as_dict(value: Any) -> Mapping[str, Any]:
    try:
        said: Mapping[str, Any] = check_type_dict(value)
    except (TypeError, ValueError):
        return {}
    return said


def _nic(item: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    label = item.get("network")
    if not label:
        return dict(item)
    if item.get("bridge"):
        raise validate.refused(
            "nics", label, "and a bridge are both given", "Name the network or the bridge"
        )
    if label not in known:
        if label.startswith("vmbr"):
            return {**item, "bridge": label}
        raise _unknown("network", label, known)
    return _over(known[label], item, ip=item.get("ip"), ip6=item.get("ip6"))


def _disk(item: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    label = item.get("storage_class")
    if not label:
        return dict(item)
    if label not in known:
        raise _unknown("storage class", label, known)
    found = dict(known[label])
    kind = found.get("type")
    if kind not in (None, THIN, THICK):
        raise validate.refused(
            f"storage_classes.{label}.type", kind, "is not a type", f"Use {THIN} or {THICK}"
        )
    if kind == THIN:  # else it would become as large as a thick one in time
        found.setdefault("discard", True)
    return _over(found, item)


def _over(
    base: Mapping[str, Any], own: Mapping[str, Any], **addresses: str | None
) -> dict[str, Any]:
    """Lay what the item says over what its name stands for.

    A gateway only counts beside a static address.
    """
    given = {key: value for key, value in own.items() if value is not None}
    merged = {**own, **base, **given}
    for gateway, address in (("gateway", "ip"), ("gateway6", "ip6")):
        if gateway not in base or given.get(gateway):
            continue
        if addresses.get(address) in _NOT_STATIC:
            merged[gateway] = None
    return merged


def _maps(
    value: Any, option: str, keys: frozenset[str], *, shorthand: str | None
) -> dict[str, Mapping[str, Any]]:
    """Return a map of names; a plain string stands for `shorthand` (a network for its bridge)."""
    found: dict[str, Mapping[str, Any]] = {}
    for label, content in (value or {}).items():
        if isinstance(content, str):
            content = {shorthand: content}
        if not isinstance(content, Mapping):
            raise validate.refused(
                f"{option}.{label}",
                content,
                "is not a dictionary",
                f"Give it keys such as {sorted(keys)[0]}",
            )
        wrong = sorted(set(content) - keys)
        if wrong:
            raise ValidationFailed(
                attempted=f"{option}.{label} was refused",
                answer=f"unknown keys {', '.join(wrong)}",
                next_step=f"Use {', '.join(sorted(keys))}",
                reason=option,
            )
        found[label] = content
    return found


def _unknown(kind: str, label: str, known: Mapping[str, Any]) -> ConfigurationError:
    return ConfigurationError(
        attempted=f"The {kind} {label!r} could not be resolved",
        answer=f"known are {', '.join(sorted(known))}" if known else "none is defined",
        next_step=f"Name one of them or define {label!r}",
        reason=f"unknown {kind}",
    )
