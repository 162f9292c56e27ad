"use strict";
/* The chosen metric before and after temperature scaling, a line per objective with its T. */
const TemperatureView = (() => {
  const { element, mark } = Svg;

  const usable = (cell, values) => (values ?? []).filter((_, at) => !cell.scaled.bounded[at]);
  const finite = (cell) => cell.scaled.temperature.filter((t, at) => t !== null && !cell.scaled.bounded[at]).map(Number);

  function draw(svg, width) {
    const here = Study.cells().filter((cell) => cell.scaled);
    const keys = [...new Set(here.flatMap((cell) => Object.keys(cell.scaled.before)))];
    const key = keys.includes(State.get("metric")) ? State.get("metric") : keys.includes("ece") ? "ece" : keys[0];
    const bounded = here.map((cell) => [cell, cell.scaled.bounded.filter(Boolean).length]).filter(([, count]) => count);
    const { kept, left } = Lanes.few(Study.sorted(State.get("metric"), here).filter((cell) => finite(cell).length));
    const points = kept.map((cell) => ({ cell, ends: ["before", "after"].map((when) => Study.scaled(key, Study.mean(usable(cell, cell.scaled[when][key])))), t: Study.mean(finite(cell)) }));
    const rows = here.flatMap((cell) => cell.seeds.map((seed, at) => [Study.objective(cell.objective).key, seed, cell.scaled.bounded[at] ? null : cell.scaled.temperature[at],
      cell.scaled.before[key]?.[at] ?? null, cell.scaled.after[key]?.[at] ?? null, cell.scaled.bounded[at] ? "no finite optimum" : ""]));
    const told = bounded.map(([cell, count]) => `${Study.objective(cell.objective).name} (${count} of ${cell.seeds.length})`).join(", ");
    const said = [key !== State.get("metric") ? `${Study.metric(State.get("metric")).title} was not measured after scaling; this is ${Study.metric(key)?.title ?? key}.` : "",
      told ? `No finite optimum, and in no mean: ${told}.` : "", left ? `${left} more objectives are not shown.` : ""].join(" ").trim();
    const made = { title: `${key ? Study.named(key) : ""} before and after temperature scaling on ${State.get("setting")}`, said,
      headings: ["objective", "seed", "T", `${key} before`, `${key} after`, "note"], rows };
    if (!points.length) return { height: 6, ...made };
    const label = Math.min(230, Math.max(150, width * 0.3));
    const box = { left: 52, right: width - label, top: 46, bottom: 46 + Math.max(220, Math.min(420, 26 * points.length + 60)) };
    const y = Axes.linear(Axes.extent(points.flatMap(({ ends }) => ends), { zero: Study.metric(key).percent }), [box.bottom, box.top]);
    Axes.left(svg, y, box, "", {});
    element(svg, "text", { x: 4, y: 14, class: "label axis" }, Study.named(key));
    const xs = [box.left + 26, box.right - 10];
    ["before", "after"].forEach((word, at) => element(svg, "text", { x: xs[at], y: box.top - 8, class: `label strong ${at ? "end" : "middle"}` }, word));
    const places = apart(points.map(({ ends }) => y(ends[1])), 15, box.top + 4, box.bottom + 6);
    points.forEach(({ cell, ends, t }, at) => line(svg, cell, ends, t, xs, y, places[at], width, key));
    return { height: box.bottom + 16, ...made };
  }

  function line(svg, cell, ends, t, xs, y, place, width, key) {
    const { key: name, full, marker, name: short, dash } = Study.objective(cell.objective);
    const tip = `${full}\n${Svg.number(ends[0], 4)} \u2192 ${Svg.number(ends[1], 4)}, T = ${Svg.fixed(t, 3)}: ${t > 1 ? "overconfident before" : "underconfident before"}`;
    const group = element(svg, "g", { ...Study.classes(cell.objective, "slope"), "data-name": name, "data-tip": tip });
    group.addEventListener("click", () => Study.choose(cell.objective));
    element(group, "path", { d: `M${xs[0]} ${y(ends[0])}L${xs[1]} ${y(ends[1])}`, class: "line", "stroke-dasharray": dash.join(" ") || null });
    mark(group, marker, xs[0], y(ends[0]), { class: "hollow" });
    mark(group, marker, xs[1], y(ends[1]), { class: "solid" });
    element(group, "path", { d: `M${xs[1] + 8} ${y(ends[1])}L${xs[1] + 20} ${place}`, class: "leader" });
    const room = width - xs[1] - 24;
    const values = width < 480 ? "" : `${Svg.fixed(ends[1], Study.metric(key).percent ? 2 : 3)}, `;
    const label = element(group, "text", { x: xs[1] + 24, y: place + 4, class: "label strong name" }, Lanes.cut(short, room - (values ? 68 : 26)));
    element(label, "tspan", { class: "label" }, `  ${values}T ${Svg.fixed(t, 2)}`);
  }

  /* Heights near the wanted ones, in their order, no two nearer than `least`. */
  function apart(wanted, least, top, bottom) {
    const order = wanted.map((_, at) => at).sort((a, b) => wanted[a] - wanted[b]);
    const found = [...wanted];
    let last = top - least;
    order.forEach((at) => { found[at] = Math.max(wanted[at], last + least); last = found[at]; });
    let next = bottom + least;
    [...order].reverse().forEach((at) => { found[at] = Math.min(found[at], next - least); next = found[at]; });
    return found;
  }

  return { start: () => Charts.add("slopes", draw) };
})();
