"""Files of sections: entries of a type with options, and one digest for the whole file.

Source: pve-common, SectionConfig.pm (check_config, check_value, delete_from_config).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import PveError

MODIFIED = "detected modified configuration - file changed by other user? Try again."


@dataclass(frozen=True)
class SectionType:
    """The options of one type of section; `fixed` ones cannot be changed."""

    name: str
    required: frozenset[str]
    optional: frozenset[str]
    fixed: frozenset[str] = frozenset()

    def check(self, given: Mapping[str, Any], *, create: bool) -> dict[str, Any]:
        """The options in their written form; numbers are numbers."""
        for name in given:
            if not create and name in self.fixed:
                raise PveError(f"can't change value of fixed parameter '{name}'")
            if name not in self.required | self.optional:
                raise PveError(f"unexpected property '{name}'")
        for name in sorted(self.required) if create else ():
            if given.get(name) is None:
                raise PveError(f"missing value for required option '{name}'")
        written = {"type": self.name}
        written.update({name: _number(value) for name, value in given.items()})
        return written

    def delete(self, entry: dict[str, Any], names: Iterable[str], given: Mapping[str, Any]) -> None:
        """Remove options from an entry."""
        for name in names:
            if name not in self.required | self.optional:
                raise PveError(f"no such option '{name}'")
            if name in self.required:
                raise PveError(f"unable to delete required option '{name}'")
            if name in self.fixed:
                raise PveError(f"unable to delete fixed option '{name}'")
            if name in given:
                raise PveError(f"cannot set and delete property '{name}' at the same time!")
            entry.pop(name, None)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


@dataclass
class SectionFile:
    """The entries of one file by their IDs."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of the state of the file."""
        text = json.dumps(self.entries, sort_keys=True)
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def check_digest(self, digest: str | None) -> None:
        """Refuse a change if the state differs from the one the caller read."""
        if digest and digest != self.digest:
            raise PveError(MODIFIED)
