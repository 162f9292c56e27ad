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

  /* Calls draw(group, cell, box) for each, box being the square inside; returns the height of all. */
  function draw(svg, width, cells, below, paint) {
    const { columns, side } = layout(width, cells.length);
    const high = side - 36 + below + 46;
    cells.forEach((cell, at) => {
      const [column, row] = [at % columns, Math.floor(at / columns)];
      const box = { left: column * side + 26, right: (column + 1) * side - 10, top: row * high + 38 };
      box.bottom = box.top + (box.right - box.left);
      const { key } = Study.objective(cell.objective);
      const pressed = State.get("objective") === key;
      const group = element(svg, "g", { ...Study.classes(cell.objective, "panel"), tabindex: 0, role: "button", "aria-pressed": pressed, "data-name": key });
      element(group, "rect", { x: column * side + 1, y: row * high + 1, width: side - 2, height: high - 4, rx: 6, class: pressed ? "ground pressed" : "ground" });
      const said = paint(group, cell, box);
      group.setAttribute("aria-label", `${Study.objective(cell.objective).full}: ${said}`);
      const act = () => Study.choose(cell.objective);
      group.addEventListener("click", act);
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        act();
      });
    });
    return Math.ceil(cells.length / columns) * high;
  }

  /* Name and a line below it, above a panel. */
  function heading(group, cell, box, text) {
    const { name, full } = Study.objective(cell.objective);
    const longest = Math.floor((box.right - box.left + 20) / 6.6);
    element(group, "text", { x: box.left, y: box.top - 23, class: "label strong name", "data-tip": full }, name.length > longest ? `${name.slice(0, longest - 1)}\u2026` : name);
    element(group, "text", { x: box.left, y: box.top - 9, class: "label small" }, text);
  }

  return { draw, heading, layout };
})();
