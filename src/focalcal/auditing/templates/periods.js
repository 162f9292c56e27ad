"use strict";
/* Time from left to right: what was said and what happened, the gap between them, and how many rows there were. */
const PeriodsChart = (() => {
  const { element, path } = Svg;
  const percent = (value) => `${Svg.number(100 * value, 3)} %`;
  const points = (value) => `${Svg.fixed(100 * value, 2, { sign: true })} points`;

  function draw(svg, width) {
    const parts = Kit.data.periods;
    const { sure, right, name: gap } = Kit.data.gap;
    const place = Axes.linear([-0.5, parts.length - 0.5], [56, Math.min(width - 8, 1180)]);
    const lanes = [{ top: 26, bottom: 156 }, { top: 196, bottom: 306 }, { top: 344, bottom: 394 }].map((lane) => ({ left: 56, right: place(parts.length - 0.5), ...lane }));
    const rates = parts.flatMap((part) => [part.confidence, part.accuracy, ...(parts.length < 80 ? [part.lowest, part.highest] : [])]);
    const y = Axes.linear(Axes.extent(rates), [lanes[0].bottom, lanes[0].top]);
    Axes.left(svg, y, lanes[0], `${sure} (line) and ${right} (points)`, { count: 4, format: percent });
    element(svg, "path", { d: path(parts.map((part, at) => [place(at), y(part.confidence)])), class: "line plain" });
    const z = Axes.linear(Axes.extent(parts.flatMap((part) => [part.low, part.high, 0])), [lanes[1].bottom, lanes[1].top]);
    Axes.left(svg, z, lanes[1], gap, { count: 4, format: (value) => Svg.number(100 * value, 3) });
    const most = Math.max(...parts.map((part) => part.rows));
    const v = Axes.linear([0, most], [lanes[2].bottom, lanes[2].top]);
    Axes.left(svg, v, lanes[2], "rows", { count: 2, format: (value) => Svg.number(value, 3) });
    const every = Math.ceil(parts.length / Math.max(2, Math.floor((lanes[0].right - 56) / 76)));
    parts.forEach((part, at) => {
      const x = place(at);
      const tip = `${part.name}: ${sure} ${percent(part.confidence)}, ${right} ${percent(part.accuracy)}\ngap ${points(part.gap)} (${points(part.low)} to ${points(part.high)})\n${part.rows} rows`;
      element(svg, "path", { d: `M${x} ${y(part.lowest)}V${y(part.highest)}`, class: "interval" });
      element(svg, "circle", { cx: x, cy: y(part.accuracy), r: 3.5, class: "point", "data-tip": tip });
      element(svg, "path", { d: `M${x} ${z(part.low)}V${z(part.high)}`, class: "interval" });
      element(svg, "circle", { cx: x, cy: z(part.gap), r: 3.5, class: part.off ? "point" : "point open", "data-tip": tip });
      const half = Math.max(0.5, (place(1) - place(0)) * 0.4);
      element(svg, "rect", { x: x - half, y: v(part.rows), width: 2 * half, height: lanes[2].bottom - v(part.rows), class: "rows", "data-tip": tip });
      if (at % every === 0) element(svg, "text", { x, y: lanes[2].bottom + 16, class: "label middle" }, part.name);
    });
    return { height: lanes[2].bottom + 26, title: "In the order of time", said: "",
      headings: ["period", "rows", sure, right, "gap", "low", "high"],
      rows: parts.map((part) => [part.name, part.rows, part.confidence, part.accuracy, part.gap, part.low, part.high]) };
  }

  return { start: () => Charts.add("periods", draw) };
})();
