"use strict";
/* The share that is wrong among the most confident rows. */
const CoverageChart = (() => {
  const { element, path } = Svg;

  function draw(svg, width) {
    const points = Kit.data.coverage;
    const box = { left: 52, right: Math.min(width - 12, 620), top: 24, bottom: 264 };
    const x = Axes.linear([0, 1], [box.left, box.right]);
    const y = Axes.linear([0, Math.max(0.01, ...points.map((point) => point.high).slice(Math.floor(points.length / 20)))], [box.bottom, box.top]);
    Axes.left(svg, y, box, "share that is wrong", { format: (value) => `${Svg.number(100 * value, 3)} %` });
    Axes.bottom(svg, x, box, "share of rows kept, most confident first", { format: (value) => `${Math.round(100 * value)} %` });
    const clipped = (value) => Math.max(box.top, y(value));
    const upper = points.map((point) => [x(point.coverage), clipped(point.high)]);
    const lower = points.map((point) => [x(point.coverage), clipped(point.low)]).reverse();
    element(svg, "path", { d: `${path([...upper, ...lower])}Z`, class: "band" });
    element(svg, "path", { d: path(points.map((point) => [x(point.coverage), clipped(point.risk)])), class: "line" });
    return { height: box.bottom + 42, title: "Risk against coverage", said: "", headings: ["coverage", "risk", "low", "high"],
      rows: points.map((point) => [point.coverage, point.risk, point.low, point.high]) };
  }

  return { start: () => Charts.add("coverage", draw) };
})();
