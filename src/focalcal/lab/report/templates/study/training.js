"use strict";
/* Training: the mean over seeds after each epoch with the band from lowest to highest; a line's seeds when pointed at. */
const TrainingView = (() => {
  const { element, path, mark } = Svg;
  let pointed = null; // the line whose seeds are shown

  const series = () => {
    const there = Study.views("training").map(({ choice }) => choice);
    const wanted = [State.get("series"), `test ${State.get("metric")}`, "test nll", there[0]];
    return { there, chosen: wanted.find((name) => there.includes(name)) };
  };

  /* A row with its numbers as numbers, and its seeds. */
  function line(row) {
    const names = Object.keys(row).filter((name) => name.startsWith("seed "));
    const [mean, low, high] = [row.mean, row.min, row.max].map(Study.numbers);
    return { objective: row.objective, epochs: row.epoch, mean, low, high, seeds: names.map((name) => ({ name, values: Study.numbers(row[name]) })) };
  }

  function draw(svg, width) {
    const { chosen } = series();
    const view = Study.view("training", chosen);
    if (!view) return Study.nothing("No run of this setting has records of its epochs.");
    const metric = chosen.split(" ")[1];
    const { kept, left } = Lanes.few(view.rows);
    const lines = kept.map(line);
    const scale = (value) => Study.scaled(metric, value);
    const heights = lines.flatMap(({ low, high }) => [...low, ...high]).map(scale).filter(Number.isFinite);
    const log = State.get("log") === "1" && Math.min(...heights) > 0;
    const key = width < 560 ? 0 : Math.min(210, 52 + 6.9 * Math.max(14, ...lines.map(({ objective }) => Study.objective(objective).name.length)));
    const box = { left: 56, right: width - key - 12, top: 24, bottom: 24 + Math.max(240, Math.min(380, width * 0.42)) };
    const [low, high] = [Math.min(...heights), Math.max(...heights)];
    const y = log ? Axes.logarithmic([low / 1.05, high * 1.05], [box.bottom, box.top]) : Axes.linear(Axes.extent(heights, { zero: true }), [box.bottom, box.top]);
    const last = Math.max(...lines.flatMap(({ epochs }) => epochs));
    const x = Axes.linear([Math.min(...lines.map(({ epochs }) => epochs[0])), Math.max(last, 2)], [box.left, box.right]);
    Axes.left(svg, y, box, `${chosen.split(" ")[0]} ${Study.metric(metric).named}`);
    Axes.bottom(svg, x, box, "epoch", { count: 8, grid: false, format: (value) => (Number.isInteger(value) ? String(value) : "") });
    lines.forEach((one) => band(svg, one, x, y, scale));
    const seedsAt = element(svg, "g", { class: "seeds" });
    lines.forEach((one) => meanLine(svg, one, x, y, scale));
    const below = legend(svg, lines, box, width, key > 0);
    const chosenLine = lines.find(({ objective }) => objective === State.get("objective"));
    if (chosenLine) seedLines(seedsAt, chosenLine, x, y, scale);
    hover(svg, lines, box, x, y, scale, seedsAt);
    return Study.made(view, box.bottom + 42 + below, left);
  }

  function band(svg, { objective, epochs, low, high }, x, y, scale) {
    const points = epochs.map((epoch, at) => [epoch, low[at], high[at]]).filter(([, a, b]) => Number.isFinite(a) && Number.isFinite(b));
    if (points.length < 2) return;
    const outline = [...points.map(([epoch, , b]) => [x(epoch), y(scale(b))]), ...points.reverse().map(([epoch, a]) => [x(epoch), y(scale(a))])];
    element(svg, "path", { d: `${path(outline)}Z`, ...Study.classes(objective, "band") });
  }

  function meanLine(svg, { objective, epochs, mean }, x, y, scale) {
    const { dash, marker } = Study.objective(objective);
    const group = element(svg, "g", Study.classes(objective, "curveline"));
    element(group, "path", { d: path(epochs.map((epoch, at) => [x(epoch), y(scale(mean[at]))])), class: "line", "stroke-dasharray": dash.join(" ") || null });
    const every = Math.max(1, Math.ceil(epochs.length / 8));
    epochs.forEach((epoch, at) => {
      if ((at % every === 0 || at === epochs.length - 1) && Number.isFinite(mean[at])) mark(group, marker, x(epoch), y(scale(mean[at])), { class: "solid", scale: 0.7 });
    });
  }

  function seedLines(group, { objective, epochs, seeds }, x, y, scale) {
    const style = `--c: var(--o${Study.objective(objective).place})`;
    seeds.forEach(({ values }) => element(group, "path", { d: path(epochs.map((epoch, at) => [x(epoch), y(scale(values[at]))])), class: "seedline", style }));
  }

  /* Beside the lines, or where there is no room in two columns below; returns the height that it takes there. */
  function legend(svg, lines, box, width, beside) {
    const rows = Math.ceil(lines.length / 2);
    lines.forEach(({ objective }, at) => {
      const left = beside ? box.right + 12 : (at < rows ? 4 : width / 2);
      const y = beside ? box.top + 8 + at * 20 : box.bottom + 56 + (at % rows) * 22;
      const { name, full, dash, marker } = Study.objective(objective);
      const group = element(svg, "g", { ...Study.classes(objective, "curveline lane"), ...Study.button(objective), "aria-label": `highlight ${full}` });
      element(group, "rect", { x: left, y: y - 10, width: 150, height: 20, class: "ground" });
      element(group, "path", { d: `M${left + 4} ${y}h24`, class: "line", "stroke-dasharray": dash.join(" ") || null });
      mark(group, marker, left + 16, y, { class: "solid", scale: 0.75 });
      element(group, "text", { x: left + 34, y: y + 4, class: "label strong name", "data-tip": full }, Lanes.cut(name, beside ? width - left : 138));
      Study.pressable(group, objective);
    });
    return beside ? Math.max(0, 20 * lines.length + 8 + box.top - box.bottom - 30) : rows * 22 + 10;
  }

  /* The nearest line's numbers beside the pointer, and its seeds. */
  function hover(svg, lines, box, x, y, scale, seedsAt) {
    const cover = element(svg, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "cover", "data-tip": "" });
    cover.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const [px, py] = [(event.clientX - frame.left) * (svg.viewBox.baseVal.width / frame.width), (event.clientY - frame.top) * (svg.viewBox.baseVal.height / frame.height)];
      let best = null;
      lines.forEach((one) => {
        const at = one.epochs.reduce((near, epoch, index) => (Math.abs(x(epoch) - px) < Math.abs(x(one.epochs[near]) - px) ? index : near), 0);
        const away = Math.abs(y(scale(one.mean[at])) - py);
        if (Number.isFinite(away) && (!best || away < best.away)) best = { one, at, away };
      });
      if (!best) return;
      const { one, at } = best;
      const { full } = Study.objective(one.objective);
      cover.dataset.tip = `${full}, epoch ${one.epochs[at]}\nmean ${Svg.number(scale(one.mean[at]), 4)}\n${one.seeds.map(({ name, values }) => `${name}: ${Svg.number(scale(values[at]), 4)}`).slice(0, 12).join("\n")}`;
      if (pointed !== one) {
        pointed = one;
        seedsAt.replaceChildren();
        seedLines(seedsAt, one, x, y, scale);
      }
    });
    cover.addEventListener("pointerleave", () => { pointed = null; seedsAt.replaceChildren(); });
    cover.addEventListener("click", () => { if (pointed) Study.choose(pointed.objective); });
  }

  function controls() {
    const { there, chosen } = series();
    Controls.select("series", "series", there.map((name) => [name, name.replaceAll("_", " ")]));
    Controls.get("series").value = chosen ?? "";
    Controls.get("log").checked = State.get("log") === "1";
  }

  function define() {
    State.define("series", "");
    State.define("log", "1", ["0", "1"]);
  }

  function start() {
    if (!Controls.get("chart-training")) return;
    Controls.listen("series", "series");
    Controls.get("log").addEventListener("change", (event) => State.set({ log: event.target.checked ? "1" : "0" }));
    State.on(controls);
    Charts.add("training", draw);
  }

  return { define, start };
})();
