"use strict";
/* Every trial's score and error, and the line through those that no other beats in both. */
const FrontChart = (() => {
  const { element, path, mark } = Svg;
  const look = (objective) => Kit.data.looks[objective];

  function key(svg, names, width) {
    let [left, line] = [8, 0];
    names.forEach((name) => {
      const wide = 30 + 7 * look(name).name.length;
      if (left + wide > width && left > 8) [left, line] = [8, line + 1];
      mark(svg, look(name).marker, left, 10 + 18 * line, { class: "candidate", style: `--c: var(--o${look(name).place})` });
      element(svg, "text", { x: left + 10, y: 14 + 18 * line, class: "label strong" }, look(name).name);
      left += wide;
    });
    return 18 * (line + 1);
  }

  function draw(svg, width) {
    const { criterion, trials } = Kit.data;
    const top = 26 + key(svg, [...new Set(trials.map((trial) => trial.objective))], width);
    const box = { left: 52, right: width - 16, top, bottom: top + Math.max(240, Math.min(360, width * 0.42)) };
    const x = Axes.linear(Axes.extent(trials.map((trial) => trial.score)), [box.left, box.right]);
    const y = Axes.linear(Axes.extent(trials.map((trial) => trial.error)), [box.bottom, box.top]);
    Axes.left(svg, y, box, "validation error", { format: (value) => `${Svg.number(100 * value, 3)} %` });
    Axes.bottom(svg, x, box, `validation ${criterion}`, { count: width < 480 ? 4 : 6 });
    const front = trials.filter((trial) => trial.front).sort((a, b) => a.score - b.score);
    element(svg, "path", { d: path(front.map((trial) => [x(trial.score), y(trial.error)])), class: "front" });
    [...trials].sort((a, b) => a.front - b.front).forEach((trial) => {
      const tip = `${trial.name}\nvalidation ${criterion} ${Svg.number(trial.score)}, error ${Svg.fixed(100 * trial.error, 2)} %${trial.feasible ? "" : "\nits error is shown to be higher than cross-entropy's"}`;
      mark(svg, look(trial.objective).marker, x(trial.score), y(trial.error), { scale: trial.front ? 1.3 : 1, style: `--c: var(--o${look(trial.objective).place})`,
        class: `candidate${trial.front ? "" : " beaten"}${trial.feasible ? "" : " infeasible"}`, "data-tip": tip });
    });
    const refused = trials.some((trial) => !trial.feasible) ? " Hollow: its error is shown to be higher than cross-entropy's." : "";
    const told = front.length > 1 ? "Dashed: no other trial is better in both." : `${front[0].name} is the lowest in both.`;
    return { height: box.bottom + 42, title: `Validation ${criterion} against error`, said: `${told}${refused}`,
      headings: ["candidate", criterion, "error", "front", "error guard"], rows: trials.map((trial) => [trial.name, trial.score, trial.error, trial.front ? "yes" : "no", trial.feasible ? "passed" : "higher error"]) };
  }

  return { start: () => Charts.add("front", draw) };
})();
