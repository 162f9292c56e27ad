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

  const MARKS = [["minimum", "\u2605"], ["operating_point", "\u25a1"]]; // before the number in its cell
  const PRINTED = 12; // columns whose numbers can be read

  const marks = (one, i, j) => MARKS.filter(([name]) => one[name] && one[name][0] === one.gammas[i] && one[name][1] === one.lams[j]).map(([, sign]) => sign).join("");

  function show() {
    const one = choices();
    const [lams, gammas] = [one.lams.map(String), one.gammas.map(String)];
    const values = one.values.map((row) => row.map((value) => (Number.isFinite(Number(value)) ? Number(value) : null)));
    const printed = (value) => (value === null || lams.length > PRINTED ? "" : number(value, 3));
    const text = values.map((row, i) => row.map((value, j) => `${marks(one, i, j)} ${printed(value)}`.trim()));
    const unit = one.unit ? ` ${one.unit}` : "";
    const heat = {
      type: "heatmap", x: lams, y: gammas, z: values, colorscale: "Viridis", hoverongaps: false, xgap: 1, ygap: 1, name: one.label,
      text, texttemplate: "%{text}", hovertext: values.map((row, i) => row.map((value, j) =>
        `gamma ${gammas[i]}, lam ${lams[j]}<br>${number(value)}${unit}, ${one.seeds[i][j]} seeds`)), hoverinfo: "text",
      colorbar: { title: { text: `${one.label}${unit}`, side: "right" }, thickness: 14 },
    };
    Charts.draw("surfaces", Math.max(340, 140 + 44 * gammas.length), [heat], {
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
