# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each call answers, as far as this collection reads it (data).

Source: the declared `returns` of the calls in PVE's API (9.2, and 8.4 where it differs), and
recorded answers. A needed key is one without which a row says nothing: what it is, and which one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .forms import (
    ByType,
    Form,
    Option,
    Record,
    either,
    flag,
    like,
    moment,
    name,
    number,
    optional,
    rows,
    scalar,
    text,
    unchanged,
    values,
    vmid,
    whole,
)

_FIGURES = dict.fromkeys(
    "maxcpu cpus maxmem mem memhost maxdisk disk diskread diskwrite netin netout uptime".split(),
    whole,
)
_GUEST: Mapping[str, Form] = {
    **_FIGURES,
    **dict.fromkeys("name status qmpstatus tags pool lock hastate".split(), text),
    "cpu": number,
    "template": flag,
}
_NODE: Mapping[str, Form] = {**_FIGURES, "cpu": number, "status": text, "hastate": text}
_PLACED: Mapping[str, Form] = {"vmid": vmid, "node": name}
_STORED: Mapping[str, Form] = {"storage": name, "node": name}
_RESOURCES = rows(
    ByType(
        qemu=Record(_PLACED, _GUEST),
        lxc=Record(_PLACED, _GUEST),
        node=Record({"node": name}, _NODE),
        storage=Record(
            _STORED,
            {
                "disk": whole,
                "maxdisk": whole,
                "shared": flag,
                "status": text,
                "plugintype": text,
                "content": text,
            },
        ),
        pool=Record({"pool": name}, {}),
    )
)
_STANDING = rows(
    ByType(
        cluster=Record({}, {"name": text, "quorate": flag}),
        node=Record({"name": name}, {"online": flag, "local": flag, "ip": text, "nodeid": whole}),
    )
)
_HA = rows(
    ByType(
        quorum=Record({}, {"quorate": flag}),
        master=Record({}, {"node": text}),
        fencing=Record({}, {"armed-state": text}),
        service=Record(
            {"sid": name}, dict.fromkeys("node state request_state status".split(), text)
        ),
    )
)
_HA_MANAGER = Record(
    {},
    {
        "manager_status": Record({}, {"node_status": values(text)}),
        "lrm_status": values(Record({}, {"mode": text})),
    },
)
_CLUSTER_OPTIONS = Record(
    {},
    {
        **dict.fromkeys(
            "crs tag-style user-tag-access bwlimit migration next-id ha".split(),
            either(unchanged, text, dict),
        ),
        **dict.fromkeys("description console keyboard language mac_prefix".split(), text),
        "registered-tags": either(rows(text), text),
    },
)
_TASK: Mapping[str, Form] = {
    **dict.fromkeys("node type id user tokenid status exitstatus".split(), text),
    "starttime": moment,
    "endtime": moment,
}
_TASKS = rows(Record({"upid": name}, _TASK))
_USAGE = Record({}, {"total": whole, "used": whole, "free": whole})
_NODE_STATUS = Record(
    {},
    {
        "cpuinfo": Record({}, {"cpus": whole, "model": text}),
        "memory": _USAGE,
        "rootfs": _USAGE,
        "current-kernel": Record({}, {"release": text}),
        "loadavg": rows(number),
        "uptime": whole,
        "cpu": number,
        "pveversion": text,
        "kversion": text,
    },
)
# The configuration of a guest is a file of options, each on a line.
_OPTIONS: Mapping[str, Form] = {
    **dict.fromkeys("name tags description lock agent".split(), text),
    **dict.fromkeys("cores sockets vcpus balloon".split(), like("[0-9]{0,18}", "a whole number")),
    "memory": like("(?:(?:current=)?[0-9]{1,18}(?:,.*)?)?", "an amount of memory"),
}
_OPTION = like("[A-Za-z0-9_-]{1,64}", "the name of an option")
_CONFIG = values(scalar, _OPTIONS, _OPTION)
_PENDING = rows(Option(_OPTION, _OPTIONS, scalar, ("value", "pending")))
_STATUS = Record({"status": name}, {**_GUEST, "vmid": vmid})
_SNAPSHOTS = rows(
    Record(
        {"name": name},
        {
            "parent": text,
            "description": text,
            "snapstate": text,
            "snaptime": moment,
            "vmstate": flag,
            "running": flag,
        },
    )
)
_NAMES = rows(text)
_REFUSED_NODE = Record(
    {},
    {
        "unavailable_storages": _NAMES,
        "unavailable-resources": _NAMES,
        "unavailable_resources": _NAMES,
        "blocking-ha-resources": rows(either(unchanged, unchanged)),
    },
)
_MIGRATION = Record(
    {},
    {
        "running": flag,
        "local_resources": _NAMES,
        "mapped-resources": _NAMES,
        "allowed_nodes": _NAMES,
        "not_allowed_nodes": values(_REFUSED_NODE),
        "local_disks": rows(
            Record(
                {"volid": name},
                {"cdrom": flag, "is_vmstate": flag, "referenced_in_snapshot": values(unchanged)},
            )
        ),
    },
)
_VOLUME: Mapping[str, Form] = {
    "content": text,
    "format": text,
    "vmid": whole,
    "size": whole,
    "approximate-size": whole,
    "ctime": moment,
}
_STORAGE: Mapping[str, Form] = {
    **dict.fromkeys("type content nodes preallocation path".split(), text),
    **dict.fromkeys("shared sparse snapshot-as-volume-chain disable".split(), flag),
}
_POOL = Record(
    {},
    {
        "poolid": name,
        "comment": text,
        "members": rows(
            ByType(
                qemu=Record({"vmid": vmid}, {}),
                lxc=Record({"vmid": vmid}, {}),
                openvz=Record({"vmid": vmid}, {}),
                storage=Record({"storage": name}, {}),
            )
        ),
    },
)
_TOKEN: Mapping[str, Form] = {"privsep": flag, "expire": moment, "comment": text}
_OWN_TOKENS = rows(Record({"tokenid": name}, _TOKEN))
_USER: Mapping[str, Form] = {
    **dict.fromkeys("firstname lastname email comment keys".split(), text),
    "enable": flag,
    "expire": moment,
    "groups": either(_NAMES, text),
}
_GROUP: Mapping[str, Form] = {
    "comment": text,
    "users": text,
    "members": either(_NAMES, text),
}
_ENTRY: Mapping[str, Form] = {"path": name, "type": name, "ugid": name, "roleid": name}
# A token that is changed without a new secret has no value (pve-access-control, update_token_info).
_CHANGED_TOKEN = Record({}, {**_TOKEN, "value": name, "full-tokenid": text})

