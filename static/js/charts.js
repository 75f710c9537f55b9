/* Charts: ask the server for a figure in the current theme, hand it to Plotly. Nothing is sent anywhere. */
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");

  const draw = async (node) => {
    const address = new URL(node.dataset.chart, location.href);
    const wanted = theme();
    address.searchParams.set("theme", wanted);
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" }, credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const figure = await answer.json();
      if (wanted !== theme()) return; /* a slower answer must not repaint what is newer */
      const config = { ...figure.config, displaylogo: false, showSendToCloud: false };
      await Plotly.react(node, figure.data, figure.layout, config);
      node.classList.add("is-drawn");
    } catch (error) {
      node.classList.add("is-failed");
    }
  };
  const all = () => document.querySelectorAll("[data-chart]").forEach(draw);

  document.addEventListener("DOMContentLoaded", all);
  document.addEventListener("themechange", all);
  /* a live page: at most once a minute, for a chart of days does not change with every pod */
  let drawn = Date.now();
  document.addEventListener("livechange", () => {
    if (Date.now() - drawn < 60000) return;
    drawn = Date.now();
    all();
  });
  document.addEventListener("partchange", (event) => event.target.querySelectorAll("[data-chart]").forEach(draw));
  dark.addEventListener("change", all);
})();
