"use strict";
/* Where runs come from, listed when asked for, and all numbers as files. */
const RunsView = (() => {
  const { data, objective } = Study;

  const text = (value) => {
    if (value === null) return "none";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (Array.isArray(value)) return value.map(text).join(", ") || "none";
    return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
  };

  function list(details) {
    if (!details.open || details.querySelector("table")) return;
    const key = details.id.slice("run-".length);
    const facts = key === "shared" ? data.facts.shared : { key, ...data.facts.own[key] };
    const table = document.createElement("table");
    Object.entries(facts).forEach(([path, value]) => {
      const row = table.insertRow();
      const heading = document.createElement("th");
      heading.scope = "row";
      heading.textContent = path;
      row.append(heading);
      row.insertCell().textContent = text(value);
    });
    details.append(table);
  }

  const NAMED = ["key", "setting", "objective", "seed"];
  const each = (make) => data.cells.flatMap((cell) => cell.keys.flatMap((key, at) =>
    make(cell, at).map((row) => [key, data.settings[cell.setting], objective(cell.objective).key, cell.seeds[at], ...row])));

  function metrics() {
    const rows = each((cell, at) => [
      ...Object.entries(cell.splits).flatMap(([split, values]) => Object.entries(values).map(([metric, seeds]) => [split, "none", metric, seeds[at]])),
      ...["before", "after"].flatMap((state) => Object.entries(cell.scaled?.[state] ?? {}).map(([metric, seeds]) => ["test", state, metric, seeds[at]])),
    ].filter((row) => row[3] !== null));
    return Downloads.csv([[...NAMED, "split", "scaling", "metric", "value"], ...rows]);
  }

  function epochs() {
    const series = [...new Set(data.cells.flatMap((cell) => Object.keys(cell.epochs)))].filter((name) => name !== "epoch");
    const rows = each((cell, at) => cell.epochs.epoch.map((epoch, index) => [epoch, ...series.map((name) => cell.epochs[name]?.[at]?.[index])]));
    return Downloads.csv([[...NAMED, "epoch", ...series], ...rows]);
  }

  function reliability() {
    const rows = data.cells.flatMap((cell) => Object.entries(cell.bins).flatMap(([state, { seeds, count, confidence, correct }]) =>
      count.map((rows_, at) => [data.settings[cell.setting], objective(cell.objective).key, seeds, state, at / count.length, (at + 1) / count.length, rows_, confidence[at], correct[at]])));
    return Downloads.csv([["setting", "objective", "seeds", "scaling", "from", "to", "rows", "confidence_sum", "right"], ...rows]);
  }

  const FILES = {
    metrics: [metrics, "metrics.csv", "text/csv"],
    reliability: [reliability, "reliability.csv", "text/csv"],
    epochs: [epochs, "epochs.csv", "text/csv"],
    origins: [() => JSON.stringify(data.facts, null, 2), "runs.json", "application/json"],
  };

  function start() {
    document.querySelectorAll("details.facts").forEach((details) => details.addEventListener("toggle", () => list(details)));
    document.querySelectorAll("button[data-csv]").forEach((button) => {
      button.hidden = false;
      const [make, name, kind] = FILES[button.dataset.csv];
      button.addEventListener("click", () => Downloads.save(make(), name, kind));
    });
    const shared = document.getElementById("run-shared");
    if (shared) shared.hidden = !Object.keys(data.facts.shared).length;
  }

  return { start, text: (what) => FILES[what][0]() };
})();