_VM = "nodes/*/qemu/*"
READS: Mapping[str, Form] = {
    "version": Record({"version": name}, {}),
    "cluster/resources": _RESOURCES,
    "cluster/status": _STANDING,
    "cluster/tasks": _TASKS,
    "cluster/nextid": scalar,
    "cluster/options": _CLUSTER_OPTIONS,
    "cluster/ha/status/current": _HA,
    "cluster/ha/status/manager_status": _HA_MANAGER,
    "nodes": rows(Record({"node": name}, _NODE)),
    "nodes/*/status": _NODE_STATUS,
    "nodes/*/network": rows(Record({"iface": name}, {})),
    "nodes/*/qemu": rows(Record({"vmid": vmid}, _GUEST)),
    f"{_VM}/status/current": _STATUS,
    f"{_VM}/config": _CONFIG,
    f"{_VM}/pending": _PENDING,
    f"{_VM}/snapshot": _SNAPSHOTS,
    f"{_VM}/snapshot/*/config": _CONFIG,
    f"{_VM}/feature": Record({}, {"hasFeature": flag}),
    f"{_VM}/migrate": _MIGRATION,
    # What the agent says comes from the guest: who reads it takes anything.
    f"{_VM}/agent/*": unchanged,
    "nodes/*/tasks": _TASKS,
    "nodes/*/tasks/*/status": Record({"status": name}, _TASK),
    "nodes/*/tasks/*/log": rows(Record({}, {"t": text, "n": whole})),
    "nodes/*/storage/*/content": rows(Record({"volid": name}, _VOLUME)),
    "nodes/*/storage/*/content/*": Record({}, _VOLUME),
    "storage": rows(Record({"storage": name}, _STORAGE)),
    "pools": rows(_POOL),
    "access/users": rows(Record({"userid": name}, {**_USER, "tokens": _OWN_TOKENS})),
    "access/users/*": Record(
        {}, {**_USER, "tokens": either(_OWN_TOKENS, values(Record({}, _TOKEN)))}
    ),
    "access/users/*/token/*": Record({}, _TOKEN),
    "access/groups": rows(Record({"groupid": name}, _GROUP)),
    "access/groups/*": Record({}, _GROUP),
    "access/roles": rows(Record({"roleid": name}, {"privs": text, "special": flag})),
    "access/roles/*": values(flag),
    "access/acl": rows(Record(_ENTRY, {"propagate": flag})),
    "access/domains": rows(
        Record({"realm": name, "type": name}, {"comment": text, "tfa": text, "default": flag})
    ),
    "access/permissions": values(values(flag)),
}
"""The form of the answer to a GET, by its path; a star stands for one name."""

WRITES: Mapping[str, Form] = {"access/users/*/token/*": optional(_CHANGED_TOKEN)}
"""The same for other methods, where the answer is read."""

TASK_OR_NOTHING = optional(like("(UPID:.*)?", "the ID of a task"))
"""What writes to a node answer: the ID of a task, or null."""


def _nested(forms: Mapping[str, Form]) -> dict[tuple[int, str], list[tuple[list[str], Form]]]:
    """Return the forms by the number of segments and the first one."""
    found: dict[tuple[int, str], list[tuple[list[str], Form]]] = {}
    for path, form in forms.items():
        parts = path.split("/")
        found.setdefault((len(parts), parts[0]), []).append((parts, form))
    return found


_READS, _WRITES = _nested(READS), _nested(WRITES)


def form_of(method: str, segments: Sequence[str | int]) -> Form | None:
    """Return the form of an answer, or None where any answer will do."""
    if method == "GET":
        return next(_matching(_READS, segments), None)
    other = TASK_OR_NOTHING if segments[0] == "nodes" else None
    return next(_matching(_WRITES, segments), other)


def _matching(
    forms: Mapping[tuple[int, str], Sequence[tuple[list[str], Form]]],
    segments: Sequence[str | int],
) -> Iterator[Form]:
    for parts, form in forms.get((len(segments), str(segments[0])), ()):
        if all(part in ("*", one) for part, one in zip(parts, segments, strict=True)):
            yield form
