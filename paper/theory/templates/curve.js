"use strict";
/* |q* - eta|_2 against lam, both on logarithmic axes, with its bounds, its predictions and the present lam. */
const Curve = (() => {
  const { element, path, number } = Svg;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [520, 360, 58, 18, 14, 48];
  const DECADES = [-3, 5]; // of lam
  const POINTS = 49;
  const LINES = ["logClasses", "entropy", "global", "interior", "first", "newton", "solution"];

  const lams = Array.from({ length: POINTS }, (_, i) => 10 ** (DECADES[0] + ((DECADES[1] - DECADES[0]) * i) / (POINTS - 1)));

  /* The heights of all lines at one lam. */
  function heights(eta, gamma, lam) {
    const { norm2 } = Quantities;
    return {
      ...Quantities.bounds(eta, gamma, lam),
      first: norm2(Quantities.firstOrderBias(eta, gamma, lam)),
      newton: norm2(Quantities.preAsymptoticBias(eta, gamma, lam)),
      solution: norm2(Solver.minimise(eta, gamma, lam).displacement),
    };
  }

  function show(svg, { eta, gamma, lam, distortion }) {
    svg.replaceChildren();
    const columns = lams.map((value) => heights(eta, gamma, value));
    const seen = columns.flatMap((column) => [column.solution, column.newton]).filter((value) => value > 1e-14);
    if (!seen.length) {
      const why = gamma === 0 ? "at gamma = 0 q* is the posterior: there is no distortion" : "q* is the posterior here";
      element(svg, "text", { x: WIDTH / 2, y: HEIGHT / 2, class: "label middle" }, why);
      return;
    }
    const low = Math.floor(Math.log10(Math.min(...seen)));
    const high = 1;
    const x = (value) => LEFT + ((Math.log10(value) - DECADES[0]) / (DECADES[1] - DECADES[0])) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - Math.log10(value)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    axes(svg, x, y, low, high);
    const clip = element(element(svg, "clipPath", { id: "inside" }), "rect", { x: LEFT, y: TOP });
    clip.setAttribute("width", WIDTH - LEFT - RIGHT);
    clip.setAttribute("height", HEIGHT - TOP - BOTTOM);
    const lines = element(svg, "g", { "clip-path": "url(#inside)" });
    LINES.forEach((name) => {
      const points = lams.map((value, i) => [value, columns[i][name]]).filter(([, height]) => height > 0 && height < Infinity);
      if (points.length) element(lines, "path", { d: path(points.map((p) => [x(p[0]), y(p[1])])), class: `line ${name}` });
    });
    const at = Math.min(Math.max(x(lam), LEFT), WIDTH - RIGHT); // lam = 0 is far to the left
    element(svg, "path", { d: `M${at} ${TOP}V${HEIGHT - BOTTOM}`, class: "now" });
    if (distortion > 0) Points.mark(lines, "solution", at, y(distortion));
  }

  function axes(svg, x, y, low, high) {
    for (let power = DECADES[0]; power <= DECADES[1]; power += 1) {
      element(svg, "path", { d: `M${x(10 ** power)} ${TOP}V${HEIGHT - BOTTOM}`, class: "grid" });
      element(svg, "text", { x: x(10 ** power), y: HEIGHT - BOTTOM + 20, class: "label middle" }, powerOfTen(power));
    }
    const every = Math.ceil((high - low) / 9);
    for (let power = high; power >= low; power -= every) {
      element(svg, "path", { d: `M${LEFT} ${y(10 ** power)}H${WIDTH - RIGHT}`, class: "grid" });
      element(svg, "text", { x: LEFT - 6, y: y(10 ** power) + 4, class: "label end" }, powerOfTen(power));
    }
    element(svg, "text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 7, class: "label middle" }, "anchor weight lam");
  }

  const powerOfTen = (power) => (Math.abs(power) <= 2 ? number(10 ** power) : `1e${power}`.replace("-", "\u2212"));

  return { show };
})();
