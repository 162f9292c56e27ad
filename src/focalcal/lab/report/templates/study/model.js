"use strict";
/* The study: its views, which Python computed and titled, names, and what is chosen. */
const Study = (() => {
  const { data } = Kit;
  const metrics = new Map(data.metrics.map((metric) => [metric.key, metric]));
  const objectives = new Map(data.objectives.map((objective) => [objective.key, objective]));

  const number = (value) => (value === null || value === undefined ? NaN : Number(value));
  const numbers = (values) => (values ?? []).map(number);

  const metric = (key) => metrics.get(key) ?? { key, title: key.replaceAll("_", " "), named: key.replaceAll("_", " "), percent: false, higher: false, meaning: "" };
  const scaled = (key, value) => (metric(key).percent ? 100 * number(value) : number(value));
  const shown = (key, value, options) => Svg.fixed(scaled(key, value), metric(key).percent ? 2 : 4, options);
  const unit = (key) => (metric(key).percent ? " %" : "");
  const objective = (key) => objectives.get(key);
  const { candidate } = data; // what is compared with every other; null without one

  const all = (kind) => data.views[kind] ?? [];
  const views = (kind) => all(kind).filter((view) => view.setting === State.get("setting"));
  const view = (kind, choice) => views(kind).find((one) => one.choice === choice);

  /* Those of the chosen setting, or else of the first one that has any, and a word about that. */
  function near(kind, what) {
    const here = views(kind);
    if (here.length || !all(kind).length) return { found: here, note: "" };
    const { setting } = all(kind)[0];
    return { found: all(kind).filter((one) => one.setting === setting), note: `${State.get("setting")} has no ${what}; this is ${setting}.` };
  }

  /* The numbers of a view, one row per entry of its rows' lists. */
  function table({ rows }) {
    const headings = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => row[name]?.constructor !== Object)))];
    const plain = (value) => (["NaN", "Infinity", "-Infinity"].includes(value) ? Number(value) : value ?? null);
    const length = (row) => Math.max(0, ...headings.map((name) => (Array.isArray(row[name]) ? row[name].length : 1)));
    return { headings, rows: rows.flatMap((row) => Array.from({ length: length(row) }, (_, at) =>
      headings.map((name) => plain(Array.isArray(row[name]) ? row[name][at] : row[name])))) };
  }

  /* What a chart gives that has drawn a view. */
  const made = (one, height, ...said) => ({ height, title: one.title, said: said.filter(Boolean).join(" "), ...table(one) });
  const nothing = (said, title = said) => ({ height: 10, title, said, headings: [], rows: [] });

  /* Colour, and whether another objective is highlighted. */
  function classes(key, more = "") {
    const chosen = State.get("objective");
    return { class: `${more}${chosen && chosen !== key ? " dim" : ""}`, style: `--c: var(--o${objective(key).place})` };
  }

  const choose = (key) => State.set({ objective: State.get("objective") === key ? "" : key });

  /* Pressed by the mouse or the keyboard, a group is highlighted everywhere. */
  function pressable(group, key) {
    group.addEventListener("click", () => choose(key));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(key);
    });
  }

  const button = (key) => ({ tabindex: 0, role: "button", "aria-pressed": State.get("objective") === key, "data-name": key });

  function define() {
    const keys = [...metrics.keys()];
    const against = data.axes.against.filter((key) => metrics.has(key));
    State.define("metric", metrics.has("ece") ? "ece" : keys[0] ?? "", keys);
    State.define("setting", data.first ?? data.settings[0] ?? "", data.settings);
    State.define("objective", "", ["", ...objectives.keys()]);
    State.define("axis", against[0] ?? "", against);
  }

  return { data, metrics, number, numbers, metric, scaled, shown, unit, objective, candidate, all, views, view, near, table, made, nothing, classes, choose, pressable, button, define };
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
