"use strict";
/* Charts: drawn when they are nearly in sight, again when what they show changes, each with its numbers and as a file.

   Charts.add(id, draw) fills <figure class="chart" id="chart-ID">. draw(svg, width) draws into an empty SVG of that
   width and returns {height, title, said, headings, rows}: what the numbers are called, and the numbers, which are the
   table below the chart and the CSV. */
const Charts = (() => {
  const PAPER = 680; // pixels across a page between its margins
  const charts = new Map();
  let printing = false;

  function button(parent, text, label, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    parent.append(made);
  }

  function add(id, draw) {
    const figure = document.getElementById(`chart-${id}`);
    if (!figure) return;
    const svg = Svg.element(null, "svg", { role: "group" });
    const plot = document.createElement("div");
    plot.className = "plot";
    plot.append(svg);
    const said = document.createElement("p");
    said.className = "said soft";
    said.setAttribute("role", "status");
    const tools = document.createElement("div");
    tools.className = "tools screen";
    const numbers = document.createElement("details");
    numbers.className = "numbers screen";
    const summary = document.createElement("summary");
    summary.textContent = "numbers";
    numbers.append(summary);
    figure.replaceChildren(plot, said, numbers, tools);
    const chart = { id, draw, figure, svg, said, numbers, near: false, stale: true, made: null };
    button(tools, "CSV", `${id}: numbers as CSV`, () => Downloads.save(csv(id), `${id}.csv`, "text/csv"));
    button(tools, "SVG", `${id}: picture as SVG`, () => Downloads.save(Downloads.alone(svg), `${id}.svg`, "image/svg+xml"));
    button(tools, "PNG", `${id}: picture as PNG`, async () => Downloads.save(await Downloads.png(svg), `${id}.png`, "image/png"));
    numbers.addEventListener("toggle", () => list(chart));
    charts.set(id, chart);
    watcher.observe(figure);
  }

  const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
    const chart = charts.get(entry.target.id.slice("chart-".length));
    chart.near = entry.isIntersecting;
    if (chart.near && chart.stale) paint(chart);
  }), { rootMargin: "400px" });

  function paint(chart) {
    const width = printing ? Math.min(PAPER, chart.figure.dataset.paper ?? PAPER) : chart.figure.clientWidth;
    if (!width) return;
    chart.stale = false;
    const focused = chart.svg.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    chart.svg.replaceChildren();
    chart.made = chart.draw(chart.svg, width);
    const { height, title, said } = chart.made;
    chart.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.svg.setAttribute("aria-label", title);
    chart.said.textContent = said ?? "";
    chart.figure.classList.toggle("empty", !chart.made.rows.length);
    list(chart);
    if (focused) chart.svg.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  function list({ numbers, made }) {
    numbers.querySelector("div")?.remove();
    if (!numbers.open || !made) return;
    const frame = document.createElement("div");
    frame.className = "scroll";
    frame.tabIndex = 0;
    const table = document.createElement("table");
    table.createCaption().textContent = made.title;
    const top = table.createTHead().insertRow();
    made.headings.forEach((text) => {
      const heading = document.createElement("th");
      heading.scope = "col";
      heading.textContent = text;
      top.append(heading);
    });
    const body = table.createTBody();
    made.rows.forEach((row) => {
      const line = body.insertRow();
      row.forEach((value) => {
        const cell = line.insertCell();
        cell.textContent = typeof value === "number" ? Svg.number(value) : value ?? "\u2013";
        if (typeof value === "number") cell.className = "right";
      });
    });
    frame.append(table);
    numbers.append(frame);
  }

  function csv(id) {
    const { headings, rows } = charts.get(id).made;
    return Downloads.csv([headings, ...rows]);
  }

  /* What is near the window at once, the others when they come there. */
  function redraw(ids = [...charts.keys()]) {
    ids.map((id) => charts.get(id)).filter(Boolean).forEach((chart) => {
      chart.stale = true;
      if (chart.near || printing) paint(chart);
    });
  }

  /* Those before and in an element, so that it stays where it is scrolled to. */
  function drawUpTo(target) {
    charts.forEach((chart) => {
      const place = target.compareDocumentPosition(chart.figure);
      const before = place & Node.DOCUMENT_POSITION_PRECEDING || place & Node.DOCUMENT_POSITION_CONTAINED_BY;
      if (chart.stale && before) paint(chart);
    });
  }

  function forPaper(on) {
    printing = on;
    redraw();
    if (!on) charts.forEach((chart) => { if (chart.near) paint(chart); });
  }

  let wide = 0;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === wide) return;
    wide = document.documentElement.clientWidth;
    redraw();
  });

  return { add, redraw, drawUpTo, forPaper, csv, made: (id) => charts.get(id)?.made };
})();
