"use strict";
/* Accuracy against confidence, bin by bin, beside what chance allows; below it how many rows there are. */
const ReliabilityChart = (() => {
  const { element, path } = Svg;

  function draw(svg, width) {
    const bins = Kit.data.reliability.filter((bin) => bin.rows > 0);
    const side = Math.min(420, width - 60);
    const box = { left: 44, right: 44 + side, top: 24, bottom: 24 + side };
    const [x, y] = [Axes.linear([0, 1], [box.left, box.right]), Axes.linear([0, 1], [box.bottom, box.top])];
    const percent = (value) => `${Math.round(100 * value)} %`;
    Axes.left(svg, y, box, "accuracy", { format: percent });
    Axes.bottom(svg, x, { ...box, bottom: box.bottom + 62 }, "confidence", { format: percent, grid: false });
    bins.forEach((bin) => {
      const [from, to] = [x(bin.lower), x(bin.upper)];
      element(svg, "rect", { x: from, y: y(bin.highest), width: to - from, height: Math.max(1, y(bin.lowest) - y(bin.highest)), class: "chance" });
    });
    element(svg, "path", { d: path([[x(0), y(0)], [x(1), y(1)]]), class: "diagonal" });
    const most = Math.max(...bins.map((bin) => bin.rows));
    bins.forEach((bin) => {
      const at = x(bin.confidence);
      const over = bin.confidence > bin.accuracy;
      element(svg, "path", { d: `M${at} ${y(bin.confidence)}V${y(bin.accuracy)}`, class: over ? "gap over" : "gap under" });
      element(svg, "path", { d: `M${at} ${y(bin.low)}V${y(bin.high)}`, class: "interval" });
      const tip = `confidence ${Svg.fixed(100 * bin.confidence, 1)} %, accuracy ${Svg.fixed(100 * bin.accuracy, 1)} % (${Svg.fixed(100 * bin.low, 1)} to ${Svg.fixed(100 * bin.high, 1)} %)\n${bin.rows} rows`;
      element(svg, "circle", { cx: at, cy: y(bin.accuracy), r: 4, class: "point", "data-tip": tip });
      const high = Math.max(1, 44 * (bin.rows / most));
      element(svg, "rect", { x: x(bin.lower) + 1, y: box.bottom + 62 - high, width: x(bin.upper) - x(bin.lower) - 2, height: high, class: "rows", "data-tip": `${bin.rows} rows` });
    });
    return { height: box.bottom + 104, title: "Accuracy against confidence", said: "",
      headings: ["from", "to", "rows", "confidence", "accuracy", "low", "high", "lowest by chance", "highest by chance"],
      rows: bins.map((bin) => [bin.lower, bin.upper, bin.rows, bin.confidence, bin.accuracy, bin.low, bin.high, bin.lowest, bin.highest]) };
  }

  return { start: () => Charts.add("reliability", draw) };
})();
