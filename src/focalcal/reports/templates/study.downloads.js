"use strict";
/* What can be taken away: each table, and the numbers below them, as files made in the browser. */
const Downloads = (() => {
  const BINS = ["lower", "upper", "count", "confidence", "accuracy", "low", "high"];

  /* Text that begins like a spreadsheet's formula gets an apostrophe; numbers, of which -Infinity is text here, do not. */
  const inert = (value) => (
    typeof value === "string" && /^[=+\-@\t\r]./s.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value
  );
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(inert(value));
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (rows) => rows.map((row) => `${row.map(quoted).join(",")}\n`).join("");
  const named = (data, run) => [run.key, data.settings[run.setting], data.objectives[run.objective], run.seed];
  const NAMED = ["key", "setting", "objective", "seed"];

  function metrics(data) {
    const rows = data.runs.flatMap((run) => {
      const stored = Object.entries(run.metrics).map(([split, values]) => [split, "none", values]);
      const scaled = Object.entries(run.scaled ?? {}).map(([state, values]) => ["test", state, values]);
      return [...stored, ...scaled].flatMap(([split, state, values]) =>
        Object.entries(values).map(([metric, value]) => [...named(data, run), split, state, metric, value]));
    });
    return csv([[...NAMED, "split", "scaling", "metric", "value"], ...rows]);
  }

  function reliability(data) {
    const rows = data.runs.flatMap((run) => Object.entries(run.reliability).flatMap(([state, bins]) =>
      bins.count.map((_, at) => [...named(data, run), state, ...BINS.map((name) => bins[name][at])])));
    return csv([[...NAMED, "rows", ...BINS], ...rows]);
  }

  function epochs(data) {
    const series = [...new Set(data.runs.flatMap((run) => Object.keys(run.epochs)))];
    const rows = data.runs.flatMap((run) => run.epochs.epoch.map((_, at) =>
      [...named(data, run), ...series.map((name) => run.epochs[name]?.[at])]));
    return csv([[...NAMED, ...series], ...rows]);
  }

  const origins = (data) => JSON.stringify(data.runs.map(({ key, spec, provenance }) => ({ key, spec, provenance })), null, 2);

  const MAKERS = {
    metrics: [metrics, "metrics.csv", "text/csv"],
    reliability: [reliability, "reliability.csv", "text/csv"],
    epochs: [epochs, "epochs.csv", "text/csv"],
    origins: [origins, "runs.json", "application/json"],
  };

  function save(text, name, kind) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function content(data, { table, csv: what }) {
    if (table) return [data.tables[table], `${table}.csv`, "text/csv"];
    const [make, name, kind] = MAKERS[what];
    return [make(data), name, kind];
  }

  function start(data) {
    document.querySelectorAll("button.download").forEach((button) => {
      button.hidden = false;
      button.addEventListener("click", () => save(...content(data, button.dataset)));
    });
  }

  return { start, content };
})();
