# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The directory of metered use: a directory for each site, with a file for each day."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from ..._foundation.core import validate
from ..._foundation.core.errors import ConfigurationError
from ..._foundation.core.files import directory_lock, read_parsed, replace_file
from ..report.model import DAY
from .document import DayUse, day_in, day_of, day_text, days_with, sample_in, sample_text
from .model import Sample, Window

_MODE, _OF_DIRECTORIES = 0o640, 0o750
_STATE, _SUFFIX = "last.json", ".json"
_NAMELESS = "_"  # the directory of a site without a name


class UsageStore:
    """The files of all sites. Each file is replaced as a whole, the last sample after the days."""

    def __init__(self, path: str) -> None:
        """Raises ValidationFailed for a path that is not absolute."""
        if not os.path.isabs(path):
            step = "Give an absolute path, since Ansible runs in a directory of its own"
            raise validate.refused("path", path, "is not absolute", step)
        self._path = path

    @contextmanager
    def locked(self, site: str) -> Iterator[None]:
        """Hold the lock of a site. Raises ConfigurationError if its directory cannot be written."""
        directory = self._directory(site)
        try:
            os.makedirs(directory, _OF_DIRECTORIES, exist_ok=True)
            with directory_lock(os.path.join(directory, _STATE)):
                yield
        except OSError as error:
            raise unusable(directory, error.strerror or str(error)) from error

    def last(self, site: str) -> Sample | None:
        """Return the last sample of a site, None without one. Raises ConfigurationError."""
        return read_parsed(os.path.join(self._directory(site), _STATE), sample_in, unusable)

    def days(self, site: str, start: int, end: int) -> dict[str, DayUse]:
        """Return the days of a site between two times that have a file. Raises ConfigurationError."""
        found: dict[str, DayUse] = {}
        for moment in range(start // DAY * DAY, end, DAY):
            name = day_of(moment)
            day = read_parsed(os.path.join(self._directory(site), name + _SUFFIX), day_in, unusable)
            if day is not None:
                found[name] = day
        return found

    def save(self, site: str, window: Window | None, sample: Sample) -> None:
        """Write the use of a window, then the sample that ends it. Raises ConfigurationError."""
        if window is not None:
            starts = [span.start for span in window.spans]
            starts += [lack.start for lack in window.missing]
            earlier = self.days(site, min([window.start, *starts]), window.end)
            for day in days_with(earlier, window):
                self._write(site, day.day + _SUFFIX, day_text(site, day))
        self._write(site, _STATE, sample_text(site, sample))

    def _directory(self, site: str) -> str:
        name = quote(site, safe="")
        if name[:1] in (".", _NAMELESS):
            name = f"%{ord(name[0]):02X}{name[1:]}"
        return os.path.join(self._path, name or _NAMELESS)

    def _write(self, site: str, name: str, text: str) -> None:
        path = os.path.join(self._directory(site), name)
        try:
            replace_file(path, text, _MODE)
        except OSError as error:
            raise unusable(path, error.strerror or str(error)) from error


def unusable(path: str, why: str) -> ConfigurationError:
    """Return the error for a file or directory of metered use."""
    return ConfigurationError(
        f"Could not use the files of metered use: {path}: {why}",
        "Repair it, or move it away: the use of its time is then missing",
        "unusable file",
    )
