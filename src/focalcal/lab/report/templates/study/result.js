"use strict";
/* The first screen: every objective and seed by the chosen metric, and calibration against error or NLL. */
const ResultView = (() => {
  const { element, mark, path } = Svg;

  function dots(svg, width) {
    const key = State.get("metric");
    const { kept, left } = Lanes.few(Study.sorted(key));
    const labels = Lanes.labelWidth(width, kept.map((cell) => Study.objective(cell.objective).name));
    const box = { left: labels + 8, right: width - 52, top: 8, bottom: 8 + Lanes.HEIGHT * Math.max(1, kept.length) };
    const rows = (cell) => cell.rows[key];
    const ends = kept.flatMap((cell) => [...Study.numbers(cell.splits.test[key]), rows(cell)?.low, rows(cell)?.high]);
    const x = Axes.linear(Axes.extent(ends.filter((end) => end !== undefined).map((end) => Study.scaled(key, end)), { zero: Study.metric(key).percent }), [box.left, box.right]);
    Axes.bottom(svg, x, box, Study.named(key), { count: width < 480 ? 4 : 6 });
    kept.forEach((cell, at) => lane(svg, cell, key, x, box.top + Lanes.HEIGHT * (at + 0.5), width, labels));
    const best = kept[0] && Study.objective(kept[0].objective).name;
    const said = [best ? `Best: ${best}, ${Study.shown(key, Study.value(kept[0], key))}${Study.unit(key)}.` : "No objective has this metric.",
      left ? `${left} more objectives are not shown.` : ""].join(" ");
    return { height: box.bottom + 42, title: `${Study.named(key)} on ${State.get("setting")}, test rows`, said,
      headings: ["objective", "seed", key, "mean", "low", "high", "chance"],
      rows: Study.sorted(key).flatMap((cell) => cell.seeds.map((seed, at) => [Study.objective(cell.objective).key, seed,
        Study.number(cell.splits.test[key][at]), Study.value(cell, key), rows(cell)?.low ?? null, rows(cell)?.high ?? null, rows(cell)?.chance ?? null])) };
  }

  function lane(svg, cell, key, x, y, width, labels) {
    const { low, high, chance } = cell.rows[key] ?? {};
    const values = Study.numbers(cell.splits.test[key]);
    const mean = Study.value(cell, key);
    const at = (value) => x(Study.scaled(key, value));
    const interval = low === undefined ? "" : `, rows ${Study.shown(key, low)} to ${Study.shown(key, high)}`;
    const by = chance ? `, by chance ${Study.shown(key, chance)}` : "";
    const said = `mean ${Study.shown(key, mean)}${Study.unit(key)} over ${values.length} seed${values.length === 1 ? "" : "s"}${interval}${by}`;
    const group = Lanes.lane(svg, cell.objective, y, width, labels, said, cell.mark);
    if (chance) {
      element(group, "rect", { x: at(0), y: y - 10, width: Math.max(0, at(chance) - at(0)), height: 20, class: "chance", "data-tip": `Chance alone: ${Study.shown(key, chance)}${Study.unit(key)}\n${Study.data.terms.chance}` });
    }
    if (low !== undefined) element(group, "path", { d: `M${at(low)} ${y}H${at(high)}M${at(low)} ${y - 4}v8M${at(high)} ${y - 4}v8`, class: "interval" });
    values.forEach((value, index) => {
      if (Number.isFinite(value)) element(group, "circle", { cx: at(value), cy: y, r: 3.4, class: "seed", "data-tip": `seed ${cell.seeds[index]}: ${Study.shown(key, value)}${Study.unit(key)}` });
    });
    if (Number.isFinite(mean)) mark(group, Study.objective(cell.objective).marker, at(mean), y, { class: "mean", "data-tip": `${Study.objective(cell.objective).full}\n${said}` });
    element(group, "text", { x: width, y: y + 4, class: "label strong end" }, Study.shown(key, mean));
  }

  /* What is drawn against what: an axis may not be the metric itself. */
  function axes() {
    const key = State.get("metric");
    const x = Study.CALIBRATION.includes(key) ? key : [...Study.CALIBRATION, key].find((name) => Study.metrics.has(name));
    const wanted = State.get("axis");
    return [x, wanted !== x ? wanted : Study.AGAINST.find((name) => name !== x && Study.metrics.has(name)) ?? wanted];
  }

  const bounded = (cell) => cell.scaled?.bounded.filter(Boolean).length ?? 0;

  /* As trained and after scaling, on the same rows where there is a temperature; else on all test rows. Without a
     finite optimum in every seed there is no mean after scaling that could be compared. */
  function ends(cell, key) {
    const before = Study.mean(cell.scaled?.before?.[key]);
    if (Number.isNaN(before)) return { raw: Study.value(cell, key), scaled: NaN };
    return { raw: before, scaled: bounded(cell) ? NaN : Study.mean(cell.scaled.after[key]) };
  }

  function pareto(svg, width) {
    const [across, up] = axes();
    const { kept } = Lanes.few(Study.sorted(across));
    const points = kept.map((cell) => ({ cell, x: ends(cell, across), y: ends(cell, up) }));
    const box = { left: 52, right: width - 14, top: 20, bottom: 20 + Math.max(190, Math.min(width * 0.72, Lanes.HEIGHT * Math.max(8, kept.length))) };
    const all = (name, key) => points.flatMap((point) => [point[name].raw, point[name].scaled]).map((value) => Study.scaled(key, value));
    const x = Axes.linear(Axes.extent(all("x", across), { zero: true, room: 0.1 }), [box.left, box.right]);
    const y = Axes.linear(Axes.extent(all("y", up), { room: 0.12 }), [box.bottom, box.top]);
    Axes.bottom(svg, x, box, Study.named(across));
    Axes.left(svg, y, box, Study.named(up));
    element(svg, "text", { x: box.left + 6, y: Study.metric(up).higher ? box.top + 14 : box.bottom - 8, class: "label" }, Study.metric(up).higher ? "\u2196 better" : "\u2199 better");
    const taken = [];
    const drawn = points.map((point) => pair(svg, point, across, up, x, y, taken));
    const first = (place) => (place?.objective === Study.candidate || Study.objective(place?.objective ?? 0).key === State.get("objective") ? 0 : 1);
    drawn.sort((a, b) => first(a) - first(b)).forEach((place) => place && label(svg, place, taken, box));
    const rows = points.flatMap(({ cell, x: a, y: b }) => ["raw", "scaled"].filter((state) => !Number.isNaN(a[state]))
      .map((state) => [Study.objective(cell.objective).key, state === "raw" ? "as trained" : "temperature-scaled", a[state], b[state]]));
    const how = Study.data.fitted_on === "halves" ? "Both on the half of the test rows that T was not fitted on." : "T was fitted on the validation rows.";
    const without = points.filter(({ cell }) => bounded(cell)).map(({ cell }) => Study.objective(cell.objective).name);
    const limit = without.length ? ` \u2020 No finite T in every seed, so not drawn after scaling: ${without.join(", ")}.` : "";
    return { height: box.bottom + 42, title: `${Study.named(across)} against ${Study.named(up)} on ${State.get("setting")}`,
      said: points.some(({ x: end }) => !Number.isNaN(end.scaled)) ? how + limit : limit.trim(), headings: ["objective", "state", across, up], rows };
  }

  function pair(svg, { cell, x: a, y: b }, across, up, x, y, taken) {
    const at = (state) => [x(Study.scaled(across, a[state])), y(Study.scaled(up, b[state]))];
    const { key, full, marker } = Study.objective(cell.objective);
    const group = element(svg, "g", { ...Study.classes(cell.objective, "pareto"), "data-name": key });
    group.addEventListener("click", () => Study.choose(cell.objective));
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
    return states.length ? { place: at("raw").every(Number.isFinite) ? at("raw") : at("scaled"), objective: cell.objective, flag: bounded(cell) > 0, group } : null;
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
    const there = new Set(Study.cells().map((cell) => cell.objective));
    const named = Study.data.objectives.filter((_, place) => there.has(place)).map(({ key, name }) => [key, name]);
    Controls.select("objective", "objective", [["", "none"], ...named]);
    const [across] = axes();
    Controls.select("axis", "axis", Study.AGAINST.filter((key) => Study.metrics.has(key) && key !== across).map((key) => [key, Study.metric(key).title]));
    Controls.get("axis").value = axes()[1];
    document.querySelectorAll(".sentence .setting").forEach((button) => button.setAttribute("aria-pressed", button.dataset.setting === State.get("setting")));
    Controls.get("metric-meaning").textContent = `${Study.metric(State.get("metric")).meaning} ${Study.metric(State.get("metric")).higher ? "" : "Less is better."}`;
  }

  /* Of very many objectives the best are shown until all are asked for. */
  function lanes() {
    const count = Study.sorted(State.get("metric")).length;
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
