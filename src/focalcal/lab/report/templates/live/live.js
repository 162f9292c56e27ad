"use strict";
/* While cells are being run: how far they are, and the page anew when there is more to see, as the reader had it. */
const Live = (() => {
  const KEPT = "focalcal-live-view";
  const EVERY = 2000; // milliseconds between two questions
  const QUIET = 1500; // and without a press, a key or a scroll, before the page is loaded anew
  const MOST = 8; // cells that are listed
  const shown = Kit.data.live;
  const part = (id) => document.getElementById(id);
  let touched = 0;
  let refusals = 0;
  let last = null; // what was answered last

  const duration = (seconds) => {
    const [unit, size] = [["s", 1, 90], ["min", 60, 5400], ["h", 3600, 172800], ["d", 86400, Infinity]].find(([, , until]) => seconds < until);
    return `${Math.round(seconds / size)} ${unit}`;
  };

  function line(text, kind = "") {
    const made = document.createElement("p");
    made.className = kind;
    made.textContent = text;
    return made;
  }

  const say = (id, text) => { if (part(id).textContent !== text) part(id).textContent = text; };

  function show(progress) {
    last = progress;
    const { state, cells, done, failures, running, seconds_left: left, store } = progress;
    const whole = done + failures.length >= cells;
    const ended = state === "finished" || state === "interrupted" || (state === "watching" && whole && cells > 0);
    const partly = running.reduce((sum, cell) => sum + cell.share, 0);
    part("live").hidden = false;
    part("live").classList.toggle("ended", ended && state !== "interrupted");
    document.querySelector(".live-bar span").style.width = `${cells ? Math.min(100, (100 * (done + failures.length + partly)) / cells) : 0}%`;
    say("live-count", `${done} of ${cells} cells are stored${state === "interrupted" ? "; interrupted" : ended ? "; the study has ended" : ""}`);
    say("live-left", ended ? "" : left === null ? "time left not known yet" : `about ${duration(left)} left`);
    say("live-failed", failures.length ? `${failures.length} failed` : "");
    const more = (list) => (list.length > MOST ? [line(`and ${list.length - MOST} more`)] : []);
    part("live-cells").replaceChildren(
      ...failures.slice(0, MOST).map(({ name, message }) => line(`${name}: ${message}`, "failure")), ...more(failures),
      ...running.slice(0, MOST).map(({ name, share, note }) => line(`${name}: ${Math.floor(100 * share)} %, ${note}`)), ...more(running),
      line(`Store: ${store}`, "soft"),
    );
    document.title = ended ? Kit.data.title : `(${done}/${cells}) ${Kit.data.title}`;
    return ended;
  }

  /* What the address does not hold: place, open parts, sorted tables, and where the focus is. */
  const folds = () => new Map([...document.querySelectorAll("details")].map((fold, at) => {
    const section = fold.closest("section, aside");
    const before = [...(section?.querySelectorAll("details:not([id])") ?? [])].indexOf(fold);
    return [fold.id || `${section?.id ?? at}:${before}`, fold];
  }));

  function place() {
    const sections = [...document.querySelectorAll("main > section")];
    const section = sections.filter((one) => one.getBoundingClientRect().top < 80).pop();
    return section ? { section: section.id, below: -section.getBoundingClientRect().top } : null;
  }

  function sorted() {
    return [...document.querySelectorAll("th[aria-sort$=ending]")].filter((heading) => heading.closest("figure.table")).map((heading) =>
      ({ table: heading.closest("figure").id, heading: heading.textContent, presses: heading.getAttribute("aria-sort") === "ascending" ? 1 : 2 }));
  }

  function focus() {
    const on = document.activeElement;
    if (on.id) return { id: on.id };
    const chart = on.closest?.("figure.chart");
    return chart && on.dataset.name ? { chart: chart.id, name: on.dataset.name } : null;
  }

  function keep() {
    const view = { last, place: place(), sorted: sorted(), focus: focus(), open: [...folds()].filter(([, fold]) => fold.open).map(([name]) => name) };
    sessionStorage.setItem(KEPT, JSON.stringify(view));
  }

  function restore() {
    const text = sessionStorage.getItem(KEPT);
    sessionStorage.removeItem(KEPT);
    if (!text) return;
    const view = JSON.parse(text);
    show(view.last);
    folds().forEach((fold, name) => { if (view.open.includes(name)) fold.open = true; });
    view.sorted.forEach(({ table, heading, presses }) => {
      const found = [...document.querySelectorAll(`#${CSS.escape(table)} th`)].find((one) => one.textContent === heading);
      for (let press = 0; found && press < presses; press += 1) found.querySelector("button").click();
    });
    const section = view.place && part(view.place.section);
    if (section) {
      Charts.drawUpTo(section);
      window.scrollTo({ top: section.getBoundingClientRect().top + window.scrollY + view.place.below, behavior: "instant" });
    } else window.scrollTo({ top: 0, behavior: "instant" });
    const on = view.focus?.id ? part(view.focus.id) : view.focus && document.querySelector(`#${CSS.escape(view.focus.chart)} [data-name="${CSS.escape(view.focus.name)}"]`);
    on?.focus({ preventScroll: true });
  }

  const busy = () => document.hidden || performance.now() - touched < QUIET || String(getSelection()) !== "";

  async function ask() {
    let ended = false;
    try {
      const answer = await fetch("progress", { headers: { "X-Version": shown } });
      const progress = await answer.json();
      refusals = 0;
      ended = show(progress);
      if (progress.version !== shown) {
        if (!busy()) {
          keep();
          location.reload();
          return;
        }
        ended = false;
      }
      ended = ended && progress.state !== "watching";
    } catch {
      refusals += 1;
      part("live").hidden = false;
      say("live-left", "the server has ended; this page stays as it is");
      ended = refusals > 2;
    }
    if (!ended) setTimeout(ask, EVERY);
  }

  function start() {
    history.scrollRestoration = "manual";
    restore();
    ["pointerdown", "keydown", "wheel", "touchmove", "input"].forEach((kind) => document.addEventListener(kind, () => { touched = performance.now(); }, { passive: true }));
    State.on(() => { touched = performance.now(); });
    if (location.protocol === "file:") {
      part("live").hidden = false;
      say("live-left", "a copy of a live page; it stays as it is");
    } else ask();
  }

  return { start };
})();
Live.start();
