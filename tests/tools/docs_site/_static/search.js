/* Copyright (c) 2026, the pve.fleet authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The search that answers while you type. A browser reads its index from a server only: a page that is opened as a file keeps
 * the search of Sphinx. */
const added = (tag, attributes) => new Promise((loaded) => {
  document.head.append(Object.assign(document.createElement(tag), attributes, { onload: loaded }));
});

addEventListener("DOMContentLoaded", async () => {
  const place = document.getElementById("live-search");
  if (!place || !location.protocol.startsWith("http")) return;
  const bundle = new URL(`${document.documentElement.dataset.content_root}_pagefind/`, location).pathname;
  await Promise.all([
    added("link", { rel: "stylesheet", href: `${bundle}pagefind-ui.css` }),
    added("script", { src: `${bundle}pagefind-ui.js` }),
  ]);
  new PagefindUI({ element: "#live-search", bundlePath: bundle, showImages: false, showSubResults: true, pageSize: 8 });
  document.querySelector(".sidebar-search-container").hidden = true;
  place.hidden = false;
});
