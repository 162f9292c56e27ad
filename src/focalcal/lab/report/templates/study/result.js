"use strict";
/* The first screen: every objective and seed by the chosen metric, and calibration against error or NLL. */
const ResultView = (() => {
  const { element, mark, path } = Svg;

  function dots(svg, width) {
    const key = State.get("metric");
    const view = Study.view("ranking", key);
    if (!view) return Study.nothing("No objective has this metric.");
    const { kept, left } = Lanes.few(view.rows);
    const labels = Lanes.labelWidth(width, kept.map((row) => Study.objective(row.objective).name));
    const box = { left: labels + 8, right: width - 52, top: 8, bottom: 8 + Lanes.HEIGHT * kept.length };
    const ends = kept.flatMap((row) => [...row.value, row.low, row.high]).map((end) => Study.scaled(key, end));
    const x = Axes.linear(Axes.extent(ends, { zero: Study.metric(key).percent }), [box.left, box.right]);
    Axes.bottom(svg, x, box, Study.metric(key).named, { count: width < 480 ? 4 : 6 });
    kept.forEach((row, at) => lane(svg, row, key, x, box.top + Lanes.HEIGHT * (at + 0.5), width, labels));
    return Study.made(view, box.bottom + 42, view.note, left);
  }

  function lane(svg, row, key, x, y, width, labels) {
    const { low, high, chance } = row;
    const at = (value) => x(Study.scaled(key, value));
    const [mean, seeds] = [Study.shown(key, row.mean), row.seed.length];
    const interval = low === null ? "" : `, rows ${Study.shown(key, low)} to ${Study.shown(key, high)}`;
    const by = chance ? `, by chance ${Study.shown(key, chance)}` : "";
    const said = `mean ${mean}${Study.unit(key)} over ${seeds} seed${seeds === 1 ? "" : "s"}${interval}${by}`;
    const group = Lanes.lane(svg, row.objective, y, width, labels, said, row.flag);
    if (chance) element(group, "rect", { x: at(0), y: y - 10, width: Math.max(0, at(chance) - at(0)), height: 20, class: "chance", "data-tip": `Chance alone: ${Study.shown(key, chance)}${Study.unit(key)}\n${Study.data.terms.chance}` });
    const { marker, full } = Study.objective(row.objective);
    Lanes.marks(group, row, key, y, at, { kind: marker, ends: true, tip: `${full}\n${said}` });
    element(group, "text", { x: width, y: y + 4, class: "label strong end" }, mean);
  }

  /* What is drawn against what: an axis may not be the metric itself. */
  function axes() {
    const { calibration, against } = Study.data.axes;
    const key = State.get("metric");
    const x = calibration.includes(key) ? key : [...calibration, key].find((name) => Study.metrics.has(name));
    const wanted = State.get("axis");
    return [x, wanted !== x ? wanted : against.find((name) => name !== x && Study.metrics.has(name)) ?? wanted];
  }

  const bounded = ({ across }) => across.bounded.some(Boolean);

  function pareto(svg, width) {
    const [across, up] = axes();
    const [one, other] = [across, up].map((key) => Study.view("scaling", key));
    if (!one || !other) return Study.nothing("This setting has no two metrics to draw against each other.");
    const upper = new Map(other.rows.map((row) => [row.objective, row]));
    const { kept } = Lanes.few(one.rows.filter(({ objective }) => upper.has(objective)));
    const points = kept.map((row) => ({ objective: row.objective, across: row, up: upper.get(row.objective) }));
    const box = { left: 52, right: width - 14, top: 20, bottom: 20 + Math.max(190, Math.min(width * 0.72, Lanes.HEIGHT * Math.max(8, kept.length))) };
    const all = (name, key) => points.flatMap((point) => [point[name].raw, point[name].scaled]).map((value) => Study.scaled(key, value));
    const x = Axes.linear(Axes.extent(all("across", across), { zero: true, room: 0.1 }), [box.left, box.right]);
    const y = Axes.linear(Axes.extent(all("up", up), { room: 0.12 }), [box.bottom, box.top]);
    Axes.bottom(svg, x, box, Study.metric(across).named);
    Axes.left(svg, y, box, Study.metric(up).named);
    element(svg, "text", { x: box.left + 6, y: Study.metric(up).higher ? box.top + 14 : box.bottom - 8, class: "label" }, Study.metric(up).higher ? "\u2196 better" : "\u2199 better");
    const taken = [];
    const drawn = points.map((point) => pair(svg, point, across, up, x, y, taken)).filter(Boolean);
    const first = ({ objective }) => (objective === Study.candidate || objective === State.get("objective") ? 0 : 1);
    drawn.sort((a, b) => first(a) - first(b)).forEach((place) => label(svg, place, taken, box));
    const without = points.filter(bounded).map(({ objective }) => Study.objective(objective).name);
    const limit = without.length ? `\u2020 No finite T in every seed, so not drawn after scaling: ${without.join(", ")}.` : "";
    const rows = points.map(({ objective, across: a, up: b }) => ({ objective, state: ["as trained", "temperature-scaled"], [across]: [a.raw, a.scaled], [up]: [b.raw, b.scaled] }));
    const title = `${Study.metric(across).named} against ${Study.metric(up).named} on ${one.setting}`;
    return Study.made({ title, rows }, box.bottom + 42, one.scaled ? one.how : "", limit);
  }

  function pair(svg, point, across, up, x, y, taken) {
    const { objective, across: a, up: b } = point;
    const at = (state) => [x(Study.scaled(across, a[state])), y(Study.scaled(up, b[state]))];
    const { full, marker } = Study.objective(objective);
    const group = element(svg, "g", { ...Study.classes(objective, "pareto"), "data-name": objective });
    group.addEventListener("click", () => Study.choose(objective));
    const told = (state) => `${full}, ${state === "raw" ? "as trained" : "temperature-scaled"}\n${Study.metric(across).title} ${Study.shown(across, a[state])}${Study.unit(across)}, ${Study.metric(up).title} ${Study.shown(up, b[state])}${Study.unit(up)}`;
    const states = ["raw", "scaled"].filter((state) => at(state).every(Number.isFinite));
    if (states.length === 2) {
      element(group, "path", { d: path([at("raw"), at("scaled")]), class: "joint" });
      const [[a0, b0], [a1, b1]] = [at("raw"), at("scaled")];
      const steps = Math.ceil(Math.hypot(a1 - a0, b1 - b0) / 6);
      for (let i = 1; i < steps; i += 1) taken.push([a0 + ((a1 - a0) * i) / steps - 3, b0 + ((b1 - b0) * i) / steps - 3, a0 + ((a1 - a0) * i) / steps + 3, b0 + ((b1 - b0) * i) / steps + 3]);
    }
    states.forEach((state) => {
      mark(group, marker, ...at(state), { class: state === "raw" ? "hollow" : "solid", "data-tip": told(state) });
      taken.push([at(state)[0] - 7, at(state)[1] - 7, at(state)[0] + 7, at(state)[1] + 7]);
    });
    return states.length ? { place: at("raw").every(Number.isFinite) ? at("raw") : at("scaled"), objective, flag: bounded(point), group } : null;
  }

  /* Beside its mark, where nothing else is; left out where there is no room. */
  function label(svg, { place: [px, py], objective, flag, group }, taken, box) {
    const { name } = Study.objective(objective);
    const text = `${name.length > 18 ? `${name.slice(0, 17)}\u2026` : name}${flag ? " \u2020" : ""}`;
    const long = 7.1 * text.length + 3;
    const places = [[px + 9, py + 4, "start"], [px - 9, py + 4, "end"], [px, py - 10, "middle"], [px, py + 18, "middle"], [px + 9, py - 9, "start"], [px + 9, py + 17, "start"], [px - 9, py - 9, "end"], [px - 9, py + 17, "end"]];
    const frame = ([x, y, anchor]) => {
      const from = anchor === "start" ? x : anchor === "end" ? x - long : x - long / 2;
      return [from, y - 11, from + long, y + 3];
    };
    const free = places.find((place) => {
      const [a, b, c, d] = frame(place);
      return a > box.left && c < box.right + 12 && b > box.top - 12 && d < box.bottom && !taken.some(([e, f, g, h]) => a < g && c > e && b < h && d > f);
    });
    if (!free) return;
    taken.push(frame(free));
    element(group, "text", { x: free[0], y: free[1], class: "label strong name", "text-anchor": free[2] }, text);
  }

  function controls() {
    const options = [...Study.metrics.values()].map(({ key, title, meaning }) => [key, title, meaning]);
    Controls.radios("metric", "metric", options);
    Controls.select("setting", "setting", Study.data.settings.map((name) => [name, name]));
    const there = new Set(Study.views("ranking").flatMap(({ rows }) => rows.map(({ objective }) => objective)));
    const named = Study.data.objectives.filter(({ key }) => there.has(key)).map(({ key, name }) => [key, name]);
    Controls.select("objective", "objective", [["", "none"], ...named]);
    const [across] = axes();
    Controls.select("axis", "axis", Study.data.axes.against.filter((key) => Study.metrics.has(key) && key !== across).map((key) => [key, Study.metric(key).title]));
    Controls.get("axis").value = axes()[1];
    document.querySelectorAll(".sentence .setting").forEach((button) => button.setAttribute("aria-pressed", button.dataset.setting === State.get("setting")));
    Controls.get("metric-meaning").textContent = `${Study.metric(State.get("metric")).meaning} ${Study.metric(State.get("metric")).higher ? "" : "Less is better."}`;
  }

  /* Of very many objectives the best are shown until all are asked for. */
  function lanes() {
    const count = Study.view("ranking", State.get("metric"))?.rows.length ?? 0;
    const all = State.get("lanes") === "all";
    Controls.get("lanes").hidden = count <= Lanes.MOST;
    Controls.get("lanes").textContent = all ? `Show the best ${Lanes.MOST}` : `Show all ${count} objectives`;
  }

  function start() {
    if (!Controls.get("chart-dots")) return;
    Controls.get("lanes").addEventListener("click", () => State.set({ lanes: State.get("lanes") === "all" ? "few" : "all" }));
    State.on(lanes);
    ["setting", "objective", "axis"].forEach((name) => Controls.listen(name, name));
    State.on(controls);
    document.querySelectorAll(".sentence .setting").forEach((button) => button.addEventListener("click", () => State.set({ setting: button.dataset.setting })));
    Charts.add("dots", dots);
    Charts.add("pareto", pareto);
  }

  return { start };
})();
