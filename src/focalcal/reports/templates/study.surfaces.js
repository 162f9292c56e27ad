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

  function mark(point, lams, gammas, name, symbol, hue) {
    const [gamma, lam] = point.map(String);
    if (!gammas.includes(gamma) || !lams.includes(lam)) return [];
    return [{ type: "scatter", mode: "markers", x: [lam], y: [gamma], name, hoverinfo: "name",
      marker: { symbol, size: 16, color: hue, line: { color: colour("text"), width: 1.5 } } }];
  }

  function show() {
    const one = choices();
    const [lams, gammas] = [one.lams.map(String), one.gammas.map(String)];
    const values = one.values.map((row) => row.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null)));
    const text = values.map((row) => row.map((value) => (value === null ? "" : number(value, 3))));
    const unit = one.unit ? ` ${one.unit}` : "";
    const heat = {
      type: "heatmap", x: lams, y: gammas, z: values, colorscale: "Viridis", hoverongaps: false, xgap: 1, ygap: 1, name: one.label,
      text, texttemplate: lams.length <= 12 ? "%{text}" : "", hovertext: values.map((row, i) => row.map((value, j) =>
        `gamma ${gammas[i]}, lam ${lams[j]}<br>${number(value)}${unit}, ${one.seeds[i][j]} seeds`)), hoverinfo: "text",
      colorbar: { title: { text: `${one.label}${unit}`, side: "right" }, thickness: 14 },
    };
    const marks = [
      ...(one.minimum ? mark(one.minimum, lams, gammas, "lowest", "star-open", "#ffffff") : []),
      ...(one.operating_point ? mark(one.operating_point, lams, gammas, "operating point", "square-open", "#e8000b") : []),
    ];
    Charts.draw("surfaces", Math.max(340, 140 + 44 * gammas.length), [heat, ...marks], {
      plot_bgcolor: colour("grid"),
      xaxis: axis("lam", { type: "category", showgrid: false }), yaxis: axis("gamma", { type: "category", showgrid: false }),
    });
    const lowest = one.minimum ? ` Lowest at gamma ${one.minimum[0]}, lam ${one.minimum[1]}.` : "";
    Charts.say("surfaces", `${one.title}.${lowest} ${one.note}`);
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
