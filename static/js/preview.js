/* The editors tell what a change means while it is typed: the Preview button, pressed after a pause of 300 ms. A newer
   change takes the place of a question that has not been answered. Nothing is lost where this does not run. */
(() => {
  "use strict";
  const [PAUSE, MOST] = [300, 2000];
  const form = document.querySelector("form[data-preview]");
  const place = form?.querySelector("[data-preview-place]");
  if (!place) return;
  let waiting = 0;
  let asked = null;
  let isTooSlow = false;

  const say = (words) => {
    const line = document.createElement("p");
    line.className = "muted";
    line.textContent = words;
    place.replaceChildren(line);
  };
  const ask = async () => {
    const mine = new AbortController();
    asked = mine;
    const body = new FormData(form);
    body.set("check", "1");
    body.delete("confirm");
    const late = setTimeout(() => { isTooSlow = true; mine.abort(); }, MOST);
    place.setAttribute("aria-busy", "true");
    try {
      const headers = { "HX-Request": "true" };
      const answer = await fetch(location.href, { method: "POST", body, headers, signal: mine.signal, credentials: "same-origin" });
      if (answer.redirected || ![200, 412, 422].includes(answer.status)) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (asked === mine) place.replaceChildren(...fresh.body.childNodes);
    } catch (error) {
      if (asked === mine) say(isTooSlow ? place.dataset.slow : place.dataset.failed);
    } finally {
      clearTimeout(late);
      if (asked === mine) place.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", (event) => {
    if (isTooSlow || event.target.matches("[name=reason], [name=confirm]")) return;
    clearTimeout(waiting);
    const older = asked;
    asked = null;
    older?.abort();
    waiting = setTimeout(ask, PAUSE);
  });
})();
