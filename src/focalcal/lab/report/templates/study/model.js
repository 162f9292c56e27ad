"use strict";
/* The study: its cells by setting, means over seeds, names, and what is chosen. */
const Study = (() => {
  const { data } = Kit;
  const CALIBRATION = ["ece", "adaptive_ece", "smooth_ece", "classwise_ece", "mce"];
  const AGAINST = ["error", "nll", "brier", "auroc"];
  const metrics = new Map(data.metrics.map((metric) => [metric.key, metric]));

  const number = (value) => (value === null || value === undefined ? NaN : Number(value));
  const numbers = (values) => (values ?? []).map(number);
  const measured = (values) => numbers(values).filter((value) => !Number.isNaN(value));

  /* Over what was measured; infinity stays infinite. */
  function mean(values) {
    const there = measured(values);
    return there.length ? there.reduce((a, b) => a + b, 0) / there.length : NaN;
  }

  const metric = (key) => metrics.get(key) ?? { key, title: key.replaceAll("_", " "), percent: false, higher: false, meaning: "" };
  const scaled = (key, value) => (metric(key).percent ? 100 * number(value) : number(value));
  const named = (key) => `${metric(key).title}${metric(key).percent ? " in points" : ""}`;
  const shown = (key, value, options) => Svg.fixed(scaled(key, value), metric(key).percent ? 2 : 4, options);
  const unit = (key) => (metric(key).percent ? " %" : "");

  const objective = (place) => data.objectives[place];
  const setting = () => data.settings.indexOf(State.get("setting"));
  const cells = () => data.cells.filter((cell) => cell.setting === setting());
  const { candidate } = data; // the place of what is compared with every other; null without one

  /* The chosen setting if any of its cells is of use, else the first one that has such cells, and a word about that. */
  function near(useful, what) {
    const here = cells().filter(useful);
    if (here.length) return { found: here, note: "" };
    const first = data.cells.find(useful);
    const found = first ? data.cells.filter((cell) => cell.setting === first.setting && useful(cell)) : [];
    return { found, note: first ? `${State.get("setting")} has no ${what}; this is ${data.settings[first.setting]}.` : "" };
  }
  const value = (cell, key) => mean(cell.splits.test?.[key]);

  /* The cells that have the metric, best first; what is not finite is last. */
  function sorted(key, of = cells()) {
    const sign = metric(key).higher ? -1 : 1;
    const place = (cell) => (Number.isFinite(value(cell, key)) ? sign * value(cell, key) : Infinity);
    return of.filter((cell) => measured(cell.splits.test?.[key]).length).sort((a, b) => place(a) - place(b));
  }

  /* Colour, and whether another objective is highlighted. */
  function classes(place, more = "") {
    const chosen = State.get("objective");
    const dim = chosen && chosen !== objective(place).key ? " dim" : "";
    return { class: `${more}${dim}`, style: `--c: var(--o${objective(place).place})` };
  }

  function choose(place) {
    const { key } = objective(place);
    State.set({ objective: State.get("objective") === key ? "" : key });
  }

  function define() {
    const keys = [...metrics.keys()];
    const first = ["ece", ...keys].find((key) => metrics.has(key)) ?? "";
    State.define("metric", first, keys);
    State.define("setting", data.first ?? data.settings[0] ?? "", data.settings);
    State.define("objective", "", ["", ...data.objectives.map(({ key }) => key)]);
    State.define("axis", AGAINST.find((key) => metrics.has(key)) ?? "", AGAINST.filter((key) => metrics.has(key)));
  }

  return { data, metrics, CALIBRATION, AGAINST, number, numbers, measured, mean, metric, scaled, named, shown, unit, objective, setting, cells, candidate, near, value,
    sorted, classes, choose, define };
})();

/* Controls that show and change what is chosen. */
const Controls = (() => {
  const get = (id) => document.getElementById(id);

  /* A select of [value, text] pairs; hidden if there is nothing to choose. */
  function select(id, name, options) {
    const control = get(id);
    if (!control) return;
    control.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    control.value = State.get(name);
    const label = control.closest(".controls > div");
    if (label) label.hidden = options.length < 2;
  }

  function listen(id, name) {
    get(id)?.addEventListener("change", (event) => State.set({ [name]: event.target.value }));
  }

  /* Radio buttons in a row, of [value, text, meaning]. */
  function radios(id, name, options) {
    const frame = get(id);
    if (!frame) return;
    frame.replaceChildren(...options.map(([value, text, meaning]) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      Object.assign(input, { type: "radio", name: id, value, checked: value === State.get(name) });
      input.addEventListener("change", () => State.set({ [name]: value }));
      label.append(input, text);
      if (meaning) label.dataset.tip = meaning;
      return label;
    }));
    frame.closest("fieldset").hidden = options.length < 2;
  }

  function checked(id, name) {
    document.querySelectorAll(`#${id} input`).forEach((input) => { input.checked = input.value === State.get(name); });
  }

  return { get, select, listen, radios, checked };
})();
