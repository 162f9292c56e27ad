"use strict";
/* What the charts share: colours of the page, text that plotly must not read as HTML, selects, and the table beside. */
const Charts = (() => {
  const HUES = 10;
  const NARROW = 600; // pixels: below, the buttons would cover the legend
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];
  const drawn = new Map(); // chart's id -> what draws it again

  const get = (id) => document.getElementById(id);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  /* Colour, dash and mark of the objective at this place: no two of 20 are the same. */
  const look = (place) => ({
    colour: colour(`hue${place % HUES}`),
    dash: DASHES[(place + Math.floor(place / HUES)) % DASHES.length],
    symbol: SYMBOLS[place % SYMBOLS.length],
  });

  /* Four digits; an empty bin or a metric that is not there is a dash. */
  function number(value, digits = 4) {
    const given = Number(value ?? NaN);
    if (Number.isNaN(given)) return "\u2013";
    if (!Number.isFinite(given)) return given > 0 ? "\u221e" : "\u2212\u221e";
    const size = Math.abs(given);
    const text = given !== 0 && (size < 1e-3 || size >= 1e6) ? given.toExponential(digits - 2) : String(Number(given.toPrecision(digits)));
    return text.replace(/^-/, "\u2212").replace("e-", "e\u2212").replace("e+", "e");
  }

  function axis(title, more = {}) {
    const line = { gridcolor: colour("grid"), linecolor: colour("rule"), zerolinecolor: colour("rule") };
    return { title: { text: title, standoff: 8 }, automargin: true, ...line, ...more };
  }

  function layout(more) {
    return {
      paper_bgcolor: colour("ground"), plot_bgcolor: colour("ground"),
      font: { color: colour("text"), family: "system-ui, 'Segoe UI', 'Liberation Sans', sans-serif", size: 13 },
      margin: { l: 60, r: 20, t: 20, b: 50 },
      legend: { orientation: "h", y: -0.18, yanchor: "top", x: 0, itemwidth: 40 },
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("rule"), font: { color: colour("text") } },
      hovermode: "closest",
      ...more,
    };
  }

  /* The buttons are listed one by one: plotly's own choice can hold one that sends the chart's data to its makers. */
  function draw(id, height, traces, more) {
    const chart = get(`${id}-chart`);
    chart.style.height = `${height}px`;
    const buttons = [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
    const config = { responsive: true, displaylogo: false, displayModeBar: innerWidth >= NARROW, modeBarButtons: buttons };
    return Plotly.react(chart, traces, layout(more), config);
  }

  /* A select's options; what was chosen stays chosen if it is still there. */
  function fill(id, options) {
    const select = get(id);
    const before = select.value;
    select.replaceChildren(...options.map(([value, text]) => new Option(text, String(value))));
    if (options.some(([value]) => String(value) === before)) select.value = before;
    select.disabled = options.length < 2;
    return select.value;
  }

  function table(id, caption, headings, rows) {
    const made = document.createElement("table");
    made.createCaption().textContent = caption;
    const top = made.createTHead().insertRow();
    headings.forEach((text) => {
      const heading = document.createElement("th");
      heading.scope = "col";
      heading.textContent = text;
      top.append(heading);
    });
    const body = made.createTBody();
    rows.forEach((row) => {
      const line = body.insertRow();
      row.forEach((text) => { line.insertCell().textContent = text; });
    });
    get(`${id}-table`).replaceChildren(made);
  }

  function say(id, text) {
    get(`${id}-said`).textContent = text;
    get(`${id}-chart`).setAttribute("aria-label", text);
  }

  function register(id, show) {
    if (!get(`${id}-chart`)) return false;
    drawn.set(id, show);
    return true;
  }

  return { get, plain, look, colour, number, axis, draw, fill, table, say, register, redraw: () => drawn.forEach((show) => show()) };
})();
