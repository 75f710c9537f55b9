/* The pages' own behaviour: theme, keyboard, confirmation. No framework, no inline code. */
(() => {
  "use strict";
  const root = document.documentElement;

  /* ---- theme: a cookie, so that the server renders the right one; no cookie follows the system ---- */
  const themes = ["", "light", "dark"];
  const theme = () => root.dataset.theme || "";
  const nameTheme = () => {
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.setAttribute("aria-label", button.dataset[`words${{ "": "Auto", light: "Light", dark: "Dark" }[theme()]}`]);
      button.title = button.getAttribute("aria-label");
    }
  };
  const setTheme = (next) => {
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    const age = next ? 31536000 : 0;
    document.cookie = `theme=${next}; path=/; max-age=${age}; samesite=lax`;
    nameTheme();
    document.dispatchEvent(new CustomEvent("themechange"));
  };

  /* ---- dialogs ---- */
  const open = (id) => {
    const dialog = document.getElementById(id);
    if (dialog && !dialog.open) dialog.showModal();
  };

  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-theme-switch], [data-open], [data-copy], [data-print]");
    if (!target) return;
    if (target.matches("[data-theme-switch]")) setTheme(themes[(themes.indexOf(theme()) + 1) % themes.length]);
    if (target.dataset.open) open(target.dataset.open);
    if (target.matches("[data-print]")) window.print();
    if (target.dataset.copy) navigator.clipboard?.writeText(target.dataset.copy);
  });

  /* ---- forms: choosing a filter applies it; a file lands in its text field ---- */
  document.addEventListener("change", (event) => {
    const field = event.target;
    if (field.form?.matches("[data-auto]") && field.matches("select, input[type=checkbox]")) field.form.requestSubmit();
    if (field.dataset.into && field.files?.[0]) {
      field.files[0].text().then((text) => { document.getElementById(field.dataset.into).value = text; });
    }
  });
  document.addEventListener("submit", (event) => {
    /* empty filters stay out of the address */
    if (event.target.matches("[data-auto]")) {
      for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
      setTimeout(() => { for (const field of event.target.elements) field.disabled = false; });
    }
  });

  /* ---- treegrid: one row is in the tab order, arrows move, left and right close and open ---- */
  const level = (row) => Number(row.getAttribute("aria-level"));
  const below = (row) => {
    const rows = [];
    for (let next = row.nextElementSibling; next && level(next) > level(row); next = next.nextElementSibling) rows.push(next);
    return rows;
  };
  const toggle = (row, wanted) => {
    if (!row.hasAttribute("aria-expanded")) return;
    row.setAttribute("aria-expanded", String(wanted));
    let closed = Infinity;
    for (const child of below(row)) {
      if (level(child) <= closed) closed = Infinity;
      child.hidden = !wanted || level(child) > closed;
      if (wanted && child.getAttribute("aria-expanded") === "false" && level(child) < closed) closed = level(child);
    }
  };
  const focusRow = (row) => {
    for (const other of row.parentElement.querySelectorAll("[tabindex='0'][role=row]")) other.tabIndex = -1;
    row.tabIndex = 0;
    row.focus();
  };
  const treeKey = (event, row) => {
    const rows = [...row.parentElement.querySelectorAll("tr[role=row]:not([hidden])")];
    const at = rows.indexOf(row);
    const expanded = row.getAttribute("aria-expanded");
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 };
    if (event.key in moves) {
      if (rows[moves[event.key]]) focusRow(rows[moves[event.key]]);
    } else if (event.key === "ArrowRight") {
      if (expanded === "false") toggle(row, true);
      else if (rows[at + 1] && level(rows[at + 1]) > level(row)) focusRow(rows[at + 1]);
    } else if (event.key === "ArrowLeft") {
      if (expanded === "true") toggle(row, false);
      else {
        const parent = rows.slice(0, at).reverse().find((other) => level(other) < level(row));
        if (parent) focusRow(parent);
      }
    } else if (event.key === "Enter") row.querySelector("a")?.click();
    else return;
    event.preventDefault();
  };
  document.addEventListener("click", (event) => {
    const twist = event.target.closest(".twist");
    const row = twist?.closest("tr[aria-expanded]");
    if (row) toggle(row, row.getAttribute("aria-expanded") !== "true");
  });

  /* ---- search: what is found drops down; arrows walk through it ---- */
  const search = document.querySelector("[data-search]");
  const drop = search?.form.querySelector(".drop");
  const showFound = (wanted) => { if (drop) drop.hidden = !wanted || !drop.firstElementChild; };
  const searchKey = (event) => {
    const stops = [search, ...drop.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === "Escape") { showFound(false); search.focus(); } else if (next !== undefined && !drop.hidden) stops[next]?.focus();
    else return;
    event.preventDefault();
  };
  document.addEventListener("htmx:afterSwap", (event) => { if (event.target === drop) showFound(search.value.trim() !== ""); });
  search?.form.addEventListener("keydown", searchKey);
  search?.addEventListener("focus", () => showFound(search.value.trim() !== ""));
  document.addEventListener("click", (event) => { if (!search?.form.contains(event.target)) showFound(false); });

  /* ---- keyboard ---- */
  let going = 0;
  const typing = (node) => node.closest?.("input, select, textarea, [contenteditable]");
  const step = (by) => {
    const rows = [...document.querySelectorAll("main table tbody tr:not([hidden]) :is(th, td) a:first-of-type")];
    const at = rows.indexOf(document.activeElement);
    rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.("tr[role=row]")) return treeKey(event, event.target);
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && search) {
      event.preventDefault();
      return search.select() || search.focus();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return undefined;
    if (Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector(`.rail [data-go="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return undefined;
    }
    const field = document.querySelector(".filters :is(input, select)");
    if (event.key === "g") going = Date.now();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") open("keys");
    else if (event.key === "/" && field) { event.preventDefault(); field.focus(); }
    return undefined;
  });

  /* ---- after a refusal the summary of problems is read first; it leads to the fields without
     leaving a place in the address, which would take the focus from the next answer ---- */
  document.addEventListener("click", (event) => {
    const href = event.target.closest?.(".error-summary a[href^='#']")?.getAttribute("href");
    const field = href && document.getElementById(href.slice(1));
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
  const fold = (within) => within.querySelectorAll("tr[role=row][aria-expanded=false]").forEach((row) => toggle(row, false));
  document.addEventListener("partchange", (event) => fold(event.target));
  document.addEventListener("DOMContentLoaded", () => {
    nameTheme();
    document.querySelector("[data-focus]")?.focus();
    fold(document);
  });
})();
