"use strict";
/* Where runs come from, listed when asked for, and all numbers as files. */
const RunsView = (() => {
  const { data } = Study;

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

  function metrics() {
    const rows = data.runs.flatMap(({ key, setting, objective, seed, splits, scaled }) =>
      [...Object.entries(splits).map(([split, values]) => [split, "none", values]), ...Object.entries(scaled).map(([state, values]) => ["test", state, values])]
        .flatMap(([split, state, values]) => Object.entries(values).map(([metric, value]) => [key, setting, objective, seed, split, state, metric, value])));
    return Downloads.csv([["key", "setting", "objective", "seed", "split", "scaling", "metric", "value"], ...rows]);
  }

  /* Every view of a kind, one below the other. */
  function views(kind) {
    const tables = Study.all(kind).map((view) => ({ view, ...Study.table(view) }));
    const headings = [...new Set(tables.flatMap((table) => table.headings))];
    const rows = tables.flatMap((table) => table.rows.map((row) => [table.view.setting, table.view.choice, ...headings.map((name) => row[table.headings.indexOf(name)])]));
    return Downloads.csv([["setting", "shown", ...headings], ...rows]);
  }

  const FILES = {
    metrics: [metrics, "metrics.csv", "text/csv"],
    reliability: [() => views("reliability"), "reliability.csv", "text/csv"],
    epochs: [() => views("training"), "epochs.csv", "text/csv"],
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
