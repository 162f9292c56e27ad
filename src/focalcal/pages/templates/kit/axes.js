"use strict";
/* Scales from values to pixels, round numbers on them, and the axes that show these. */
const Axes = (() => {
  const { element, number } = Svg;

  function linear([low, high], [from, to]) {
    const span = high - low || 1;
    const scale = (value) => from + ((value - low) / span) * (to - from);
    return Object.assign(scale, { domain: [low, high], range: [from, to], ticks: (count = 5) => roundNumbers(low, high, count) });
  }

  function logarithmic([low, high], [from, to]) {
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const span = b - a || 1;
    const scale = (value) => from + ((Math.log10(value) - a) / span) * (to - from);
    return Object.assign(scale, { domain: [low, high], range: [from, to], ticks: () => decades(a, b) });
  }

  function roundNumbers(low, high, count) {
    const rough = (high - low) / Math.max(1, count) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
  }

  function decades(a, b) {
    const factors = b - a > 2.5 ? [1] : b - a > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    const ticks = [];
    for (let power = Math.floor(a); power <= Math.ceil(b); power += 1) {
      factors.forEach((factor) => {
        const value = Number((factor * 10 ** power).toPrecision(6));
        if (Math.log10(value) >= a - 1e-9 && Math.log10(value) <= b + 1e-9) ticks.push(value);
      });
    }
    return ticks;
  }

  /* Lowest and highest of the finite values, with room around them; `zero` begins at 0. */
  function extent(values, { zero = false, room = 0.06 } = {}) {
    const finite = values.filter(Number.isFinite);
    if (!finite.length) return [0, 1];
    let [low, high] = [Math.min(...finite), Math.max(...finite)];
    if (zero) low = Math.min(0, low);
    const pad = (high - low || Math.abs(high) || 1) * room;
    return [zero && low === 0 ? 0 : low - pad, high + pad];
  }

  /* Grid lines with numbers below the plot; `box` is {left, right, top, bottom} in pixels. */
  function bottom(svg, scale, box, name, { count = 5, format = (value) => number(value, 3), grid = true } = {}) {
    scale.ticks(count).forEach((value) => {
      const x = scale(value);
      if (grid) element(svg, "path", { d: `M${x} ${box.top}V${box.bottom}`, class: value === 0 ? "zero" : "grid" });
      element(svg, "text", { x, y: box.bottom + 16, class: "label middle" }, format(value));
    });
    if (name) element(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 34, class: "label middle axis" }, name);
  }

  function left(svg, scale, box, name, { count = 5, format = (value) => number(value, 3), grid = true } = {}) {
    scale.ticks(count).forEach((value) => {
      const y = scale(value);
      if (grid) element(svg, "path", { d: `M${box.left} ${y}H${box.right}`, class: value === 0 ? "zero" : "grid" });
      element(svg, "text", { x: box.left - 6, y: y + 4, class: "label end" }, format(value));
    });
    if (name) element(svg, "text", { x: box.left, y: box.top - 8, class: "label axis" }, name);
  }

  return { linear, logarithmic, extent, bottom, left };
})();
