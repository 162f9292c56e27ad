"use strict";
/* One lane per name: a mean and its interval around a line at zero. */
const IntervalChart = (() => {
  const { element, mark } = Svg;
  const HEIGHT = 24;
  const MOST = 30;

  function start(id, lanes, { axis, below, above, factor = 1, format }) {
    if (!document.getElementById(`chart-${id}`)) return;
    Charts.add(id, (svg, width) => {
      const kept = lanes.slice(0, MOST);
      const longest = Math.max(4, ...kept.map((lane) => lane.name.length));
      const labels = Math.min(20 + 6.9 * longest, width * (width < 480 ? 0.45 : 0.35));
      const box = { left: labels + 8, right: width - (width < 480 ? 8 : 150), top: 30, bottom: 30 + HEIGHT * kept.length };
      const ends = kept.flatMap((lane) => [lane.low, lane.high, 0]).map((value) => factor * value);
      const x = Axes.linear(Axes.extent(ends, { room: 0.08 }), [box.left, box.right]);
      Axes.bottom(svg, x, box, axis);
      element(svg, "text", { x: x(0) - 8, y: 16, class: "label strong end" }, x(0) - box.left > 6.5 * below.length ? `← ${below}` : "");
      element(svg, "text", { x: x(0) + 8, y: 16, class: "label strong" }, box.right - x(0) > 6.5 * above.length ? `${above} →` : "");
      kept.forEach((lane, at) => {
        const y = box.top + HEIGHT * (at + 0.5);
        const tip = `${lane.name}: ${format(lane.mean)} (${format(lane.low)} to ${format(lane.high)})${lane.note ? `\n${lane.note}` : ""}`;
        const cut = Math.floor(labels / 6.7);
        element(svg, "text", { x: 0, y: y + 4, class: "label strong", "data-tip": tip }, lane.name.length > cut ? `${lane.name.slice(0, cut - 1)}…` : lane.name);
        element(svg, "path", { d: `M${x(factor * lane.low)} ${y}H${x(factor * lane.high)}`, class: "interval" });
        const clear = lane.low > 0 || lane.high < 0;
        mark(svg, clear ? "diamond" : "circle", x(factor * lane.mean), y, { class: clear ? "point" : "point open", "data-tip": tip });
        if (box.right < width - 100) element(svg, "text", { x: box.right + 10, y: y + 4, class: "label" }, format(lane.mean));
      });
      const left = lanes.length - kept.length;
      return { height: box.bottom + 42, title: axis, said: `◆ the interval leaves 0 out${left ? `; ${left} more are in the table` : ""}`,
        headings: ["name", "mean", "low", "high"], rows: lanes.map((lane) => [lane.name, lane.mean, lane.low, lane.high]) };
    });
  }

  return { start };
})();
