"use strict";
/* A row per objective: its mark and name at the left, which can be pressed to highlight it everywhere. */
const Lanes = (() => {
  const { element, mark } = Svg;
  const MOST = 24; // lanes that are shown at once
  const HEIGHT = 27;

  const labelWidth = (width, names) => {
    const wanted = 34 + 6.9 * Math.max(4, ...names.map((name) => name.length));
    return Math.min(wanted, width < 480 ? 132 : 190);
  };

  const cut = (text, width) => {
    const longest = Math.max(6, Math.floor((width - 34) / 6.7));
    return text.length <= longest ? text : `${text.slice(0, longest - 1)}\u2026`;
  };

  /* The lane's group, which holds everything that is drawn in it; `said` is read aloud and shown on hover. */
  function lane(svg, key, y, width, labels, said, flag = null) {
    const { name, full, marker } = Study.objective(key);
    const group = element(svg, "g", { ...Study.classes(key, "lane"), ...Study.button(key), "aria-label": `${full}: ${said}` });
    element(group, "rect", { x: 0, y: y - HEIGHT / 2, width, height: HEIGHT, class: State.get("objective") === key ? "ground pressed" : "ground" });
    mark(group, marker, 8, y, { class: "solid", scale: 0.85 });
    const text = element(group, "text", { x: 20, y: y + 4, class: `label strong name${key === Study.candidate ? " candidate" : ""}`, "data-tip": `${full}\n${said}` }, cut(name, labels));
    if (flag) element(text, "tspan", { class: "flag", "data-tip": flag }, " \u2020");
    Study.pressable(group, key);
    return group;
  }

  /* The best of many and the chosen one, and a word about those that are left out. */
  function few(rows) {
    if (rows.length <= MOST || State.get("lanes") === "all") return { kept: rows, left: "" };
    const kept = rows.filter(({ objective }, at) => at < MOST || objective === State.get("objective"));
    return { kept, left: `${rows.length - kept.length} more objectives are not shown.` };
  }

  /* A seed's rings, the interval and the mean's mark. */
  function marks(group, row, key, y, at, { kind, open = false, ends = false, tip, scale = 1, sign = false }) {
    const [low, high, mean] = [row.low, row.high, row.mean].map((value) => at(value));
    if (Number.isFinite(low)) element(group, "path", { d: `M${low} ${y}H${high}${ends ? `M${low} ${y - 4}v8M${high} ${y - 4}v8` : ""}`, class: "interval" });
    Study.numbers(row.value).forEach((value, index) => {
      if (Number.isFinite(value)) element(group, "circle", { cx: at(value), cy: y, r: 3.2, class: "seed", "data-tip": `seed ${row.seed[index]}: ${Study.shown(key, value, { sign })}${Study.unit(key)}` });
    });
    if (Number.isFinite(mean)) mark(group, kind, mean, y, { class: open ? "mean open" : "mean", scale, "data-tip": tip });
  }

  return { HEIGHT, MOST, labelWidth, lane, few, cut, marks };
})();
