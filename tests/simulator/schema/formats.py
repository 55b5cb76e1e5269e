"""Checks of the named value formats of the Proxmox VE API.

Each raises FormatError with PVE's own text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from .calendar_event import BadEvent, parse_event
from .debian import debian_names


class FormatError(ValueError):
    """A value that does not have the format.

    The text ends as PVE's does, mostly with a line feed.
    """


Check = Callable[[str], object]
FORMATS: dict[str, Check] = {}

SPLIT = re.compile(r"[,;\s\0]+")
TAG = r"[A-Za-z0-9_][A-Za-z0-9_\-+.]*"
CONFIG_ID = r"[A-Za-z][A-Za-z0-9_-]+"
STORAGE_ID = r"[A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]"
USER = r"[^\s:/]+"
REALM = r"[A-Za-z][A-Za-z0-9.\-_]+"
TOKEN = r"[A-Za-z][A-Za-z0-9.\-_]+"
DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"


def split_list(text: object) -> list[str]:
    """The items of a PVE list: separated by commas, semicolons, blanks or NUL."""
    if isinstance(text, list):
        return [str(item) for item in text]
    return [item for item in SPLIT.split(str(text)) if item]


def is_ip(text: str, version: int | None = None) -> bool:
    """Whether the text is an IP address (of that version), without a zone (ParseUtils.pm,
    $IPV6RE).
    """
    if "%" in text:
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return version in (None, address.version)


def is_cidr(text: str, version: int | None = None) -> bool:
    """Whether the text is ADDRESS/PREFIX with a prefix of at least 8 bits."""
    address, slash, prefix = text.partition("/")
    if not slash or not prefix.isdigit() or not is_ip(address, version):
        return False
    return 7 < int(prefix) <= (32 if is_ip(address, 4) else 128)


def _matching(name: str, pattern: str, message: str, flags: int = 0) -> None:
    """Register a format that is one regular expression; {} in the message stands for the value."""
    compiled = re.compile(rf"(?:{pattern})\Z", flags)

    def check(value: str) -> None:
        if not compiled.match(value):
            raise FormatError(message.replace("{}", value) + "\n")

    FORMATS[name] = check


def _valid(name: str, test: Callable[[str], bool], message: str) -> None:
    """Register a format that is one predicate."""

    def check(value: str) -> None:
        if not test(value):
            raise FormatError(message.replace("{}", value) + "\n")

    FORMATS[name] = check


def fmt(name: str) -> Callable[[Check], Check]:
    """Register the decorated check under the name of a format."""

    def register(check: Check) -> Check:
        FORMATS[name] = check
        return check

    return register


_matching("urlencoded", r"[-%a-zA-Z0-9_.!~*'()]*", "invalid urlencoded string: {}")
_matching("pve-configid", CONFIG_ID, "invalid configuration ID '{}'")
_matching("pve-bridge-id", r"[-_.\w]+", "invalid bridge ID '{}'")
_matching("pve-vmid", r"[1-9][0-9]{2,8}", "value does not look like a valid VM ID")
_matching("pve-node", DNS_LABEL.replace("?:", ""), "value does not look like a valid node name")
_matching(
    "mac-addr",
    r"[a-f0-9][02468ace](?::[a-f0-9]{2}){5}",
    "value does not look like a valid unicast MAC address",
    re.IGNORECASE,
)
_matching(
    "mac-prefix",
    r"[a-f0-9][02468ace](?::[a-f0-9]{2}){0,2}(?::[a-f0-9]?)?",
    "value is not a valid unicast MAC address prefix",
    re.IGNORECASE,
)
_matching(
    "dns-name", rf"(?:{DNS_LABEL}\.)*{DNS_LABEL}", "value does not look like a valid DNS name"
)
_ZONES = debian_names()["zones"]
_valid(
    "pve-ct-timezone",
    # `host` is the time zone of the node, UTC and the zones of zone.tab are known, without their
    # aliases (pve-container: LXC/Config.pm, verify_ct_timezone; pve-common: JSONSchema.pm).
    lambda value: value == "host" or value in _ZONES,
    "invalid time zone '{}'",
)
_LEADING = re.compile(r"^.*?(?=-----BEGIN .*?-----)", re.DOTALL)
_PEM = (
    r"-----BEGIN {0}-----\s*(?:[0-9A-Za-z+/]+\s*\n)*[0-9A-Za-z+/]*(?:=\s*\n=|={{0,2}})?"
    r"\s*\n-----END {0}-----\s*"
)


def _pem(name: str, label: str, *, many: bool = False) -> None:
    """Register a PEM format (pve-common: Certificate.pm, check_pem)."""
    one = _PEM.format(label)
    pattern = re.compile(rf"(?:{one}\n*)*{one}" if many else one)

    def test(value: str) -> bool:
        return pattern.fullmatch(_LEADING.sub("", value, count=1)) is not None

    _valid(name, test, "not a valid PEM-formatted string.")


_pem("pem-certificate", "CERTIFICATE")
_pem("pem-certificate-chain", "CERTIFICATE", many=True)
_pem("pem-string", "[^\n]*?")
_matching("pve-tag", TAG, "invalid characters in tag")
_matching(
    "pve-iface", r"[a-zA-Z][a-zA-Z0-9_]{1,20}(?:[:.]\d+)?", "invalid network interface name '{}'"
)
_matching("pve-groupid", r"[A-Za-z0-9.\-_]+", "group name '{}' contains invalid characters")
_matching("pve-roleid", r"[A-Za-z0-9.\-_]+", "role name '{}' contains invalid characters")
_matching("pve-realm", REALM, "value does not look like a valid realm")
_matching(
    "pve-tokenid", rf"{USER}@{REALM}!{TOKEN}", "value '{}' does not look like a valid token ID"
)
_matching("pve-storage-path", r"/.*", "value does not look like a valid absolute path")
_matching("pve-storage-path-in-property-string", r"/[^;,=()]*", "invalid path '{}'")
_matching(
    "ldap-simple-attr",
    r"[a-zA-Z0-9]+",
    "value '{}' does not look like a simple ldap attribute name",
)
_matching(
    "pve-storage-vgname",
    r"[A-Za-z0-9][A-Za-z0-9\-_.]*[A-Za-z0-9]",
    "lvm name '{}' contains illegal characters",
)
_matching(
    "pve-task-status-type", r"(?:ok|error|warning|unknown)", "invalid status '{}'", re.IGNORECASE
)
_matching(
    "disk-size",
    r"\d+(?:\.\d+)?(?:[KMGT](?:iB)?)?",
    "value does not look like a valid disk size: {}",
)
_matching(
    "pve-phys-bits",
    r"host|[89]|[1-5]\d|6[0-4]",
    "value must be an integer between 8 and 64 or 'host'",
)
# Source: pve-manager, Status/Graphite.pm
_matching(
    "graphite-path",
    rf"(?:{DNS_LABEL}\.)*{DNS_LABEL}",
    "value does not look like a valid graphite path",
)
_LABEL = "[a-z0-9][a-z0-9_-]*"
_ALIAS = "[a-z0-9_][a-z0-9_-]*"
# Source: pve-manager, NodeConfig.pm
_matching(
    "pve-acme-domain",
    rf"{_LABEL}(?:\.{_LABEL})+",
    "value '{}' does not look like a valid domain name!",
    re.IGNORECASE,
)
_matching(
    "pve-acme-alias",
    rf"{_ALIAS}(?:\.{_ALIAS})+",
    "value '{}' does not look like a valid alias name!",
    re.IGNORECASE,
)
# Source: pve-manager, API2/Backup.pm
_matching("pve-day-of-week", "mon|tue|wed|thu|fri|sat|sun", "invalid day '{}'")
# Source: pve-network, SDN/Fabrics.pm and SDN/Controllers/IsisPlugin.pm
_matching(
    "pve-sdn-fabric-id",
    "[a-zA-Z0-9][a-zA-Z0-9-]{0,6}[a-zA-Z0-9]?",
    "Fabric ID '{}' contains illegal characters",
)
_matching(
    "pve-sdn-isis-net",
    r"[a-fA-F0-9]{2}(?:\.[a-fA-F0-9]{4}){3,9}\.[a-fA-F0-9]{2}",
    "value does not look like a valid isis net",
)
_matching("pve-ha-resource-id", r"[a-z]+:\S+", "value does not look like a valid ha resource id")
_matching(
    "pve-ha-node",
    r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?::\d+)?",
    "value does not look like a valid ha node",
)
_matching(
    "pve-ha-group-node",
    r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?::\d+)?",
    "value does not look like a valid ha group node",
)
_matching(
    "pve-ha-resource-or-vm-id", r"[a-z]+:\S+|\d+", "value does not look like a valid ha resource id"
)
# Source: pve-common, ParseUtils.pm
_MAIL_USER = r"[\w+\-~]+(?:\.[\w+\-~]+)*"
_MAIL_HOST = r"[a-zA-Z0-9\-]+(?:\.[a-zA-Z0-9\-]+)*"
_matching(
    "email",
    rf"{_MAIL_USER}@{_MAIL_HOST}",
    "value does not look like a valid email address",
    re.ASCII,
)
_matching(
    "email-or-username",
    rf"{_MAIL_USER}(?:@{_MAIL_HOST})?",
    "value does not look like a valid email address or user name",
    re.ASCII,
)
_matching("pve-storage-content", r".*", "")
_valid("ipv4", lambda v: is_ip(v, 4), "value does not look like a valid IPv4 address")
_valid("ipv6", lambda v: is_ip(v, 6), "value does not look like a valid IPv6 address")
_valid("ip", is_ip, "value does not look like a valid IP address")
_valid("CIDRv4", lambda v: is_cidr(v, 4), "value does not look like a valid IPv4 CIDR network")
_valid("CIDRv6", lambda v: is_cidr(v, 6), "value does not look like a valid IPv6 CIDR network")
_valid("CIDR", is_cidr, "value does not look like a valid CIDR network")


def _is_subnet(value: str) -> bool:
    """Whether it is a network, alone or behind a zone (pve-network: SubnetPlugin.pm)."""
    if "/" in value:
        return is_cidr(value)
    parts = value.split("-")
    return len(parts) == 3 and is_cidr(f"{parts[1]}/{parts[2]}")


_valid("pve-sdn-subnet-id", _is_subnet, "value does not look like a valid CIDR network")
_valid(
    "pve-sdn-bgp-rt",
    lambda v: bool(re.fullmatch(r"\d+:\d+", v)) and max(map(int, v.split(":"))) < 1 << 32,
    "value does not look like a valid bgp route-target",
)


def _is_ip_or_link_local(value: str) -> bool:
    """Whether it is an address, or a link-local one with its interface (pve-container:
    LXC/Config.pm, verify_ip_with_ll_iface).
    """
    found = re.fullmatch(r"(fe80:[^%]+)%([a-zA-Z][a-zA-Z0-9_]{1,20}(?:[:.]\d+)?)", value)
    return is_ip(found[1] if found else value)


_valid("lxc-ip-with-ll-iface", _is_ip_or_link_local, "value does not look like a valid IP address")
_valid(
    "pve-ipv4-config",
    lambda v: v in ("dhcp", "manual") or is_cidr(v, 4),
    "value does not look like a valid ipv4 network configuration",
)
_valid(
    "pve-ipv6-config",
    lambda v: v in ("auto", "dhcp", "manual") or is_cidr(v, 6),
    "value does not look like a valid ipv6 network configuration",
)


@fmt("pve-calendar-event")
def _calendar_event(value: str) -> None:
    """A schedule (pve-common: CalendarEvent.pm, pve_verify_calendar_event)."""
    try:
        parse_event(value)
    except BadEvent as error:
        raise FormatError(f"invalid calendar event '{value}' - {error}\n") from None


@fmt("address")
def _address(value: str) -> None:
    if not is_ip(value) and not re.fullmatch(rf"(?:{DNS_LABEL}\.)*{DNS_LABEL}", value):
        raise FormatError(f"value does not look like a valid address: {value}\n")


@fmt("pve-storage-id")
def check_storage_id(value: str) -> None:
    """A storage ID: two characters at least, a letter first, no dash, dot or underscore last."""
    if len(value) < 2:
        raise FormatError(f"storage ID '{value}' cannot be shorter than 2 characters\n")
    if not re.fullmatch(STORAGE_ID, value):
        raise FormatError(f"storage ID '{value}' contains illegal characters\n")


@fmt("pve-volume-id")
def check_volume_id(value: str) -> None:
    """STORAGE:VOLUME."""
    if not re.fullmatch(rf"{STORAGE_ID}:\S(?:.*\S)?", value, re.DOTALL):
        raise FormatError(f"unable to parse volume ID '{value}'\n")


@fmt("pve-volume-id-or-absolute-path")
def _volume_or_path(value: str) -> None:
    if not value.startswith("/"):
        check_volume_id(value)


@fmt("pve-volume-id-or-qm-path")
def _volume_or_qm_path(value: str) -> None:
    if value not in ("none", "cdrom"):
        _volume_or_path(value)


@fmt("pve-userid")
def check_userid(value: str) -> None:
    """NAME@REALM of 3 to 64 characters."""
    if len(value) < 3:
        raise FormatError(f"user name '{value}' is too short\n")
    if len(value) > 64:
        raise FormatError(f"user name '{value}' is too long ({len(value)} > 64)\n")
    if not re.fullmatch(rf"{USER}@{REALM}", value):
        raise FormatError(f"value '{value}' does not look like a valid user name\n")


@fmt("pve-poolid")
def check_poolid(value: str) -> None:
    """Up to three levels of names."""
    levels = value.split("/")
    if len(levels) > 3:
        raise FormatError(f"pool name '{value}' nested too deeply (max levels = 3)\n")
    if not all(re.fullmatch(r"[A-Za-z0-9.\-_]+", level) for level in levels):
        raise FormatError(f"pool name '{value}' contains invalid characters\n")


@fmt("pve-startup-order")
def _startup(value: str) -> None:
    parts = [part for part in value.split(",") if part.strip()]
    if not value or not all(re.fullmatch(r"(?:(?:order=)?|up=|down=)\d+", part) for part in parts):
        raise FormatError("unable to parse startup options\n")


@fmt("pve-hotplug-features")
def _hotplug(value: str) -> None:
    if value in ("0", "1"):
        return
    for feature in split_list(value):
        if feature not in ("network", "disk", "cpu", "memory", "usb", "cloudinit"):
            raise FormatError(f"invalid hotplug feature '{feature}'\n")


@fmt("pve-cpuset")
def _cpuset(value: str) -> None:
    if not re.fullmatch(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", value):
        raise FormatError("unable to parse cpuset option\n")


@fmt("pve-qm-bootdisk")
def _bootdisk(value: str) -> None:
    if not DRIVE_NAME.fullmatch(value):
        raise FormatError(f"invalid boot disk '{value}'\n")


@fmt("pve-vlan-id-or-range")
def _vlan(value: str) -> None:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", value)
    if not found:
        raise FormatError(f"invalid VLAN configuration '{value}'\n")
    tags = [int(tag) for tag in found.groups() if tag]
    for tag in tags:
        if not 2 <= tag <= 4094:
            raise FormatError(f"invalid VLAN tag '{tag}'\n")
    if len(tags) == 2 and tags[0] >= tags[1]:
        raise FormatError(f"VLAN range must go from lower to higher tag '{value}'\n")


def _pair(name: str, inner: str) -> None:
    def check(value: str) -> None:
        if value == "1":
            return
        for part in value.split(":", 1):
            try:
                FORMATS[inner](part)
            except FormatError as error:
                raise FormatError(f"entry '{value}' contains invalid ID - {error}\n\n") from None

    FORMATS[name] = check


_pair("storage-pair", "pve-storage-id")
_pair("bridge-pair", "pve-bridge-id")

CONTENT_TYPES = ("images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import", "none")


@fmt("pve-storage-content")
def _content(value: str) -> None:
    if value not in CONTENT_TYPES:
        raise FormatError(f"invalid content type '{value}'\n")


_matching("pve-storage-options", r"\S+", "invalid options '{}'")
_valid(
    "pve-storage-server",
    lambda v: is_ip(v) or bool(re.fullmatch(rf"(?:{DNS_LABEL}\.)*{DNS_LABEL}", v)),
    "value does not look like a valid server name or IP address",
)


@fmt("pve-storage-portal-dns")
def _portal(value: str) -> None:
    """A host with an optional port, behind a dot after an IPv6 address (parse_host_and_port)."""
    host = re.fullmatch(r"\[([^]]+)\](?::\d+)?", value) or re.fullmatch(
        r"([A-Za-z0-9\-.]+)(?::\d+)?", value
    )
    if host is None and not is_ip(re.sub(r"\.\d+\Z", "", value), 6):
        raise FormatError("value does not look like a valid portal address\n")


@fmt("pve-dir-override")
def _override(value: str) -> None:
    found = re.fullmatch(r"([a-z]+)=([^.]*(?:\.?[^.]+)+)", value)
    if found is not None:
        _content(found[1])
        path = found[2]
        if len(path) < 1023 and all(len(part) < 255 for part in path.split("/")):
            return
    raise FormatError(f"invalid override '{value}'\n")


@fmt("pve-storage-zfs-blocksize")
def _blocksize(value: str) -> None:
    if not value:
        return
    found = re.fullmatch(r"([1-9][0-9]*)([km]?)", value, re.IGNORECASE)
    if found is None:
        raise FormatError(
            f"invalid ZFS blocksize format '{value}'. Use a positive number (no leading zeros) with"
            " an optional 'k' or 'm' suffix.\n"
        )
    size = int(found[1]) << {"": 0, "k": 10, "m": 20}[found[2].lower()]
    if not 512 <= size <= 16 << 20 or size & (size - 1):
        raise FormatError(
            f"value '{value}' is not a valid ZFS blocksize. Must be a power of 2 between 512B and"
            " 16MiB (e.g., 4k, 8k, 16k, 64k, 1m).\n"
        )


@fmt("ipv4mask")
def _mask(value: str) -> None:
    try:
        ipaddress.ip_network(f"0.0.0.0/{value}")
    except ValueError:
        raise FormatError("value does not look like a valid IP netmask\n") from None


DRIVE_NAME = re.compile(
    r"(?:ide[0-3]|sata[0-5]|scsi(?:[12]?\d|30)|virtio(?:\d|1[0-5])|efidisk0|tpmstate0)"
)
BOOT_DEVICE = re.compile(
    r"(?:ide[0-3]|sata[0-5]|scsi(?:[12]?\d|30)|virtio(?:\d|1[0-5])|net(?:[12]?\d|3[01])|usb(?:\d|1[0-3])|hostpci(?:\d|1[0-5]))"
)


@fmt("pve-qm-bootdev")
def _bootdev(value: str) -> None:
    if not BOOT_DEVICE.fullmatch(value):
        raise FormatError(f"invalid boot device '{value}'\n")


def check_named(name: str, value: str) -> bool:
    """Check the value against a named format, also NAME-list and NAME-opt.

    False when it is not one known here.
    """
    check = FORMATS.get(name)
    if check is not None:
        check(value)
        return True
    base, dash, kind = name.rpartition("-")
    if not dash or base not in FORMATS or kind not in ("list", "opt"):
        return False
    if kind == "list":
        for item in split_list(value):
            FORMATS[base](item)
    elif value:
        FORMATS[base](value)
    return True
