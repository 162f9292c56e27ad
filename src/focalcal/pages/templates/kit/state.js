"use strict";
/* What is chosen, kept in the address after the #, so that a view can be sent: #metric=nll&objective=fcl&at=forest. */
const State = (() => {
  const chosen = {};
  const fields = {}; // name -> {initial, allowed}
  const listeners = [];
  const place = "at"; // the section that was last gone to
  let kept = true; // whether the address is ours

  function define(name, initial, allowed = null) {
    fields[name] = { initial, allowed };
    chosen[name] = initial;
  }

  const valid = (name, value) => name in fields && (!fields[name].allowed || fields[name].allowed.includes(value));
  const get = (name) => chosen[name];

  function set(change, { quiet = false } = {}) {
    Object.entries(change).forEach(([name, value]) => { if (valid(name, value)) chosen[name] = value; });
    write();
    if (!quiet) listeners.forEach((listener) => listener(Object.keys(change)));
  }

  function write() {
    const parts = Object.entries(fields)
      .filter(([name, { initial }]) => chosen[name] !== initial)
      .map(([name]) => `${name}=${encodeURIComponent(chosen[name])}`);
    history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.href.replace(/#.*$/, ""));
  }

  /* What the address asks for; what it asks for wrongly is left as it was. Without a "=" it is a mere anchor. */
  function read() {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) {
      goTo(decodeURIComponent(text));
      return;
    }
    const asked = new URLSearchParams(text);
    Object.entries(fields).forEach(([name, { initial }]) => {
      const value = asked.get(name);
      chosen[name] = value !== null && valid(name, value) ? value : initial;
    });
    listeners.forEach((listener) => listener(Object.keys(fields)));
    if (chosen[place]) show(chosen[place]);
  }

  function show(id) {
    const target = document.getElementById(id);
    if (!target) return;
    for (let parent = target; parent; parent = parent.parentElement) {
      if (parent.tagName === "DETAILS") parent.open = true;
    }
    Charts.drawUpTo(target);
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  }

  /* Go to an element and keep what is chosen in the address. */
  function goTo(id) {
    if (!document.getElementById(id)) return;
    if (kept) set({ [place]: id }, { quiet: true });
    show(id);
  }

  /* A page that writes the address itself passes false. */
  function start(address = true) {
    kept = address;
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[href^='#']");
      if (!link) return;
      event.preventDefault();
      goTo(decodeURIComponent(link.getAttribute("href").slice(1)));
    });
    if (!kept) return;
    window.addEventListener("hashchange", read);
    read();
  }

  define(place, "");
  return { define, get, set, start, goTo, on: (listener) => listeners.push(listener) };
})();
