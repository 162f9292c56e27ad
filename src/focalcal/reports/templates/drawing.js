"use strict";
/* What the views share: SVG elements, numbers as text, and the four kinds of points with their marks. */
const Drawing = (() => {
  const SPACE = "http://www.w3.org/2000/svg";

  function element(parent, tag, attributes = {}, text = null) {
    const made = document.createElementNS(SPACE, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    if (text !== null) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");

  /* Four significant digits; powers of ten where zeros would have to be counted. */
  function number(value, digits = 4) {
    if (value === null || Number.isNaN(value)) return "\u2013";
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size < 1e-3 || size >= 1e5 ? value.toExponential(digits - 2) : Number(value.toPrecision(digits)).toString();
    return text.replace(/^-/, "\u2212").replace("e-", "e\u2212").replace("e+", "e");
  }

  /* circle: eta; diamond: q*; cross and plus: the two predictions. Shapes differ, so that colour is not needed. */
  const MARKS = {
    eta: "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0Z",
    solution: "M0 -7L7 0L0 7L-7 0Z",
    first: "M-5 -5L5 5M-5 5L5 -5",
    newton: "M0 -7L0 7M-7 0L7 0",
  };

  function mark(parent, kind, x, y) {
    return element(parent, "path", { d: MARKS[kind], class: `mark ${kind}`, transform: `translate(${x} ${y})` });
  }

  return { element, path, number, mark, MARKS };
})();
