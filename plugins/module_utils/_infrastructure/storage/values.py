# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of storage options, checked and in canonical form (pure).

The rules are the formats of PVE's schema (pve-storage: PVE/Storage/Plugin.pm).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..._foundation.core import propstring, validate
from ..._foundation.resource.values import matching_text
from ..datacenter.property_strings import PropertyString, SubKey, flag, number, show_flag

_CONTENT_TYPES = ("backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl")
_SEPARATORS = re.compile(r"[,;\s]+")
_LOCAL_PATH = re.compile(r"/[-/a-zA-Z0-9_.@]+")
_ANY_PATH = re.compile(r"/[^;()]+")
_VG_NAME = re.compile(r"[a-z0-9][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)
_OPTIONS = re.compile(r"\S+")
_FINGERPRINT = re.compile(r"(?:[A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}")
_BLOCK_SIZE = re.compile(r"[1-9][0-9]*[kKmM]?")
_RETENTION = ("last", "hourly", "daily", "weekly", "monthly", "yearly")
_ABSOLUTE = "Use an absolute path, such as /mnt/data"


absolute_path = {
    option: matching_text(option, _ANY_PATH, "is not an absolute path", _ABSOLUTE)
    for option in ("export", "mountpoint", "subdir", "zfs_base_path")
}
vg_name = {
    option: matching_text(
        option, _VG_NAME, "is not a name of LVM", "Use letters, digits, '-', '_' and '.'"
    )
    for option in ("vgname", "thinpool")
}
_mount_options = matching_text(
    "options", _OPTIONS, "contains blanks", "Separate mount options with commas"
)
fingerprint = matching_text(
    "fingerprint",
    _FINGERPRINT,
    "is not a SHA-256 fingerprint",
    "Write 32 pairs of hexadecimal digits, separated by colons",
)
block_size = matching_text(
    "blocksize", _BLOCK_SIZE, "is not a block size", "Use a number with k or m, such as 16k"
)


def read_mount_options(value: Any) -> str:
    """Return mount options sorted: their order does not matter."""
    return ",".join(sorted(filter(None, str(value or "").split(","))))


def mount_options(value: Any) -> str:
    """Return mount options in canonical form. Raises ValidationFailed for blanks."""
    return read_mount_options(_mount_options(value))


def required_text(check: Callable[[Any], str], option: str) -> Callable[[Any], str]:
    """Return a check that also refuses an empty text."""

    def want(value: Any) -> str:
        text = check(value)
        if not text:
            raise validate.refused(option, text, "is empty", f"Set {option}, or leave it out")
        return text

    return want


def path(value: Any) -> str:
    """Return a path in PVE's form: without repeated and trailing slashes."""
    text = str(value).strip()
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not _LOCAL_PATH.fullmatch(text) or ".." in parts or not parts:
        raise validate.refused("path", text, "is not an absolute path", _ABSOLUTE)
    return "/" + "/".join(parts)


def read_path(value: Any) -> str:
    """Return the path in an answer, in the same form."""
    if not value:
        return ""
    return "/" + "/".join(part for part in str(value).split("/") if part not in ("", "."))


def content(items: Any) -> frozenset[str]:
    """Return content types, without C(none). Raises ValidationFailed."""
    found = frozenset(str(item).strip() for item in items) - {"", "none"}
    unknown = sorted(found.difference(_CONTENT_TYPES))
    if unknown:
        raise validate.refused(
            "content",
            ", ".join(unknown),
            "is not a content type",
            f"Use {', '.join(_CONTENT_TYPES)}",
        )
    return found


def read_content(value: Any) -> frozenset[str]:
    """Return the content types in an answer."""
    return frozenset(str(value or "").split(",")) - {"", "none"}


def send_content(items: frozenset[str]) -> str:
    """Return content types for a request."""
    return ",".join(sorted(items)) or "none"


def hosts(value: Any) -> frozenset[str]:
    """Return addresses from a list, or from the text that PVE stores."""
    if value is None:
        return frozenset()
    text = value if isinstance(value, str) else " ".join(map(str, value))
    return frozenset(item for item in _SEPARATORS.split(text) if item)


def whole(option: str, minimum: int, maximum: int) -> Callable[[Any], str]:
    """Return a function that accepts a whole number within these bounds, or an empty text."""

    def want(value: Any) -> str:
        text = str(value).strip()
        if not text:
            return ""
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not minimum <= int(text) <= maximum:
            raise validate.refused(
                option,
                text,
                "is not a number in its range",
                f"Use a number from {minimum} to {maximum}",
            )
        return str(int(text))

    return want


def show_number(text: str) -> int | None:
    """Return a number as modules report it, None if it is not set."""
    return int(text) if text else None


def mountpoint_flag(value: Any) -> str:
    """Return C(yes), C(no) or the path of the mount point."""
    text = str(value).strip()
    words = {"": "no", "0": "no", "false": "no", "1": "yes", "true": "yes", "on": "yes"}
    return words.get(text.lower(), text)


def send_mountpoint_flag(text: str) -> str | None:
    """Return the flag for a request: None for C(no), which is the default of PVE."""
    return None if text == "no" else text


def directories(value: Any) -> dict[str, str]:
    """Return the directories of content types from the option."""
    found: dict[str, str] = {}
    for name, folder in value.items():
        text = str(folder or "").strip().strip("/")
        if name not in _CONTENT_TYPES:
            raise validate.refused(
                "content_dirs", name, "is not a content type", f"Use {', '.join(_CONTENT_TYPES)}"
            )
        # pve-storage: Plugin.pm, verify_dir_override
        if ".." in text or text.endswith(".") or "," in text or "=" in text:
            raise validate.refused(
                "content_dirs", text, "is not a folder of the storage", "Use a name such as 'iso'"
            )
        if text:
            found[name] = text
    return found


def read_directories(value: Any) -> dict[str, str]:
    """Return the directories in an answer."""
    found = propstring.sub_keys(str(value)) if value else {}
    return {name.strip(): folder.strip().strip("/") for name, folder in found.items()}


def send_directories(value: Mapping[str, str]) -> str | None:
    """Return directories for a request, or None if there are none."""
    return ",".join(f"{name}={value[name]}" for name in sorted(value)) or None


PRUNE_BACKUPS = PropertyString(
    "prune_backups",
    (
        SubKey("keep_all", "keep-all", flag, show_flag),
        *(
            SubKey(f"keep_{word}", f"keep-{word}", number(0, whole=True), show_number)
            for word in _RETENTION
        ),
    ),
)


def retention(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the retention of backups; a count of 0 is the same as no count."""
    texts = PRUNE_BACKUPS.want(value)
    keeps_all = texts.pop("keep-all", "") == "1"
    counts = {key: str(int(text)) for key, text in texts.items() if text and int(text)}
    if keeps_all and counts:
        raise validate.refused(
            "prune_backups",
            ", ".join(sorted(counts)),
            "contradicts keep_all",
            "Set keep_all or numbers, not both",
        )
    if keeps_all or (texts and not counts):
        return {"keep-all": "1"}
    return counts


def read_retention(value: Any) -> dict[str, str]:
    """Return the retention in an answer, in the same form."""
    texts = PRUNE_BACKUPS.read(value)
    counts = {key: text for key, text in texts.items() if key != "keep-all" and text != "0"}
    if texts and not counts:
        return {"keep-all": "1"}
    return counts


def show_retention(value: Mapping[str, str]) -> dict[str, Any]:
    """Return the retention as modules report it: the options that are set."""
    return {key.replace("-", "_"): key == "keep-all" or int(text) for key, text in value.items()}
