/* Copyright (c) 2026, the pve.fleet authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The search that answers while you type. A browser reads its index from a server only: a page that is opened as a file keeps
 * the search of Sphinx. */
const added = (tag, attributes) => new Promise((loaded) => {
  document.head.append(Object.assign(document.createElement(tag), attributes, { onload: loaded }));
});

// On a phone, the search is in the menu: an icon beside the title opens it there.
const addIcon = () => {
  const icon = Object.assign(document.createElement("label"), {
    className: "header-search",
    htmlFor: "__navigation",
    title: "Search",
    innerHTML: '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"><circle cx="10" cy="10" r="7"/><path d="m15 15 6 6"/></svg>',
  });
  icon.addEventListener("click", () => setTimeout(() => {
    [...document.querySelectorAll(".sidebar-drawer input")].find((field) => field.offsetWidth).focus();
  }, 300));
  document.querySelector(".mobile-header .header-right").prepend(icon);
};

addEventListener("DOMContentLoaded", async () => {
  addIcon();
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
