"use strict";
/* Light, dark, or as the system is: chosen by a button, remembered, and set before anything is painted. */
const Theme = (() => {
  const NAME = "focalcal-colours";
  const LABELS = { system: "system", light: "light", dark: "dark" };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let forced = null; // printing is always light
  let choice = "system";
  try {
    const kept = localStorage.getItem(NAME);
    if (kept in LABELS) choice = kept;
  } catch {
    /* a browser that keeps nothing for files: the choice lasts as long as the page */
  }

  const colours = () => forced ?? (choice === "system" ? (dark.matches ? "dark" : "light") : choice);

  function apply() {
    document.documentElement.dataset.colours = colours();
    listeners.forEach((listener) => listener());
  }

  function next() {
    const names = Object.keys(LABELS);
    choice = names[(names.indexOf(choice) + 1) % names.length];
    try {
      localStorage.setItem(NAME, choice);
    } catch {
      /* as above */
    }
    label();
    apply();
  }

  function label() {
    document.getElementById("theme").textContent = `Theme: ${LABELS[choice]}`;
  }

  function force(name) {
    forced = name;
    apply();
  }

  function start() {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", next);
    label();
  }

  dark.addEventListener("change", apply);
  apply();
  return { start, force, onChange: (listener) => listeners.push(listener) };
})();
