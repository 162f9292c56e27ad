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
  function lane(svg, place, y, width, labels, said, flag = null) {
    const { key, name, full, marker } = Study.objective(place);
    const look = Study.classes(place, "lane");
    const pressed = State.get("objective") === key;
    const group = element(svg, "g", { ...look, tabindex: 0, role: "button", "aria-pressed": pressed, "aria-label": `${full}: ${said}`, "data-name": key });
    element(group, "rect", { x: 0, y: y - HEIGHT / 2, width, height: HEIGHT, class: pressed ? "ground pressed" : "ground" });
    mark(group, marker, 8, y, { class: "solid", scale: 0.85 });
    const text = element(group, "text", { x: 20, y: y + 4, class: `label strong name${place === Study.candidate ? " candidate" : ""}`, "data-tip": `${full}\n${said}` }, cut(name, labels));
    if (flag) element(text, "tspan", { class: "flag", "data-tip": flag }, " \u2020");
    const act = () => Study.choose(place);
    group.addEventListener("click", act);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
    return group;
  }

  /* The best of many and the chosen one, and how many are left out. */
  function few(cells, place = (cell) => cell.objective) {
    if (cells.length <= MOST || State.get("lanes") === "all") return { kept: cells, left: 0 };
    const chosen = State.get("objective");
    const kept = cells.filter((cell, at) => at < MOST || Study.objective(place(cell)).key === chosen);
    return { kept, left: cells.length - kept.length };
  }

  return { HEIGHT, MOST, labelWidth, lane, few, cut };
})();
