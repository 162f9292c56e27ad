"use strict";
/* Net benefit over thresholds: as it is, after a calibrator, and of acting on all rows; acting on none is 0. */
const BenefitChart = (() => {
  const { element, path } = Svg;

  function draw(svg, width) {
    const { points, after, log } = Kit.data.benefit;
    const box = { left: 64, right: Math.min(width - 12, 640), top: 24, bottom: 264 };
    const ends = [points[0].threshold, points[points.length - 1].threshold];
    const x = (log ? Axes.logarithmic : Axes.linear)(ends, [box.left, box.right]);
    const top = 1.1 * Math.max(1e-9, ...[...points, ...after].map((point) => point.net_benefit), ...points.map((point) => Math.min(point.high, 3 * Math.max(point.net_benefit, 0))), points[0].treat_all);
    const y = Axes.linear([-0.25 * top, top], [box.bottom, box.top]);
    const share = (value) => `${Svg.number(100 * value, 2)} %`;
    Axes.left(svg, y, box, "net benefit per 1,000 rows", { format: (value) => Svg.number(1000 * value, 3) });
    Axes.bottom(svg, x, box, "act from this probability on", { format: share });
    const cut = (value) => y(Math.max(-0.25 * top, Math.min(top, value)));
    const line = (list, key) => path(list.map((point) => [x(point.threshold), cut(point[key])]));
    const low = points.map((point) => [x(point.threshold), cut(point.low)]).reverse();
    element(svg, "path", { d: `${path([...points.map((point) => [x(point.threshold), cut(point.high)]), ...low])}Z`, class: "band" });
    const inside = points.filter((point) => point.treat_all > -0.25 * top);
    element(svg, "path", { d: line(inside, "treat_all"), class: "line plain" });
    element(svg, "path", { d: line(points, "net_benefit"), class: "line" });
    if (after.length) element(svg, "path", { d: line(after, "net_benefit"), class: "line after" });
    const chosen = Kit.data.benefit.threshold;
    if (chosen > ends[0] && chosen < ends[1]) element(svg, "path", { d: `M${x(chosen)} ${box.top}V${box.bottom}`, class: "diagonal" });
    return { height: box.bottom + 42, title: "Net benefit over thresholds", said: "",
      headings: ["threshold", "net benefit", "low", "high", "of acting on all", "after"],
      rows: points.map((point, at) => [point.threshold, point.net_benefit, point.low, point.high, point.treat_all, after[at]?.net_benefit ?? null]) };
  }

  return { start: () => Charts.add("benefit", draw) };
})();
