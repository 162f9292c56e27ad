"use strict";
/* The four kinds of points. circle: eta; diamond: q*; cross and plus: the two predictions. */
const Points = (() => {
  const SHAPES = {
    eta: "M-6 0A6 6 0 1 0 6 0A6 6 0 1 0 -6 0Z",
    solution: "M0 -7L7 0L0 7L-7 0Z",
    first: "M-5 -5L5 5M-5 5L5 -5",
    newton: "M0 -7L0 7M-7 0L7 0",
  };
  const mark = (parent, kind, x, y) => Svg.mark(parent, SHAPES[kind], x, y, { class: `mark ${kind}` });
  return { SHAPES, mark };
})();
