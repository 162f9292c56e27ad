"use strict";
/* How often it happened against how probable it was said to be, bin by bin, beside what chance allows; and afterwards.

   Of rare events both axes are logarithmic, and bins have equally many rows; else there are bars of the rows below. */
const ReliabilityChart = (() => {
  const { element, path, mark } = Svg;
  const share = (value) => (value === 0 || value >= 0.1 ? `${Math.round(100 * value)} %` : `${Svg.number(100 * value, 2)} %`);
  const exact = (value) => `${Svg.number(100 * value, 3)} %`;

  function draw(svg, width) {
    const { bins, after, curve, log, x: xName, y: yName } = Kit.data.reliability;
    const filled = bins.filter((bin) => bin.rows > 0);
    const side = Math.min(440, width - 60);
    const box = { left: 48, right: 48 + side, top: 24, bottom: 24 + side };
    const bars = log ? 0 : 62;
    const [low, high] = log ? limits(filled, after) : [0, 1];
    const scale = log ? Axes.logarithmic : Axes.linear;
    const [x, y] = [scale([low, high], [box.left, box.right]), scale([low, high], [box.bottom, box.top])];
    const inside = (value) => Math.min(high, Math.max(low, value));
    Axes.left(svg, y, box, yName, { format: share });
    Axes.bottom(svg, x, { ...box, bottom: box.bottom + bars }, xName, { format: share, grid: log });
    filled.forEach((bin) => {
      const [from, to] = [x(inside(bin.lower)), x(inside(bin.upper))];
      const [top, bottom] = [y(inside(bin.highest)), y(inside(bin.lowest))];
      element(svg, "rect", { x: from, y: top, width: Math.max(1, to - from), height: Math.max(1, bottom - top), class: "chance" });
    });
    element(svg, "path", { d: path([[x(low), y(low)], [x(high), y(high)]]), class: "diagonal" });
    if (curve.length) {
      const shown = curve.filter((point) => low <= point.p && point.p <= high);
      const place = (key) => shown.map((point) => [x(inside(point.p)), y(inside(point[key]))]);
      element(svg, "path", { d: `${path([...place("high"), ...place("low").reverse()])}Z`, class: "band" });
      element(svg, "path", { d: path(place("observed")), class: "curve" });
    }
    const most = Math.max(...filled.map((bin) => bin.rows));
    filled.forEach((bin) => {
      const at = x(inside(bin.confidence));
      const kind = bin.confidence > bin.accuracy ? "gap over" : "gap under";
      const tip = `said ${exact(bin.confidence)}, happened ${exact(bin.accuracy)} (${exact(bin.low)} to ${exact(bin.high)})\n${Math.round(bin.rows)} rows`;
      element(svg, "path", { d: `M${at} ${y(inside(bin.confidence))}V${y(inside(bin.accuracy))}`, class: kind });
      element(svg, "path", { d: `M${at} ${y(inside(bin.low))}V${y(inside(bin.high))}`, class: "interval" });
      element(svg, "circle", { cx: at, cy: y(inside(bin.accuracy)), r: 4, class: "point", "data-tip": tip });
      const tall = Math.max(1, 44 * (bin.rows / most));
      if (bars) element(svg, "rect", { x: x(bin.lower) + 1, y: box.bottom + bars - tall, width: Math.max(1, x(bin.upper) - x(bin.lower) - 2), height: tall, class: "rows", "data-tip": `${Math.round(bin.rows)} rows` });
    });
    const points = after.filter((bin) => bin.rows > 0).map((bin) => [x(inside(bin.confidence)), y(inside(bin.accuracy)), bin]);
    element(svg, "path", { d: path(points), class: "curve after" });
    points.forEach(([px, py, bin]) => mark(svg, "circle", px, py, { class: "point after", scale: 0.8, "data-tip": `afterwards: said ${exact(bin.confidence)}, happened ${exact(bin.accuracy)}\n${Math.round(bin.rows)} rows` }));
    return { height: box.bottom + bars + 42, title: `${yName} against ${xName}`, said: "",
      headings: ["when", "from", "to", "rows", xName, yName, "low", "high", "lowest by chance", "highest by chance"],
      rows: [...bins.map((bin) => ["before", ...numbers(bin)]), ...after.map((bin) => ["after", ...numbers(bin)])] };
  }

  const numbers = (bin) => [bin.lower, bin.upper, bin.rows, bin.confidence, bin.accuracy, bin.low, bin.high, bin.lowest, bin.highest];

  /* So that no part of the axes is without points. */
  function limits(bins, after) {
    const values = [...bins, ...after].flatMap((bin) => [bin.confidence, bin.accuracy, bin.high, bin.low]).filter((value) => value > 0);
    const least = Math.min(...[...bins, ...after].flatMap((bin) => [bin.confidence, bin.accuracy]).filter((value) => value > 0));
    return [0.6 * least, Math.min(1, 1.3 * Math.max(...values))];
  }

  return { start: () => Charts.add("reliability", draw) };
})();
