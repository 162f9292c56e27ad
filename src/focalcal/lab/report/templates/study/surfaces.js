"use strict";
/* A metric over gamma and lam, one cell per pair, on an even grid: the values are far from evenly spaced. */
const SurfacesView = (() => {
  const { element, mark, ramp } = Svg;

  /* Of the chosen setting, or of the first one that has any. */
  function here() {
    const of = (setting) => Study.data.surfaces.filter((one) => one.setting === setting);
    return of(State.get("setting")).length ? of(State.get("setting")) : of(Study.data.surfaces[0]?.setting);
  }

  function chosen() {
    const there = here();
    const wanted = State.get("surface") || State.get("metric");
    return there.find((one) => one.metric === wanted) ?? there[0];
  }

  function draw(svg, width) {
    const one = chosen();
    if (!one) return { height: 10, title: "No surface", said: "This setting has no grid over gamma and lam.", headings: [], rows: [] };
    const values = one.values.map(Study.numbers);
    const box = { left: 56, right: width - 12, top: 12 };
    const cell = { width: (box.right - box.left) / one.lams.length, height: Math.min(44, Math.max(26, 320 / one.gammas.length)) };
    box.bottom = box.top + cell.height * one.gammas.length;
    const finite = values.flat().filter(Number.isFinite);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const unit = one.unit ? ` ${one.unit}` : "";
    const row = (gamma) => one.gammas.length - 1 - one.gammas.indexOf(gamma);
    values.forEach((line, i) => line.forEach((value, j) => {
      const [x, y] = [box.left + j * cell.width, box.top + (one.gammas.length - 1 - i) * cell.height];
      const tip = `gamma ${one.gammas[i]}, lam ${one.lams[j]}\n${Svg.number(value)}${unit}, ${one.seeds[i][j]} seed${one.seeds[i][j] === 1 ? "" : "s"}`;
      const rgb = Number.isFinite(value) ? ramp((value - low) / (high - low || 1)) : null;
      element(svg, "rect", { x: x + 0.5, y: y + 0.5, width: cell.width - 1, height: cell.height - 1, class: rgb ? "heat" : "heat missing", fill: rgb ? `rgb(${rgb.join(" ")})` : null, "data-tip": tip });
      const light = rgb && 0.2126 * (rgb[0] / 255) ** 2.2 + 0.7152 * (rgb[1] / 255) ** 2.2 + 0.0722 * (rgb[2] / 255) ** 2.2 > 0.18;
      if (rgb && cell.width > 38) element(svg, "text", { x: x + cell.width / 2, y: y + cell.height / 2 + 4, class: "label middle value", fill: light ? "#000000" : "#ffffff", style: `fill: ${light ? "#000000" : "#ffffff"}` }, Svg.number(value, 3));
    }));
    one.lams.forEach((lam, j) => element(svg, "text", { x: box.left + (j + 0.5) * cell.width, y: box.bottom + 16, class: "label middle" }, String(lam)));
    one.gammas.forEach((gamma) => element(svg, "text", { x: box.left - 8, y: box.top + (row(gamma) + 0.5) * cell.height + 4, class: "label end" }, String(gamma)));
    element(svg, "text", { x: (box.left + box.right) / 2, y: box.bottom + 34, class: "label middle axis" }, "anchor weight lam");
    element(svg, "text", { x: 4, y: box.top + 2, class: "label axis" }, "gamma");
    const corner = (point) => (point && one.gammas.includes(point[0]) && one.lams.includes(point[1]) ? [box.left + one.lams.indexOf(point[1]) * cell.width, box.top + row(point[0]) * cell.height] : null);
    const frame = corner(one.operating_point);
    if (frame) element(svg, "rect", { x: frame[0] + 1.5, y: frame[1] + 1.5, width: cell.width - 3, height: cell.height - 3, class: "operating", "data-tip": "operating point, chosen beforehand" });
    if (one.curve.length > 1) {
      const line = Svg.path(one.curve.map(([i, j]) => [box.left + (j + 0.5) * cell.width, box.top + (one.gammas.length - 0.5 - i) * cell.height]));
      ["under", "over"].forEach((kind) => element(svg, "path", { d: line, class: `operating-curve ${kind}`, "data-tip": "where the theory has FCL cancel the overconfidence of a cross-entropy network of this setting" }));
    }
    const star = corner(one.minimum);
    if (star) mark(svg, "star", star[0] + cell.width - 10, star[1] + 10, { class: "minimum", "data-tip": "lowest of the grid" });
    const named = (point, what) => (corner(point) ? ` ${what} at gamma ${point[0]}, lam ${point[1]}.` : "");
    return { height: box.bottom + 42, title: one.title, said: `${one.title}.${named(one.minimum, "Lowest (star)")}${named(one.operating_point, "Operating point (frame)")}${one.curve.length > 1 ? " Dashed: where the theory has FCL cancel cross-entropy's overconfidence." : ""} ${one.note}`,
      headings: ["gamma", "lam", one.metric, "seeds"], rows: values.flatMap((line, i) => line.map((value, j) => [one.gammas[i], one.lams[j], value, one.seeds[i][j]])) };
  }

  function controls() {
    Controls.select("surface", "surface", here().map((one) => [one.metric, one.label]));
    Controls.get("surface").value = chosen()?.metric ?? "";
  }

  function start() {
    if (!Controls.get("chart-surface")) return;
    Controls.listen("surface", "surface");
    State.on(controls);
    Charts.add("surface", draw);
  }

  return { define: () => State.define("surface", ""), start };
})();
