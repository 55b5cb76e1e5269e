"""Maps of storages and bridges: to one target, to the same names, or by source.

Source: pve-common, PVE/JSONSchema.pm (parse_idmap, map_id).
"""

from __future__ import annotations

from ..errors import ParamError
from ..schema.formats import split_list

_FAILED = "failed to parse {} map: {}\n"


class IdMap:
    """The target of each name."""

    def __init__(self, text: str, option: str) -> None:
        self.entries: dict[str, str] = {}
        self.default = ""
        self.identity = False
        self._option = option
        for entry in split_list(text):
            self._add(entry)
        if self.identity and (self.default or self.entries):
            self._refuse("identity mapping cannot be combined with other mappings")

    def _add(self, entry: str) -> None:
        source, colon, target = entry.partition(":")
        if colon and source in self.entries:
            self._refuse(f"duplicate mapping for source '{source}'")
        elif colon:
            self.entries[source] = target
        elif entry == "1":
            self.identity = True
        elif self.default:
            self._refuse("default target ID can only be provided once")
        else:
            self.default = entry

    def _refuse(self, reason: str) -> None:
        what = self._option.removeprefix("target-")
        raise ParamError({self._option: _FAILED.format(what, reason)})

    def target(self, source: str) -> str:
        """The target of a name; a name without an entry keeps itself."""
        return self.entries.get(source) or self.default or source
