"""The likeness of two answers: Proxmox VE's and the simulator's."""

from __future__ import annotations

import re
from typing import Any

UPID = re.compile(
    r"UPID:[A-Za-z0-9-]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[^:\s]*:[^:\s]*:[^:\s]+:"
)
MAC = re.compile(r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}")
SHA = re.compile(r"\b[0-9a-f]{40}\b")
# The name of a backup has the time in it.
BACKUP = re.compile(r"(vzdump-(?:qemu|lxc)-\d+-)\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d")

_UNKNOWN_HOST = "Temporary failure in name resolution|Name or service not known"
# Values that vary by run, by host or by the line of PVE's source.
_BLANKED = (
    (UPID, "UPID"),
    (MAC, "MAC"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (SHA, "SHA"),
    (re.compile(r"\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d"), "TIME"),
    (re.compile(r"/var/lib/[A-Za-z0-9/_.-]*?/images/"), "/PATH/images/"),
    (re.compile(r" at /\S+ line \d+.*"), ""),
    (re.compile(r"process \d+|pid \d+|PID \d+"), "pid N"),
    (re.compile(r"ctime=\d+"), "ctime=N"),
    (re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"), "MAC"),
    (re.compile(r"\$[56]\$\S+"), "CRYPT"),
    (re.compile(f"failed: (?:{_UNKNOWN_HOST})"), "failed: UNKNOWN HOST"),
    (re.compile(rf"info for: (\S+): (?:{_UNKNOWN_HOST})"), r"info for: \1: UNKNOWN HOST"),
)

# Values that depend on the clock, the load, the host or chance: only their presence and type count.
VOLATILE = frozenset(
    """
    cpu mem disk uptime netin netout diskread diskwrite pid pstart starttime endtime ctime
    snaptime time used avail total free maxdisk maxmem memhost freemem digest vmgenid
    smbios1 meta t n used_fraction loadavg swap rootfs memory-usage ksm cpuinfo kversion
    current-kernel pveversion wait idle boot-info repoid blockstat ballooninfo nics
    proxmox-support running-machine running-qemu clipboard balloon_min pressurecpusome
    pressurecpufull pressureiosome pressureiofull pressurememorysome pressurememoryfull
    qmpstatus ssl_fingerprint nodeid ip level ticket CSRFPreventionToken upid saved size
    vmstate approx-size password cert port available hardware-address statistics out-data
    pid exclude_zombies release version cgroup-mode maxcpu shares value_mac
    """.split()
)
# Keys whose presence depends on the host rather than on PVE's rules.
OPTIONAL = frozenset(
    """
    pressurecpusome pressurecpufull pressureiosome pressureiofull pressurememorysome
    pressurememoryfull memhost cgroup-mode proxmox-support blockstat ballooninfo nics
    running-machine running-qemu freemem balloon diskread diskwrite netin netout level saved
    t approx-size clipboard status_age
    """.split()
)
# By these, elements of two lists are found to mean the same.
IDENTITY = (
    "vmid",
    "volid",
    "key",
    "snapname",
    "name",
    "storage",
    "iface",
    "id",
    "node",
    "poolid",
    "userid",
    "roleid",
    "tokenid",
    "realm",
    "path",
    "subdir",
    "sid",
    "rule",
    "group",
    "n",
)

# (differences in shape, differences in value)
Differences = tuple[list[str], list[str]]


def normal(text: object) -> str:
    """A text without the parts that vary."""
    result = str(text)
    for pattern, blank in _BLANKED:
        result = pattern.sub(blank, result)
    return result.strip()


def identity(element: Any) -> str:
    """The identity of an element of a list."""
    if not isinstance(element, dict):
        return normal(element)
    return "|".join(f"{key}={normal(element[key])}" for key in IDENTITY if key in element)


def pair(recorded: list[Any], actual: list[Any]) -> tuple[list[tuple[Any, Any]], int]:
    """Pairs of elements that are about the same, and how many had no partner."""
    rest = list(actual)
    pairs = []
    for element in recorded:
        about = identity(element)
        index = next((index for index, other in enumerate(rest) if identity(other) == about), None)
        if index is not None:
            pairs.append((element, rest.pop(index)))
    return pairs, len(recorded) - len(pairs) + len(rest)


def _kind(value: Any) -> type:
    """The type, of which JSON has one for all numbers."""
    return int if isinstance(value, (bool, float)) else type(value)


def compare(recorded: Any, actual: Any, path: str = "") -> Differences:
    """The differences between two answers."""
    expected, found = _kind(recorded), _kind(actual)
    if expected is not found:
        return [f"{path}: {expected.__name__} expected, got {found.__name__}"], []
    if isinstance(recorded, dict):
        return _compare_objects(recorded, actual, path)
    if isinstance(recorded, list):
        return _compare_lists(recorded, actual, path)
    if normal(recorded) != normal(actual):
        return [], [f"{path}: {normal(recorded)[:120]!r} expected, got {normal(actual)[:120]!r}"]
    return [], []


def _compare_objects(recorded: dict[str, Any], actual: dict[str, Any], path: str) -> Differences:
    shape: list[str] = []
    value: list[str] = []
    for key in sorted(recorded.keys() ^ actual.keys()):
        if key not in OPTIONAL:
            shape.append(
                f"{path}.{key} " + ("missing" if key in recorded else "not in PVE's answer")
            )
    for key in recorded.keys() & actual.keys():
        more_shape, more_value = _compare_members(key, recorded[key], actual[key], f"{path}.{key}")
        shape += more_shape
        value += more_value
    return shape, value


def _compare_members(key: str, recorded: Any, actual: Any, path: str) -> Differences:
    if key == "content" and isinstance(recorded, str) and isinstance(actual, str):
        if sorted(recorded.split(",")) != sorted(actual.split(",")):
            return [], [f"{path}: {recorded!r} expected, got {actual!r}"]
        return [], []
    if key not in VOLATILE:
        return compare(recorded, actual, path)
    if _kind(recorded) is not _kind(actual):
        return [f"{path}: {type(recorded).__name__} expected, got {type(actual).__name__}"], []
    return [], []


def _compare_lists(recorded: list[Any], actual: list[Any], path: str) -> Differences:
    shape: list[str] = []
    value: list[str] = []
    pairs, odd = pair(recorded, actual)
    if odd:
        value.append(f"{path}: {odd} elements without a partner")
    for one, other in pairs:
        more_shape, more_value = compare(one, other, f"{path}[{identity(one)[:40]}]")
        shape += more_shape
        value += more_value
    return shape, value


def compare_refusals(recorded: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """The differences between the bodies of two refusals."""
    found = []
    messages = normal(recorded.get("message", "")), normal(actual.get("message", ""))
    if messages[0] != messages[1]:
        found.append(f"message {messages[0]!r} expected, got {messages[1]!r}")
    errors = _errors(recorded), _errors(actual)
    if errors[0] != errors[1]:
        found.append(f"errors {errors[0]} expected, got {errors[1]}")
    return found


def _errors(body: dict[str, Any]) -> dict[str, str]:
    return {name: normal(text) for name, text in (body.get("errors") or {}).items()}
