"""The table of pve-storage's own test of pruning, src/test/prune_backups_test.pm, as facts."""

from __future__ import annotations

DAY, HOUR = 86400, 3600
BASE = 1577881101  # 2020-01-01 12:18:21 UTC
# Ages in seconds of the backups of a VM; the third is protected.
AGES = (585 * DAY + HOUR, DAY + HOUR, DAY + HOUR - 30, DAY + HOUR - 60, HOUR, 0)
PROTECTED = 2
K, R = "keep", "remove"
_ZEROS = {"hourly": 0, "daily": 0, "weekly": 0, "monthly": 0}

# A rule, and the marks of these backups without the protected one.
CASES: tuple[tuple[dict[str, int], tuple[str, ...]], ...] = (
    ({"last": 3}, (R, R, K, K, K)),
    ({"weekly": 2}, (K, R, R, R, K)),
    ({"hourly": 0, "daily": 1, "weekly": 1, "monthly": 1}, (K, R, K, R, K)),
    ({"hourly": 4, "daily": 0}, (K, R, K, K, K)),
    ({**_ZEROS, "yearly": 2}, (R, R, K, R, K)),
    ({"last": 2, "hourly": 2}, (K, R, K, K, K)),
    ({"last": 1, "monthly": 2}, (K, R, K, R, K)),
    ({"monthly": 3}, (K, R, K, R, K)),
    ({"last": 1, "daily": 1, "weekly": 1}, (K, R, K, R, K)),
    ({**_ZEROS, "last": 1, "daily": 1, "weekly": 1, "yearly": 0}, (K, R, K, R, K)),
    ({"daily": 2}, (R, R, K, R, K)),
    ({"weekly": 1, "monthly": 1}, (K, R, R, R, K)),
    ({"weekly": 1, "yearly": 1}, (K, R, R, R, K)),
    ({}, (K, K, K, K, K)),
    ({**_ZEROS, "last": 0, "yearly": 0}, (K, K, K, K, K)),
)
