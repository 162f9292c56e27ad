"use strict";
/* The trials of FCL: gamma against lam, coloured by their score. */
const SurfaceChart = (() => {
  const { element, mark, ramp } = Svg;
  const fill = (share) => `rgb(${ramp(share).join(" ")})`;

  function key(svg, box, low, high) {
    const [width, steps] = [Math.min(160, (box.right - box.left) / 2), 32];
    const left = box.right - width;
    for (let at = 0; at < steps; at += 1) element(svg, "rect", { x: left + (width * at) / steps, y: 4, width: width / steps + 0.5, height: 9, fill: fill(at / (steps - 1)) });
    element(svg, "text", { x: left - 6, y: 13, class: "label end" }, Svg.number(low));
    element(svg, "text", { x: box.right, y: 26, class: "label end" }, Svg.number(high));
  }

  function draw(svg, width) {
    const { criterion } = Kit.data;
    const trials = Kit.data.trials.filter((trial) => trial.objective === "fcl");
    const box = { left: 44, right: width - 16, top: 44, bottom: 44 + Math.max(240, Math.min(360, width * 0.42)) };
    const lams = trials.map((trial) => trial.lam);
    const x = Axes.logarithmic([Math.min(...lams) / 1.5, Math.max(...lams) * 1.5], [box.left, box.right]);
    const y = Axes.linear(Axes.extent(trials.map((trial) => trial.gamma), { room: 0.12 }), [box.bottom, box.top]);
    Axes.left(svg, y, box, "gamma");
    Axes.bottom(svg, x, box, "anchor weight lam");
    const scores = trials.map((trial) => trial.score);
    const [low, high] = [Math.min(...scores), Math.max(...scores)];
    key(svg, box, low, high);
    const best = trials.find((trial) => trial.score === low);
    [...trials].sort((a, b) => b.score - a.score).forEach((trial) => {
      const tip = `${trial.name}\nvalidation ${criterion} ${Svg.number(trial.score)}, error ${Svg.fixed(100 * trial.error, 2)} %`;
      mark(svg, trial === best ? "star" : "circle", x(trial.lam), y(trial.gamma), { scale: trial === best ? 1.6 : 1.2, class: trial === best ? "trial best" : "trial",
        style: `fill: ${fill((trial.score - low) / (high - low || 1))}`, "data-tip": tip });
    });
    return { height: box.bottom + 42, title: `Validation ${criterion} over gamma and lam`, said: `★ lowest of FCL: gamma ${best.gamma}, lam ${best.lam}, validation ${criterion} ${Svg.number(low)}. Dark is low, light is high.`,
      headings: ["gamma", "lam", criterion, "error"], rows: trials.map((trial) => [trial.gamma, trial.lam, trial.score, trial.error]) };
  }

  return { start: () => Charts.add("surface", draw) };
})();
