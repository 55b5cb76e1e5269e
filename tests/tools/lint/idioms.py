# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds idioms and sentence structures that readers of this repository must read twice.

``python -m tests.tools.lint.idioms`` fails for an idiom that ``idioms.yml`` does not allow, and if
the share of sentence structures (see ``sentences.py``) reaches the limit in ``idioms.yml``. With
``DIRECTORY...`` it lists the hits below these directories only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from tests.tools.lint import sentences
from tests.tools.stage import REPO, source_files

SETTINGS = Path(__file__).with_name("idioms.yml")
SUFFIXES = {".py", ".md", ".yml", ".j2"}
# These files name what they look for.
_SELF = {
    "tests/tools/lint/idioms.py",
    "tests/tools/lint/idioms.yml",
    "tests/tools/lint/sentences.py",
    "tests/unit/test_tools_idioms.py",
    "tests/unit/test_tools_sentences.py",
}

# Each idiom and what to write instead. A blank stands for white space, an underscore or a comment
# mark.
IDIOMS = {
    r"(?:is|are|was|were) no": "is not a, is not, has no, there is no",
    r"shall": "must, can, is, will",
    r"bears?|borne|bearing": "has, carries",
    r"nobody(?:'s)?": "no one, belongs to no tenant",
    r"somebody(?:'s)?": "someone, name who",
    r"wish(?:es|ed)?|\w*wished": "want, desired, InSync",
    r"told": "reported, returned, set",
    r"meanwhile": "since then, in between",
    r"so many|as many as": "at most, the number of",
    r"goes on|go on|went on|going on": "continues, runs",
    r"of ours|of theirs": "name whose",
    r"tells? (?:whether|about|of)": "whether, report, describe",
    r"anew": "again",
    r"begun": "started",
    r"what (?:it|they) should be": "name the desired state",
    r"neither .{1,40} any good": "is rejected",
    r"look at what": "preview, check",
    r"whose it is|whose they are|whose the VM is": "the owner, which tenant owns it",
}
# "There is no such template" is what the first idiom has to become.
_FINE = re.compile(
    r"\bthere[\s_#]+(?:is|are|was|were)[\s_#]+no\b|\bno[\s_#]+longer\b", re.IGNORECASE
)
_PATTERNS = {
    idiom: re.compile(
        rf"(?<![A-Za-z])(?:{idiom})(?![A-Za-z])".replace(" ", r"[\s_#]+"), re.IGNORECASE
    )
    for idiom in IDIOMS
}


@dataclass(frozen=True)
class Finding:
    """One idiom in one file."""

    file: str
    line: int
    idiom: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: '{self.text}'; better: {IDIOMS[self.idiom]}"


def find_idioms(file: str, text: str) -> Iterator[Finding]:
    """Yield what is found in the text of a file."""
    plain = _FINE.sub(lambda match: re.sub(r"\w", "-", match.group()), text)
    for idiom, pattern in _PATTERNS.items():
        for match in pattern.finditer(plain):
            line = plain.count("\n", 0, match.start()) + 1
            yield Finding(file, line, idiom, " ".join(match.group().split()))


def find_in_repository(repo: Path = REPO) -> list[Finding]:
    """Return what is found in the files of the working tree."""
    findings: list[Finding] = []
    for name in source_files(repo):
        if PurePosixPath(name).suffix not in SUFFIXES or name in _SELF:
            continue
        findings.extend(find_idioms(name, (repo / name).read_text(encoding="utf-8")))
    return findings


def split_allowed(
    findings: list[Finding], allowed: list[dict[str, str]]
) -> tuple[list[Finding], list[str]]:
    """Return the findings that are not allowed, and the complaints about the allow-list itself."""
    entries = {(entry["file"], entry["idiom"]) for entry in allowed}
    found = {(finding.file, finding.idiom) for finding in findings}
    left = [finding for finding in findings if (finding.file, finding.idiom) not in entries]
    unused = [
        f"{file}: '{idiom}' is allowed but not there" for file, idiom in sorted(entries - found)
    ]
    unexplained = [
        f"{entry['file']}: '{entry['idiom']}' is allowed without a reason"
        for entry in allowed
        if not entry.get("reason")
    ]
    return left, unused + unexplained


def main(arguments: list[str]) -> int:
    """Print the findings and return 1 if there are too many."""
    settings = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    findings, complaints = split_allowed(find_in_repository(), settings["allowed"])
    shares, hits = sentences.measure(sentences.read_files())
    roots = [argument.rstrip("/") for argument in arguments]
    if roots:
        complaints = []
        findings = [finding for finding in findings if _is_below(finding.file, roots)]
        hits = [hit for hit in hits if _is_below(hit.passage.file, roots)]
        complaints.extend(str(hit) for hit in hits)
    else:
        print("\n".join(str(share) for share in shares))
        complaints.extend(_judge_share(shares[-1], settings["sentences_limit"]))
    lines = [str(finding) for finding in findings]
    print("\n".join([*complaints, *lines, f"{len(findings)} idioms in all"]))
    return 1 if complaints or findings else 0


def _judge_share(total: sentences.Share, limit: float) -> Iterator[str]:
    """Yield a complaint if the share of all rooms reaches the limit (percent)."""
    if total.percent >= limit:
        yield (
            f"{total.percent:.1f} % of the docstrings and comments have a sentence structure that"
            f' must be below {limit} %; ARGS="plugins/modules" lists the hits'
        )


def _is_below(file: str, roots: Sequence[str]) -> bool:
    return any(file == root or file.startswith(f"{root}/") for root in roots)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
