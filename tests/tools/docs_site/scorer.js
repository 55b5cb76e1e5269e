/* Copyright (c) 2026, the pve.fleet authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How the search ranks pages: guides and roles first, then the reference, then pages for developers. A guide with a title of
 * one word is about that word, so it comes before pages that mention it.
 * The numbers beside `score` are those of Sphinx. */
var Scorer = {
  score: (result) => {
    const [page, title, , , score] = result;
    if (/^(docs\/(decisions|architecture|benchmarks|releasing)|CONTRIBUTING|CODE_OF_CONDUCT)/.test(page)) return score / 20;
    if (/^reference\/.*_(module|inventory|role|callback|lookup)$/.test(page)) return score + 5;
    if (/^docs\//.test(page) && /^\w+$/.test(title)) return score + 13;
    if (/^(docs|roles)\//.test(page)) return score + 10;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
