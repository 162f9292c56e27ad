"use strict";
(() => {
  const decimals = (size) => (size >= 0.9995 || size === 0 ? 1 : Math.min(5, 2 - Math.floor(Math.log10(size)))); // as the tables
  const points = (value) => `${Svg.fixed(100 * value, decimals(Math.abs(100 * value)), { sign: true })} points`;
  const nats = (value) => Svg.fixed(value, 4, { sign: true });
  const gap = { axis: Kit.data.gap.name, below: Kit.data.gap.below, above: Kit.data.gap.above, factor: 100, format: points };
  ReliabilityChart.start();
  CoverageChart.start();
  PeriodsChart.start();
  BenefitChart.start();
  IntervalChart.start("classes", Kit.data.classes, { ...gap, axis: "confidence minus accuracy, in points", below: "under-confident", above: "over-confident" });
  IntervalChart.start("groups", Kit.data.groups, gap);
  IntervalChart.start("fixes", Kit.data.fixes, { axis: "change of the NLL on held-out rows", below: "better", above: "worse", format: nats });
  const button = document.getElementById("calibrator");
  if (button && Kit.data.calibrator) {
    button.hidden = false;
    button.addEventListener("click", () => Downloads.save(JSON.stringify(Kit.data.calibrator), "calibrator.json", "application/json"));
  }
  Kit.start();
})();
