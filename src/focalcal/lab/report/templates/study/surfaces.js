"use strict";
/* A metric over gamma and lam, one cell per pair, on an even grid: the values are far from evenly spaced. */
const SurfacesView = (() => {
  const { element, mark, ramp } = Svg;

  const here = () => Study.near("surface", "grid over gamma and lam").found;

  function chosen() {
    const there = here();
    return there.find(({ choice }) => choice === State.get("surface")) ?? there.find(({ metric }) => metric === State.get("metric")) ?? there[0];
  }

  function draw(svg, width) {
    const one = chosen();
    if (!one) return Study.nothing("This setting has no grid over gamma and lam.", "No surface");
    const [gammas, { lam: lams }] = [one.rows.map(({ gamma }) => gamma), one.rows[0]];
    const values = one.rows.map(({ value }) => Study.numbers(value));
    const box = { left: 56, right: width - 12, top: 12 };
    const cell = { width: (box.right - box.left) / lams.length, height: Math.min(44, Math.max(26, 320 / gammas.length)) };
    box.bottom = box.top + cell.height * gammas.length;
    const finite = values.flat().filter(Number.isFinite);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const unit = one.unit ? ` ${one.unit}` : "";
    const row = (gamma) => gammas.length - 1 - gammas.indexOf(gamma);
    values.forEach((line, i) => line.forEach((value, j) => {
      const [x, y] = [box.left + j * cell.width, box.top + (gammas.length - 1 - i) * cell.height];
      const tip = `gamma ${gammas[i]}, lam ${lams[j]}\n${Svg.number(value)}${unit}, ${one.rows[i].seeds[j]} seed${one.rows[i].seeds[j] === 1 ? "" : "s"}`;
      const rgb = Number.isFinite(value) ? ramp((value - low) / (high - low || 1)) : null;
      element(svg, "rect", { x: x + 0.5, y: y + 0.5, width: cell.width - 1, height: cell.height - 1, class: rgb ? "heat" : "heat missing", fill: rgb ? `rgb(${rgb.join(" ")})` : null, "data-tip": tip });
      const light = rgb && 0.2126 * (rgb[0] / 255) ** 2.2 + 0.7152 * (rgb[1] / 255) ** 2.2 + 0.0722 * (rgb[2] / 255) ** 2.2 > 0.18;
      if (rgb && cell.width > 38) element(svg, "text", { x: x + cell.width / 2, y: y + cell.height / 2 + 4, class: "label middle value", fill: light ? "#000000" : "#ffffff", style: `fill: ${light ? "#000000" : "#ffffff"}` }, Svg.number(value, 3));
    }));
    lams.forEach((lam, j) => element(svg, "text", { x: box.left + (j + 0.5) * cell.width, y: box.bottom + 16, class: "label middle" }, String(lam)));
    gammas.forEach((gamma) => element(svg, "text", { x: box.left - 8, y: box.top + (row(gamma) + 0.5) * cell.height + 4, class: "label end" }, String(gamma)));
    element(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 34, class: "label middle axis" }, "anchor weight lam");
    element(svg, "text", { x: 4, y: box.top + 2, class: "label axis" }, "gamma");
    const corner = (point) => (point && gammas.includes(point[0]) && lams.includes(point[1]) ? [box.left + lams.indexOf(point[1]) * cell.width, box.top + row(point[0]) * cell.height] : null);
    const frame = corner(one.operating_point);
    if (frame) element(svg, "rect", { x: frame[0] + 1.5, y: frame[1] + 1.5, width: cell.width - 3, height: cell.height - 3, class: "operating", "data-tip": "operating point, chosen beforehand" });
    if (one.curve.length > 1) {
      const line = Svg.path(one.curve.map(([i, j]) => [box.left + (j + 0.5) * cell.width, box.top + (gammas.length - 0.5 - i) * cell.height]));
      ["under", "over"].forEach((kind) => element(svg, "path", { d: line, class: `operating-curve ${kind}`, "data-tip": "where the theory has FCL cancel the overconfidence of a cross-entropy network of this setting" }));
    }
    const star = corner(one.minimum);
    if (star) mark(svg, "star", star[0] + cell.width - 10, star[1] + 10, { class: "minimum", "data-tip": "lowest of the grid" });
    const named = (point, what) => (corner(point) ? `${what} at gamma ${point[0]}, lam ${point[1]}.` : "");
    const dashed = one.curve.length > 1 ? "Dashed: where the theory has FCL cancel cross-entropy's overconfidence." : "";
    return Study.made(one, box.bottom + 42, `${one.title}.`, named(one.minimum, "Lowest (star)"), named(one.operating_point, "Operating point (frame)"), dashed, one.note);
  }

  function controls() {
    Controls.select("surface", "surface", here().map(({ choice, label }) => [choice, label]));
    Controls.get("surface").value = chosen()?.choice ?? "";
  }

  function start() {
    if (!Controls.get("chart-surface")) return;
    Controls.listen("surface", "surface");
    State.on(controls);
    Charts.add("surface", draw);
  }

  return { define: () => State.define("surface", ""), start };
})();
