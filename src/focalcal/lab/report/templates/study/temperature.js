"use strict";
/* The chosen metric before and after temperature scaling, a line per objective with its T. */
const TemperatureView = (() => {
  const { element, mark } = Svg;

  function draw(svg, width) {
    const there = Study.views("scaling").filter(({ rows }) => rows.some(({ before }) => Number.isFinite(Study.number(before))));
    const view = there.find(({ choice }) => choice === State.get("metric")) ?? there.find(({ choice }) => choice === "ece") ?? there[0];
    if (!view) return Study.nothing(Study.views("scaling")[0]?.note ?? "No temperature was fitted in this setting.");
    const key = view.choice;
    const { kept, left } = Lanes.few(view.rows.filter(({ t }) => Number.isFinite(Study.number(t))));
    const points = kept.map((row) => ({ ...row, ends: [row.before, row.after].map((value) => Study.scaled(key, value)) }));
    const label = Math.min(230, Math.max(150, width * 0.3));
    const box = { left: 52, right: width - label, top: 46, bottom: 46 + Math.max(220, Math.min(420, 26 * points.length + 60)) };
    const y = Axes.linear(Axes.extent(points.flatMap(({ ends }) => ends), { zero: Study.metric(key).percent }), [box.bottom, box.top]);
    Axes.left(svg, y, box, "", {});
    element(svg, "text", { x: 4, y: 14, class: "label axis" }, Study.metric(key).named);
    const xs = [box.left + 26, box.right - 10];
    ["before", "after"].forEach((word, at) => element(svg, "text", { x: xs[at], y: box.top - 8, class: `label strong ${at ? "end" : "middle"}` }, word));
    const places = apart(points.map(({ ends }) => y(ends[1])), 15, box.top + 4, box.bottom + 6);
    points.forEach((point, at) => line(svg, point, xs, y, places[at], width, key));
    const other = key === State.get("metric") ? "" : `${Study.metric(State.get("metric")).title} was not measured after scaling; this is ${Study.metric(key).title}.`;
    return Study.made(view, box.bottom + 16, other, view.note, left);
  }

  function line(svg, { objective, ends, t }, xs, y, place, width, key) {
    const { full, marker, name, dash } = Study.objective(objective);
    const tip = `${full}\n${Svg.number(ends[0], 4)} \u2192 ${Svg.number(ends[1], 4)}, T = ${Svg.fixed(t, 3)}: ${t > 1 ? "overconfident before" : "underconfident before"}`;
    const group = element(svg, "g", { ...Study.classes(objective, "slope"), "data-name": objective, "data-tip": tip });
    group.addEventListener("click", () => Study.choose(objective));
    element(group, "path", { d: `M${xs[0]} ${y(ends[0])}L${xs[1]} ${y(ends[1])}`, class: "line", "stroke-dasharray": dash.join(" ") || null });
    mark(group, marker, xs[0], y(ends[0]), { class: "hollow" });
    mark(group, marker, xs[1], y(ends[1]), { class: "solid" });
    element(group, "path", { d: `M${xs[1] + 8} ${y(ends[1])}L${xs[1] + 20} ${place}`, class: "leader" });
    const room = width - xs[1] - 24;
    const values = width < 480 ? "" : `${Svg.fixed(ends[1], Study.metric(key).percent ? 2 : 3)}, `;
    const label = element(group, "text", { x: xs[1] + 24, y: place + 4, class: "label strong name" }, Lanes.cut(name, room - (values ? 68 : 26)));
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
