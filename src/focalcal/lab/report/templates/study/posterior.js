"use strict";
/* Predicted against true probability, a panel per objective, beside q* of the theory. */
const PosteriorView = (() => {
  const { element, path } = Svg;

  function draw(svg, width) {
    const { found: [view], note } = Study.near("posterior", "known posterior");
    if (!view) return Study.nothing("No posterior is known.");
    const { kept, left } = Lanes.few(view.rows);
    return Study.made(view, Math.max(20, Panels.draw(svg, width, kept, 32, panel)), note, left);
  }

  function panel(group, row, box) {
    const x = Axes.linear([0, 1], [box.left, box.right]);
    const y = Axes.linear([0, 1], [box.bottom, box.top]);
    const [truth, theory] = [row.to_truth, row.to_theory].map(Study.number);
    const told = `to eta ${Svg.fixed(truth, 3)}${Number.isNaN(theory) ? "" : `, to q* ${Svg.fixed(theory, 3)}`}`;
    Panels.heading(group, row, box, box.right - box.left < 120 ? told.replaceAll("to ", "") : told);
    element(group, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "frame" });
    const [eta, p, q] = [row.cloud.eta, row.cloud.p, row.cloud.q].map(Study.numbers);
    element(group, "path", { d: eta.map((value, at) => `M${x(value).toFixed(1)} ${y(p[at]).toFixed(1)}h0`).join(""), class: "cloud" });
    element(group, "path", { d: path([[x(0), y(0)], [x(1), y(1)]]), class: "diagonal" });
    const crosses = eta.map((value, at) => (Number.isFinite(q[at]) ? `M${(x(value) - 1.5).toFixed(1)} ${(y(q[at]) - 1.5).toFixed(1)}l3 3m0 -3l-3 3` : "")).join("");
    if (crosses) element(group, "path", { d: crosses, class: "theory" });
    const [at, mean, low, high] = [row.eta, row.p, row.low, row.high].map(Study.numbers);
    element(group, "path", { d: at.map((value, k) => `M${x(value)} ${y(low[k])}V${y(high[k])}`).join(""), class: "spread" });
    element(group, "path", { d: path(at.map((value, k) => [x(value), y(mean[k])])), class: "curve" });
    at.forEach((value, k) => element(group, "circle", { cx: x(value), cy: y(mean[k]), r: 2.5, class: "point", "data-tip": `eta ${Svg.fixed(value, 2)}: p ${Svg.fixed(mean[k], 3)}, middle 80 % ${Svg.fixed(low[k], 3)} to ${Svg.fixed(high[k], 3)}` }));
    [0, 1].forEach((value) => {
      element(group, "text", { x: box.left - 4, y: y(value) + 4, class: "label small end" }, String(value));
      element(group, "text", { x: x(value), y: box.bottom + 13, class: "label small middle" }, String(value));
    });
    element(group, "text", { x: x(0.5), y: box.bottom + 14, class: "label small middle" }, "true probability");
    return told;
  }

  return { start: () => Charts.add("posterior", draw) };
})();
