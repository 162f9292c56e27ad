"use strict";
/* Reliability diagrams: confidence against accuracy above, how many rows a bin has below. */
const ReliabilityView = (() => {
  const { get, plain, look, colour, number, axis } = Charts;
  const STATES = { whole: "not scaled, all test rows", before: "before temperature scaling", after: "after temperature scaling" };
  const SPARSE = 0.01; // of the rows
  let data = null;

  const at = (objective, seed) =>
    data.runs.find((run) => run.setting === Number(get("reliability-setting").value) && run.objective === objective && run.seed === seed);
  const state = () => document.querySelector("input[name=reliability-state]:checked").value;

  function choices() {
    const setting = Number(Charts.fill("reliability-setting", data.settings.map((name, place) => [place, name])));
    const there = data.runs.filter((run) => run.setting === setting && Object.keys(run.reliability).length);
    const objectives = [...new Set(there.map((run) => run.objective))].map((place) => [place, data.objectives[place]]);
    const objective = Number(Charts.fill("reliability-objective", objectives));
    Charts.fill("reliability-other", [["", "nothing"], ...objectives.filter(([place]) => place !== objective)]);
    const seeds = there.filter((run) => run.objective === objective).map((run) => run.seed);
    Charts.fill("reliability-seed", seeds.map((seed) => [seed, seed]));
  }

  function traces(run, bins, place, of) {
    const { colour: hue, symbol, dash } = look(run.objective);
    const total = bins.count.reduce((a, b) => a + b, 0);
    const full = bins.count.flatMap((count, bin) => (count > 0 ? [bin] : []));
    const pick = (name) => full.map((bin) => Number(bins[name][bin]));
    const [x, y, low, high, count] = ["confidence", "accuracy", "low", "high", "count"].map(pick);
    const text = full.map((bin, k) =>
      `confidence ${number(x[k])}<br>accuracy ${number(y[k])} (${number(low[k], 3)} to ${number(high[k], 3)})<br>${count[k]} of ${total} rows`);
    const name = plain(data.objectives[run.objective]);
    const dense = count.map((one) => one >= SPARSE * total);
    const line = {
      type: "scatter", mode: "lines", name, legendgroup: name, showlegend: false, hoverinfo: "skip", line: { color: hue, dash, width: 2 },
      x: x.filter((_, k) => dense[k]), y: y.filter((_, k) => dense[k]),
    };
    const points = {
      type: "scatter", mode: "markers", name, x, y, hovertext: text, hoverinfo: "text+name", legendgroup: name, cliponaxis: false,
      marker: { color: dense.map((one) => (one ? hue : colour("ground"))), symbol, size: 9, line: { color: hue, width: 2 } },
      error_y: { type: "data", symmetric: false, array: high.map((one, k) => one - y[k]), arrayminus: y.map((one, k) => one - low[k]), color: hue, thickness: 1.2, width: 4 },
    };
    const edges = full.map((bin) => [Number(bins.lower[bin]), Number(bins.upper[bin])]);
    const bars = {
      type: "bar", name, legendgroup: name, showlegend: false, xaxis: "x", yaxis: "y2", hovertext: text, hoverinfo: "text+name",
      x: edges.map(([from, to]) => from + ((to - from) * (0.5 + place)) / of), y: count, width: edges.map(([from, to]) => (0.9 * (to - from)) / of),
      marker: { color: hue },
    };
    return [line, points, bars];
  }

  function rows(run, bins) {
    return bins.count.flatMap((count, bin) => (count > 0
      ? [[data.objectives[run.objective], `${number(bins.lower[bin], 3)} to ${number(bins.upper[bin], 3)}`, String(count),
        ...["confidence", "accuracy", "low", "high"].map((name) => number(bins[name][bin]))]]
      : []));
  }

  function show() {
    choices();
    const seed = Number(get("reliability-seed").value);
    const kind = state();
    const wanted = [get("reliability-objective").value, get("reliability-other").value].filter((one) => one !== "").map(Number);
    const runs = wanted.map((objective) => at(objective, seed));
    const drawable = runs.filter((run) => run?.reliability[kind]);
    const lacking = wanted.filter((_, k) => !runs[k]?.reliability[kind]).map((objective) => data.objectives[objective]);
    const diagonal = { type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], name: "calibrated", line: { color: colour("soft"), dash: "dash", width: 1.5 }, hoverinfo: "skip" };
    Charts.draw("reliability", 560, [diagonal, ...drawable.flatMap((run, place) => traces(run, run.reliability[kind], place, drawable.length))], {
      barmode: "overlay", legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      margin: { l: 60, r: 20, t: 40, b: 50 },
      xaxis: axis("confidence", { range: [0, 1.005], anchor: "y2", constrain: "domain" }),
      yaxis: axis("accuracy", { range: [-0.02, 1.02], domain: [0.32, 1] }),
      yaxis2: axis("rows", { domain: [0, 0.22], rangemode: "tozero" }),
    });
    const told = drawable.map((run) => {
      const metrics = kind === "whole" ? run.metrics.test : run.scaled[kind];
      const fitted = kind === "after" ? ` (T = ${number(run.temperature, 3)}${run.at_bound ? ", a bound: no finite optimum" : ""})` : "";
      return `${data.objectives[run.objective]}${fitted}: ECE ${number(100 * metrics?.ece, 3)} %, NLL ${number(metrics?.nll)}`;
    });
    const missing = lacking.map((name) => `${name}: there is no such diagram of seed ${seed}`);
    Charts.say("reliability", `${data.settings[get("reliability-setting").value]}, seed ${seed}, ${STATES[kind]}. ${[...told, ...missing].join("; ")}.`);
    Charts.table("reliability", `${data.settings[get("reliability-setting").value]}, seed ${seed}, ${STATES[kind]}`,
      ["objective", "bin", "rows", "confidence", "accuracy", "interval from", "to"], drawable.flatMap((run) => rows(run, run.reliability[kind])));
  }

  function start(given) {
    data = given;
    if (!Charts.register("reliability", show)) return;
    ["setting", "objective", "other", "seed"].forEach((name) => get(`reliability-${name}`).addEventListener("change", show));
    document.querySelectorAll("input[name=reliability-state]").forEach((radio) => radio.addEventListener("change", show));
    show();
  }

  return { start };
})();
