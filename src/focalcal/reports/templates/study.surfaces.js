"use strict";
/* A metric over gamma and lam, a cell a pair, on an even grid: the values are far from evenly spaced. */
const SurfacesView = (() => {
  const { get, number, axis, colour } = Charts;
  let data = null;

  function choices() {
    const settings = [...new Set(data.surfaces.map((one) => one.setting))];
    const setting = Charts.fill("surfaces-setting", settings.map((name, place) => [place, name]));
    const there = data.surfaces.filter((one) => one.setting === settings[Number(setting)]);
    const metric = Charts.fill("surfaces-metric", there.map((one, place) => [place, one.label]));
    return there[Number(metric)];
  }

  const RED = "#e8000b";
  const READABLE = 42; // pixels of a cell whose number can be read
  const AROUND = 190; // pixels of the chart that are no cells

  /* The place of a point in the grid, from 0; null if it is not there. */
  function place(one, point) {
    const [row, column] = point ? [one.gammas.indexOf(point[0]), one.lams.indexOf(point[1])] : [-1, -1];
    return row < 0 || column < 0 ? null : { row, column };
  }

  /* A red frame around the cell of the operating point. */
  function frame(one) {
    const at = place(one, one.operating_point);
    if (!at) return [];
    const [x, y] = [[at.column - 0.48, at.column + 0.48], [at.row - 0.47, at.row + 0.47]];
    return [{ type: "rect", name: "operating point", x0: x[0], x1: x[1], y0: y[0], y1: y[1], line: { color: RED, width: 3 } }];
  }

  function show() {
    const one = choices();
    const [lams, gammas] = [one.lams.map(String), one.gammas.map(String)];
    const values = one.values.map((row) => row.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null)));
    const roomy = (get("surfaces-chart").clientWidth - AROUND) / lams.length >= READABLE;
    const lowest = place(one, one.minimum);
    const star = (i, j) => (lowest && lowest.row === i && lowest.column === j ? "\u2605 " : "");
    const text = values.map((row, i) => row.map((value, j) => `${star(i, j)}${value === null || !roomy ? "" : number(value, 3)}`.trim()));
    const unit = one.unit ? ` ${one.unit}` : "";
    const heat = {
      type: "heatmap", x: lams, y: gammas, z: values, colorscale: "Viridis", hoverongaps: false, xgap: 1, ygap: 1, name: one.label,
      text, texttemplate: "%{text}", hovertext: values.map((row, i) => row.map((value, j) =>
        `gamma ${gammas[i]}, lam ${lams[j]}<br>${number(value)}${unit}, ${one.seeds[i][j]} seeds`)), hoverinfo: "text",
      colorbar: { title: { text: `${one.label}${unit}`, side: "right" }, thickness: 14 },
    };
    Charts.draw("surfaces", Math.max(340, 140 + 44 * gammas.length), [heat], {
      plot_bgcolor: colour("grid"), shapes: frame(one),
      xaxis: axis("lam", { type: "category", showgrid: false }), yaxis: axis("gamma", { type: "category", showgrid: false }),
    });
    const named = (point, what) => (place(one, point) ? ` ${what} at gamma ${point[0]}, lam ${point[1]}.` : "");
    Charts.say("surfaces", `${one.title}.${named(one.minimum, "Lowest (star)")}${named(one.operating_point, "Operating point (red frame)")} ${one.note}`);
    Charts.table("surfaces", `${one.title}${unit && `, in${unit}`}`, ["gamma", ...lams.map((lam) => `lam ${lam}`)],
      values.map((row, i) => [gammas[i], ...row.map((value) => number(value))]));
  }

  function start(given) {
    data = given;
    if (!Charts.register("surfaces", show)) return;
    ["setting", "metric"].forEach((name) => get(`surfaces-${name}`).addEventListener("change", show));
    show();
  }

  return { start };
})();
