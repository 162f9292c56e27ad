"use strict";
/* The page: everything started once, drawn again in other colours and for paper. */
(() => {
  const PAPER = 660; // pixels across an A4 page between its margins
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = () => [...document.querySelectorAll(".chart")].filter((chart) => chart.data);
  let opened = [];

  function beforePrint() {
    Theme.force("light");
    charts().forEach((chart) => Plotly.relayout(chart, { width: PAPER }));
    opened = [...document.querySelectorAll("#summary details:not([open]), .folded:not([open]), #shared:not([open])")];
    opened.forEach((details) => { details.open = true; });
  }

  function afterPrint() {
    opened.forEach((details) => { details.open = false; });
    Theme.force(null);
    charts().forEach((chart) => Plotly.relayout(chart, { width: null, autosize: true }));
  }

  /* A link to a run opens what it leads to. */
  function openTarget() {
    const target = location.hash.startsWith("#run-") ? document.getElementById(location.hash.slice(1)) : null;
    if (target) target.open = true;
  }

  Theme.start();
  Sorting.start();
  Downloads.start(data);
  [ReliabilityView, SurfacesView, CurvesView].forEach((view) => view.start(data));
  Theme.onChange(Charts.redraw);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  window.addEventListener("hashchange", openTarget);
  openTarget();
})();
