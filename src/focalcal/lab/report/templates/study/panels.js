"use strict";
/* Small multiples: square panels in rows, one per objective, which can be pressed. */
const Panels = (() => {
  const { element } = Svg;
  const SMALLEST = 132; // pixels across a panel, its margins included
  const LARGEST = 250;
  const ABREAST = 6;

  /* How many abreast, in rows of nearly equal length, and how wide each. */
  function layout(width, count) {
    const most = Math.max(1, Math.min(ABREAST, Math.floor(width / SMALLEST)));
    const columns = Math.max(1, Math.ceil(count / Math.ceil(count / most)));
    return { columns, side: Math.min(LARGEST, width / columns) };
  }

  /* Calls paint(group, row, box) for each, box being the square inside; returns the height of all. */
  function draw(svg, width, rows, below, paint) {
    const { columns, side } = layout(width, rows.length);
    const high = side - 36 + below + 46;
    rows.forEach((one, at) => {
      const [column, row] = [at % columns, Math.floor(at / columns)];
      const box = { left: column * side + 26, right: (column + 1) * side - 10, top: row * high + 38 };
      box.bottom = box.top + (box.right - box.left);
      const key = one.objective;
      const group = element(svg, "g", { ...Study.classes(key, "panel"), ...Study.button(key) });
      element(group, "rect", { x: column * side + 1, y: row * high + 1, width: side - 2, height: high - 4, rx: 6, class: State.get("objective") === key ? "ground pressed" : "ground" });
      group.setAttribute("aria-label", `${Study.objective(key).full}: ${paint(group, one, box)}`);
      Study.pressable(group, key);
    });
    return Math.ceil(rows.length / columns) * high;
  }

  /* Name and a line below it, above a panel. */
  function heading(group, { objective }, box, text) {
    const { name, full } = Study.objective(objective);
    const longest = Math.floor((box.right - box.left + 20) / 6.6);
    element(group, "text", { x: box.left, y: box.top - 23, class: "label strong name", "data-tip": full }, name.length > longest ? `${name.slice(0, longest - 1)}\u2026` : name);
    element(group, "text", { x: box.left, y: box.top - 9, class: "label small" }, text);
  }

  return { draw, heading, layout };
})();
