"use strict";
/* Training curves: a line a run, epoch by epoch. */
const CurvesView = (() => {
  const { get, plain, look, number, axis } = Charts;
  const FIRST = "test nll";
  let data = null;

  function choices() {
    const setting = Number(Charts.fill("curves-setting", data.settings.map((name, place) => [place, name])));
    const there = data.runs.filter((run) => run.setting === setting && run.epochs.epoch.length);
    const series = [...new Set(there.flatMap((run) => Object.keys(run.epochs)))].filter((name) => name !== "epoch");
    const fresh = get("curves-series").options.length === 0;
    Charts.fill("curves-series", series.map((name) => [name, name.replaceAll("_", " ")]));
    if (fresh && series.includes(FIRST)) get("curves-series").value = FIRST;
    const seeds = [...new Set(there.map((run) => run.seed))].sort((a, b) => a - b);
    Charts.fill("curves-seed", [["", "all"], ...seeds.map((seed) => [seed, seed])]);
    return there;
  }

  function trace(run, series, first) {
    const { colour, dash } = look(run.objective);
    const name = plain(data.objectives[run.objective]);
    const y = run.epochs[series].map((value) => Number(value ?? NaN));
    return {
      type: "scatter", mode: y.length > 1 ? "lines" : "markers", name, legendgroup: name, showlegend: first, x: run.epochs.epoch, y,
      line: { color: colour, dash, width: 1.6 }, marker: { color: colour },
      hovertext: y.map((value, k) => `seed ${run.seed}, epoch ${run.epochs.epoch[k]}: ${number(value)}`), hoverinfo: "text+name",
    };
  }

  function show() {
    const there = choices();
    const [series, seed] = [get("curves-series").value, get("curves-seed").value];
    const runs = there.filter((run) => series in run.epochs && (seed === "" || run.seed === Number(seed)));
    const seen = new Set();
    const traces = runs.map((run) => {
      const first = !seen.has(run.objective);
      seen.add(run.objective);
      return trace(run, series, first);
    });
    const log = get("curves-log").checked;
    const title = series.replaceAll("_", " ");
    Charts.draw("curves", 520, traces, {
      showlegend: traces.length > 0 && data.objectives.length <= data.legend_at_most,
      xaxis: axis("epoch", { rangemode: "tozero", ...(Math.max(...runs.map((run) => run.epochs.epoch.length)) <= 12 ? { dtick: 1 } : {}) }), yaxis: axis(title, log ? { type: "log", dtick: "D2", tickformat: "~g" } : {}),
    });
    const setting = data.settings[get("curves-setting").value];
    Charts.say("curves", `${title} on ${setting}: ${traces.length} ${traces.length === 1 ? "run" : "runs"}${seed === "" ? ", all seeds" : ` of seed ${seed}`}.${log ? hidden(traces) : ""}`);
    Charts.table("curves", `${title} on ${setting}`, ["objective", "seed", "first epoch", "lowest", "in epoch", "last epoch"], runs.map((run) => summary(run, series)));
  }

  /* What a logarithmic axis leaves out. */
  function hidden(traces) {
    const count = traces.flatMap((one) => one.y).filter((value) => value <= 0).length;
    return count ? ` ${count} values that are not above 0 cannot be shown on a logarithmic axis.` : "";
  }

  function summary(run, series) {
    const values = run.epochs[series].map((value) => Number(value ?? NaN));
    const finite = values.filter(Number.isFinite);
    const lowest = finite.length ? Math.min(...finite) : NaN;
    const where = finite.length ? String(run.epochs.epoch[values.indexOf(lowest)]) : "\u2013";
    return [data.objectives[run.objective], String(run.seed), number(values[0]), number(lowest), where, number(values.at(-1))];
  }

  function start(given) {
    data = given;
    if (!Charts.register("curves", show)) return;
    ["setting", "series", "seed", "log"].forEach((name) => get(`curves-${name}`).addEventListener("change", show));
    show();
  }

  return { start };
})();
