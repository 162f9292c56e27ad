"use strict";
/* The study's page: everything defined, started, and drawn again when something is chosen. */
(() => {
  Study.define();
  State.define("lanes", "few", ["few", "all"]);
  [ReliabilityView, TrainingView, SurfacesView].forEach((view) => view.define());
  [ResultView, ForestView, ReliabilityView, TemperatureView, TrainingView, SurfacesView, PosteriorView, RunsView].forEach((view) => view.start());
  const RELIABILITY = ["epoch", "class", "other", "scaling"];
  State.on((changed) => {
    const alone = changed.every((name) => RELIABILITY.includes(name));
    Charts.redraw(alone ? ["large", "reliability"] : undefined);
  });
  Kit.start();
})();
