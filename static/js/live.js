/* Live pages: one stream per tab says which topics have changed; the page then asks for itself anew and swaps
   the parts that differ. Where no stream can be had it asks every 15 s. A hidden tab is silent, and nothing is
   pulled away from under the keyboard. */
(() => {
  "use strict";
  const POLL = 15000;
  const [LATE, DEAD] = [35000, 80000]; /* twice and five times the interval, and some slack */
  const main = document.querySelector("main[data-live]");
  const topics = main?.dataset.live.trim();
  if (!topics) return;
  const address = `/events/?topics=${encodeURIComponent(topics.split(/\s+/).join(" "))}`;
  const source = new WeakMap(); /* part -> its text as the server sent it: ours may be folded or opened since */
  let stream = null;
  let heard = Date.now();
  let due = false;
  let busy = false;
  let closing = 0;

  const parts = () => [...document.querySelectorAll("[data-part]")];
  const remember = () => parts().forEach((part) => source.has(part) || source.set(part, part.outerHTML));
  const hear = (at) => {
    heard = Date.now();
    const clock = document.querySelector(".topbar .asof time");
    if (clock && !Number.isNaN(at.getTime())) {
      const iso = at.toISOString();
      clock.textContent = iso.slice(11, 19);
      clock.dateTime = clock.title = iso;
    }
  };

  /* what the reader has opened stays open */
  const keep = (old, next) => {
    const opened = next.querySelectorAll("details");
    old.querySelectorAll("details").forEach((one, at) => { if (opened[at]) opened[at].open = one.open; });
    const boxes = [...next.querySelectorAll("input[type=checkbox]")];
    old.querySelectorAll("input[type=checkbox]:checked").forEach((one) => {
      const same = boxes.find((box) => box.name === one.name && box.value === one.value);
      if (same) same.checked = true;
    });
    const wraps = next.querySelectorAll(".table-wrap");
    const shift = [...old.querySelectorAll(".table-wrap")].map((one) => [one.scrollLeft, one.scrollTop]);
    return () => shift.forEach(([left, top], at) => wraps[at]?.scrollTo(left, top));
  };
  const isTyped = (part) => [...part.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue);
  const swap = (part, next) => {
    const text = next.outerHTML;
    if (source.get(part) === text) return;
    if (part.contains(document.activeElement) || isTyped(part)) { due = true; return; }
    const node = document.adoptNode(next);
    const after = keep(part, node);
    source.set(node, text);
    part.replaceWith(node);
    window.htmx?.process(node);
    after();
    node.dispatchEvent(new CustomEvent("partchange", { bubbles: true }));
  };
  const refresh = async () => {
    if (busy || document.hidden) { due = true; return; }
    busy = true;
    due = false;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const next = fresh.getElementById(part.id);
        if (next) swap(part, next);
      }
      hear(new Date(answer.headers.get("Date")));
      document.dispatchEvent(new CustomEvent("livechange"));
    } catch (error) {
      due = true;
    } finally {
      busy = false;
    }
  };

  /* a reader without colours is told, too; the words come from the server */
  const tell = (isBehind) => {
    const place = document.querySelector("[data-behind]");
    if (!place || Boolean(place.firstChild) === isBehind) return;
    const words = document.createElement("p");
    words.className = "note is-bad";
    words.textContent = place.dataset.behind;
    place.replaceChildren(...(isBehind ? [words] : []));
  };

  const listen = () => {
    stream = new EventSource(address);
    stream.addEventListener("beat", (event) => hear(new Date(event.data)));
    stream.addEventListener("topic", refresh);
  };
  const isOpen = () => stream?.readyState === EventSource.OPEN;

  document.addEventListener("visibilitychange", () => {
    clearTimeout(closing);
    if (document.hidden) {
      closing = setTimeout(() => { stream.close(); due = true; }, 60000);
      return;
    }
    if (stream.readyState === EventSource.CLOSED) listen();
    if (due) refresh();
  });
  addEventListener("pagehide", () => stream?.close());
  setInterval(() => { if (!isOpen() || due) refresh(); }, POLL);
  setInterval(() => {
    const age = Date.now() - heard;
    for (const clock of document.querySelectorAll(".asof")) {
      clock.classList.toggle("is-late", age > LATE && age <= DEAD);
      clock.classList.toggle("is-dead", age > DEAD);
    }
    tell(age > DEAD);
  }, 5000);
  remember();
  listen();
})();
