"use strict";
(() => {
  const points = (value) => `${Svg.fixed(100 * value, 1, { sign: true })} points`;
  const nats = (value) => Svg.fixed(value, 4, { sign: true });
  ReliabilityChart.start();
  CoverageChart.start();
  const confidence = { axis: "confidence minus accuracy, in points", below: "under-confident", above: "over-confident", factor: 100, format: points };
  IntervalChart.start("classes", Kit.data.classes, confidence);
  IntervalChart.start("groups", Kit.data.groups, confidence);
  IntervalChart.start("fixes", Kit.data.fixes, { axis: "change of the NLL on held-out rows", below: "better", above: "worse", format: nats });
  Kit.start();
})();
