"use strict";
/* The candidate minus each baseline, paired by seed; what the test says is the shape of the mean. */
const ForestView = (() => {
  const { element, mark } = Svg;
  const SHAPES = { better: "diamond", worse: "square", indistinguishable: "circle", "cannot show": "cross" };
  const WORDS = { better: "significantly better", worse: "significantly worse", indistinguishable: "not significant", "cannot show": "too few seeds to tell" };

  /* Of the chosen metric if it was tested, else of the first that was. */
  function chosen() {
    const here = Study.data.comparisons.filter((one) => one.setting === Study.setting());
    const tested = new Set(here.map((one) => one.metric));
    const key = tested.has(State.get("metric")) ? State.get("metric") : [...tested][0];
    return { key, found: here.filter((one) => one.metric === key) };
  }

  function draw(svg, width) {
    const { key, found } = chosen();
    if (!found.length) return { height: 10, title: "No test in this setting", said: "Nothing was tested in this setting.", headings: [], rows: [] };
    const { higher } = Study.metric(key);
    const all = [...found].sort((a, b) => (higher ? -1 : 1) * (a.mean - b.mean));
    const { kept, left } = Lanes.few(all, (one) => one.baseline);
    const labels = Lanes.labelWidth(width, kept.map((one) => Study.objective(one.baseline).name));
    const box = { left: labels + 8, right: width - (width < 480 ? 8 : 170), top: 34, bottom: 34 + Lanes.HEIGHT * kept.length };
    const ends = kept.flatMap((one) => [...one.differences, one.low, one.high, 0]).map((value) => Study.scaled(key, value));
    const x = Axes.linear(Axes.extent(ends, { room: 0.08 }), [box.left, box.right]);
    Axes.bottom(svg, x, box, `${Study.metric(key).title}: difference${Study.metric(key).percent ? " in points" : ""}`);
    element(svg, "path", { d: `M${x(0)} ${box.top - 6}V${box.bottom}`, class: "zero" });
    const who = Study.objective(kept[0].candidate).name;
    [["better", higher ? 1 : -1], ["worse", higher ? -1 : 1]].forEach(([word, side]) => {
      const text = side < 0 ? `\u2190 ${who} ${word}` : `${who} ${word} \u2192`;
      const room = side < 0 ? x(0) - box.left : box.right - x(0);
      element(svg, "text", { x: x(0) + side * 8, y: 18, class: `label strong ${side < 0 ? "end" : ""}` }, room > 6.5 * text.length ? text : side < 0 ? `\u2190 ${word}` : `${word} \u2192`);
    });
    kept.forEach((one, at) => lane(svg, one, key, x, box.top + Lanes.HEIGHT * (at + 0.5), width, labels, box));
    const counts = Object.keys(SHAPES).map((verdict) => [verdict, all.filter((one) => one.verdict === verdict).length]).filter(([, count]) => count);
    const other = key === State.get("metric") ? "" : `${Study.metric(State.get("metric")).title} was not tested; this is ${Study.metric(key).title}. `;
    return { height: box.bottom + 42, title: `${who} minus each baseline, ${Study.named(key)} on ${State.get("setting")}`,
      said: `${other}${counts.map(([verdict, count]) => `${mark_text(verdict)} ${WORDS[verdict]}: ${count}`).join(" \u00a0 ")}${left ? `; ${left} more are not shown` : ""}`,
      headings: ["baseline", "mean", "low", "high", "p", "p_holm", "d_z", "verdict", ...all[0].seeds.map((seed) => `seed ${seed}`)],
      rows: all.map((one) => [Study.objective(one.baseline).key, one.mean, one.low, one.high, one.p, one.p_holm, Study.number(one.effect), one.verdict, ...one.differences]) };
  }

  const mark_text = (verdict) => ({ better: "\u25c6", worse: "\u25a0", indistinguishable: "\u25cb", "cannot show": "\u2715" })[verdict];

  function lane(svg, one, key, x, y, width, labels, box) {
    const at = (value) => x(Study.scaled(key, value));
    const p = `p = ${Svg.number(one.p_holm, 2)}`;
    const said = `${Study.shown(key, one.mean, { sign: true })} (${Study.shown(key, one.low, { sign: true })} to ${Study.shown(key, one.high, { sign: true })}), ${WORDS[one.verdict]}, ${p}`;
    const group = Lanes.lane(svg, one.baseline, y, width, labels, said);
    if (State.get("objective") === Study.objective(one.candidate).key) group.classList.remove("dim"); // it is in every lane
    element(group, "path", { d: `M${at(one.low)} ${y}H${at(one.high)}`, class: "interval" });
    one.differences.forEach((value, index) => element(group, "circle", { cx: at(value), cy: y, r: 3, class: "seed", "data-tip": `seed ${one.seeds[index]}: ${Study.shown(key, value, { sign: true })}` }));
    const clear = one.verdict === "better" || one.verdict === "worse";
    mark(group, SHAPES[one.verdict], at(one.mean), y, { class: clear ? "mean" : "mean open", scale: 1.15, "data-tip": `against ${Study.objective(one.baseline).full}\n${said}\n${Study.data.terms.holm}` });
    if (box.right < width - 100) element(group, "text", { x: box.right + 12, y: y + 4, class: "label" }, `${Study.shown(key, one.mean, { sign: true })}, ${p}`);
  }

  return { start: () => Charts.add("forest", draw) };
})();
