"use strict";
/* SVG elements, numbers as text, and marks: shapes differ, so that colour is not needed. */
const Svg = (() => {
  const SPACE = "http://www.w3.org/2000/svg";

  function element(parent, tag, attributes = {}, text = null) {
    const made = document.createElementNS(SPACE, tag);
    Object.entries(attributes).forEach(([name, value]) => {
      if (value !== null && value !== undefined) made.setAttribute(name, value);
    });
    if (text !== null) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  /* A line through points; one that is not finite interrupts it. */
  function path(points) {
    let open = false;
    return points.map(([x, y]) => {
      if (!Number.isFinite(x) || !Number.isFinite(y)) {
        open = false;
        return "";
      }
      const command = open ? "L" : "M";
      open = true;
      return `${command}${x.toFixed(2)} ${y.toFixed(2)}`;
    }).join("");
  }

  /* So many significant digits; powers of ten where zeros would have to be counted. */
  function number(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size < 1e-3 || size >= 1e5 ? value.toExponential(Math.max(0, digits - 2)) : Number(value.toPrecision(digits)).toString();
    return text.replace(/^-/, "\u2212").replace("e-", "e\u2212").replace("e+", "e");
  }

  /* So many decimals, with a true minus sign; no negative zero. */
  function fixed(value, decimals, { sign = false } = {}) {
    if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
    const text = Math.abs(value).toFixed(decimals);
    if (Number(text) === 0) return text;
    return `${value < 0 ? "\u2212" : sign ? "+" : ""}${text}`;
  }

  const MARKS = {
    circle: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    square: "M-4.5 -4.5H4.5V4.5H-4.5Z",
    up: "M0 -5.5L5.3 4.5H-5.3Z",
    diamond: "M0 -6L6 0L0 6L-6 0Z",
    down: "M0 5.5L5.3 -4.5H-5.3Z",
    plus: "M-1.8 -5.4H1.8V-1.8H5.4V1.8H1.8V5.4H-1.8V1.8H-5.4V-1.8H-1.8Z",
    cross: "M-4.9 -2.4L-2.4 -4.9L0 -2.5L2.4 -4.9L4.9 -2.4L2.5 0L4.9 2.4L2.4 4.9L0 2.5L-2.4 4.9L-4.9 2.4L-2.5 0Z",
    left: "M-5.5 0L4.5 -5.3V5.3Z",
    right: "M5.5 0L-4.5 -5.3V5.3Z",
    star: "M0 -6.4L1.6 -2.1L6.1 -2L2.6 0.8L3.8 5.2L0 2.6L-3.8 5.2L-2.6 0.8L-6.1 -2L-1.6 -2.1Z",
  };

  function mark(parent, kind, x, y, attributes = {}) {
    const { scale = 1, ...rest } = attributes;
    const place = `translate(${x.toFixed(2)} ${y.toFixed(2)})${scale === 1 ? "" : ` scale(${scale})`}`;
    return element(parent, "path", { d: MARKS[kind] ?? kind, transform: place, ...rest });
  }

  /* From 0 to 1, dark to light (viridis), as [red, green, blue]. */
  const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

  function ramp(share) {
    const at = Math.min(0.9999, Math.max(0, share)) * (RAMP.length - 1);
    const [from, to] = [RAMP[Math.floor(at)], RAMP[Math.floor(at) + 1]];
    return from.map((value, k) => Math.round(value + (at % 1) * (to[k] - value)));
  }

  return { element, path, number, fixed, mark, MARKS, ramp };
})();
