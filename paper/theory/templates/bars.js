"use strict";
/* Any number of classes. Above: a pair of bars each, the posterior and q*. Below, on its own scale: q* - eta as bars, and
   the predictions of it as ticks. */
const Bars = (() => {
  const { element, number } = Svg;
  const [WIDTH, LEFT, RIGHT] = [400, 52, 8];
  const ABOVE = { top: 16, bottom: 190 };
  const BELOW = { top: 222, bottom: 330 };

  /* Returns the predictions of which a tick is cut off. */
  function show(svg, state) {
    svg.replaceChildren();
    const count = state.eta.length;
    const slot = (WIDTH - LEFT - RIGHT) / count;
    const middles = state.eta.map((_, k) => LEFT + slot * (k + 0.5));
    drawProbabilities(svg, state, middles, slot);
    const outside = drawDisplacements(svg, state, middles, slot);
    const every = Math.ceil(count / 10);
    middles.forEach((x, k) => {
      if (k % every === 0) element(svg, "text", { x, y: BELOW.bottom + 14, class: "label middle" }, k + 1);
    });
    element(svg, "text", { x: (LEFT + WIDTH - RIGHT) / 2, y: BELOW.bottom + 29, class: "label middle" }, "class");
    return outside;
  }

  function drawProbabilities(svg, { eta, solution }, middles, slot) {
    const y = axis(svg, ABOVE, 0, Math.max(...eta, ...solution.q) * 1.05, "probability");
    const bar = slot * 0.42;
    eta.forEach((value, k) => {
      const group = element(svg, "g");
      element(group, "title", {}, `class ${k + 1}: posterior ${number(value)}, q* ${number(solution.q[k])}`);
      column(group, "eta", middles[k] - bar, bar, y(value), y(0));
      column(group, "solution", middles[k], bar, y(solution.q[k]), y(0));
    });
  }

  /* Predictions beyond twice the largest displacement are cut off: they would make the bars too small to see. */
  function drawDisplacements(svg, { solution, first, newton }, middles, slot) {
    const { displacement } = solution;
    const predictions = [["first", first], ["newton", newton]].filter(([, bias]) => bias);
    const size = Quantities.normInf(displacement) || 1e-16;
    const wanted = predictions.flatMap(([, bias]) => bias).concat(displacement);
    const reach = (sign) => Math.min(Math.max(0, ...wanted.map((value) => sign * value)), 2 * size);
    const y = axis(svg, BELOW, -reach(-1), reach(1), "q* \u2212 eta");
    const seen = (value) => Math.abs(value) <= 2 * size;
    displacement.forEach((value, k) => {
      const group = element(svg, "g");
      element(group, "title", {}, `class ${k + 1}: q* \u2212 eta ${number(value)}`);
      column(group, "solution", middles[k] - slot * 0.35, slot * 0.7, y(Math.max(value, 0)), y(Math.min(value, 0)));
      predictions.forEach(([kind, bias]) => {
        if (!seen(bias[k])) return;
        element(group, "path", { d: `M${middles[k] - slot * 0.5} ${y(bias[k])}h${slot}`, class: `tick ${kind}` });
      });
    });
    return predictions.filter(([, bias]) => !bias.every(seen)).map(([kind]) => kind);
  }

  function column(parent, kind, x, width, top, bottom) {
    element(parent, "rect", { x, y: top, width, height: Math.max(bottom - top, 0), class: `bar ${kind}` });
  }

  /* Grid lines at round numbers between low and high; returns the map from values to heights. */
  function axis(svg, { top, bottom }, low, high, name) {
    const range = high - low || 1;
    const y = (value) => bottom - ((value - low) / range) * (bottom - top);
    const rough = range / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    for (let i = Math.ceil(low / step); i * step <= high; i += 1) {
      element(svg, "path", { d: `M${LEFT} ${y(i * step)}H${WIDTH - RIGHT}`, class: i === 0 ? "zero" : "grid" });
      element(svg, "text", { x: LEFT - 5, y: y(i * step) + 4, class: "label end" }, number(i * step, 2));
    }
    element(svg, "text", { x: LEFT, y: top - 6, class: "label" }, name);
    return y;
  }

  return { show };
})();
