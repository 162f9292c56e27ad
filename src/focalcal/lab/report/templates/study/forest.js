"use strict";
/* The candidate minus each baseline, paired by seed; what the test says is the shape of the mean. */
const ForestView = (() => {
  const { element } = Svg;

  function draw(svg, width) {
    const key = State.get("metric");
    const view = Study.view("differences", key) ?? Study.views("differences")[0]; // else of the first that was tested
    if (!view) return Study.nothing("Nothing was tested in this setting.", "No test in this setting");
    const { higher, named, percent } = Study.metric(view.choice);
    const { kept, left } = Lanes.few(view.rows);
    const labels = Lanes.labelWidth(width, kept.map((row) => Study.objective(row.objective).name));
    const box = { left: labels + 8, right: width - (width < 480 ? 8 : 170), top: 34, bottom: 34 + Lanes.HEIGHT * kept.length };
    const ends = kept.flatMap((row) => [...row.value, row.low, row.high, 0]).map((value) => Study.scaled(view.choice, value));
    const x = Axes.linear(Axes.extent(ends, { room: 0.08 }), [box.left, box.right]);
    Axes.bottom(svg, x, box, `${Study.metric(view.choice).title}: difference${percent ? " in points" : ""}`);
    element(svg, "path", { d: `M${x(0)} ${box.top - 6}V${box.bottom}`, class: "zero" });
    const who = Study.objective(view.candidate).name;
    [["better", higher ? 1 : -1], ["worse", higher ? -1 : 1]].forEach(([word, side]) => {
      const text = side < 0 ? `\u2190 ${who} ${word}` : `${who} ${word} \u2192`;
      const room = side < 0 ? x(0) - box.left : box.right - x(0);
      element(svg, "text", { x: x(0) + side * 8, y: 18, class: `label strong ${side < 0 ? "end" : ""}` }, room > 6.5 * text.length ? text : side < 0 ? `\u2190 ${word}` : `${word} \u2192`);
    });
    kept.forEach((row, at) => lane(svg, row, view, x, box.top + Lanes.HEIGHT * (at + 0.5), width, labels, box));
    return Study.made(view, box.bottom + 42, view.choice === key ? "" : `${Study.metric(key).title} was not tested; this is ${Study.metric(view.choice).title}.`, view.note, left);
  }

  function lane(svg, row, view, x, y, width, labels, box) {
    const key = view.choice;
    const [kind, , words] = Study.data.verdicts[row.verdict];
    const [mean, low, high] = [row.mean, row.low, row.high].map((value) => Study.shown(key, value, { sign: true }));
    const p = `p = ${Svg.number(row.p_holm, 2)}`;
    const said = `${mean} (${low} to ${high}), ${words}, ${p}`;
    const group = Lanes.lane(svg, row.objective, y, width, labels, said);
    if (State.get("objective") === view.candidate) group.classList.remove("dim"); // it is in every lane
    Lanes.marks(group, row, key, y, (value) => x(Study.scaled(key, value)), { kind, open: !["better", "worse"].includes(row.verdict), scale: 1.15, sign: true,
      tip: `against ${Study.objective(row.objective).full}\n${said}\n${Study.data.terms.holm}` });
    if (box.right < width - 100) element(group, "text", { x: box.right + 12, y: y + 4, class: "label" }, `${mean}, ${p}`);
  }

  return { start: () => Charts.add("forest", draw) };
})();
