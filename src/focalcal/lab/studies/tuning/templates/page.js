"use strict";
(() => {
  const format = (value) => Svg.fixed(value, 4, { sign: true });
  IntervalChart.start("finalists", Kit.data.finalists, { axis: `${Kit.data.criterion} minus cross-entropy's`, below: "better", above: "worse", format });
  SurfaceChart.start();
  FrontChart.start();
  Kit.start();
})();
