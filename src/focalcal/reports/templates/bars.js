"use strict";
/* Any number of classes: a pair of bars each, the posterior and q*, with the predictions as marks. */
const Bars = (() => {
  const { element, number } = Drawing;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 360, 46, 8, 14, 40];

  function show(svg, { eta, solution, first, newton }) {
    svg.replaceChildren();
    const most = Math.max(...eta, ...solution.q) * 1.08;
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
    axis(svg, most, y);
    const slot = (WIDTH - LEFT - RIGHT) / eta.length;
    const bar = Math.max(slot * 0.4, 0.8);
    const every = Math.ceil(eta.length / 10);
    eta.forEach((value, k) => {
      const x = LEFT + slot * (k + 0.5);
      const group = element(svg, "g");
      element(group, "title", {}, `class ${k + 1}: posterior ${number(value)}, q* ${number(solution.q[k])}`);
      element(group, "rect", { x: x - bar, y: y(value), width: bar, height: y(0) - y(value), class: "bar eta" });
      element(group, "rect", { x, y: y(solution.q[k]), width: bar, height: y(0) - y(solution.q[k]), class: "bar solution" });
      [["first", first], ["newton", newton]].forEach(([kind, bias]) => {
        const at = bias && value + bias[k];
        if (bias && at >= 0 && at <= most) tick(group, kind, x, y(at), bar);
      });
      if (k % every === 0) element(svg, "text", { x, y: HEIGHT - BOTTOM + 14, class: "label middle" }, k + 1);
    });
    element(svg, "text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, class: "label middle" }, "class");
  }

  function axis(svg, most, y) {
    const rough = most / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    for (let i = 0; i * step <= most; i += 1) {
      element(svg, "path", { d: `M${LEFT} ${y(i * step)}H${WIDTH - RIGHT}`, class: "grid" });
      element(svg, "text", { x: LEFT - 5, y: y(i * step) + 4, class: "label end" }, number(i * step, 2));
    }
  }

  function tick(parent, kind, x, y, bar) {
    element(parent, "path", { d: `M${x - bar} ${y}H${x + bar}`, class: `tick ${kind}` });
  }

  return { show };
})();
