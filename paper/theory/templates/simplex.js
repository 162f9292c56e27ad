"use strict";
/* Three classes: a triangle in which the posterior can be dragged, or moved with the arrow keys. */
const Simplex = (() => {
  const { element, path } = Svg;
  const { mark } = Points;
  const CORNERS = [[200, 28], [28, 326], [372, 326]]; // of the classes 1, 2, 3
  const CELLS = 14; // the arrows stand on a grid of this many steps a side

  const place = (p) => [0, 1].map((axis) => CORNERS.reduce((total, corner, k) => total + p[k] * corner[axis], 0));

  /* Barycentric coordinates of a point, moved into the triangle. */
  function shares(x, y) {
    const [[ax, ay], [bx, by], [cx, cy]] = CORNERS;
    const area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy);
    const first = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / area;
    const second = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / area;
    return normalised([first, second, 1 - first - second]);
  }

  /* To three decimals, because nobody points more finely and the list of numbers stays short. */
  function normalised(values) {
    const clipped = values.map((value) => Math.max(value, 0));
    const total = clipped.reduce((a, b) => a + b, 0);
    const first = Math.round((1000 * clipped[0]) / total);
    const second = Math.min(Math.round((1000 * clipped[1]) / total), 1000 - first);
    return [first / 1000, second / 1000, (1000 - first - second) / 1000];
  }

  function create(svg, onMove) {
    CORNERS.forEach((corner, k) => {
      const below = k > 0;
      element(svg, "text", { x: corner[0], y: corner[1] + (below ? 22 : -10), class: "corner" }, `class ${k + 1}`);
    });
    element(svg, "path", { d: `${path(CORNERS)}Z`, class: "triangle" });
    const regions = element(svg, "g", { class: "regions" }); // where the decision changes
    const centre = place([1 / 3, 1 / 3, 1 / 3]);
    [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]].forEach((p) => element(regions, "path", { d: path([centre, place(p)]) }));
    const field = element(svg, "g", { class: "field" });
    const points = element(svg, "g");
    const handle = element(svg, "g", { class: "handle", tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-valuemax": 1 });
    handle.setAttribute("aria-label", "posterior; arrow keys move it: up and down change class 1, left class 2, right class 3");
    element(handle, "circle", { r: 20, class: "grip" });
    mark(handle, "eta", 0, 0);
    listen(svg, handle, onMove);
    return { show: (state) => show({ field, points, handle }, state) };
  }

  function listen(svg, handle, onMove) {
    const move = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      onMove(shares(at.x, at.y));
    };
    handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // dragging never scrolls
    svg.addEventListener("click", move); // a tap beside the handle; a finger that moves there scrolls the page
    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" && !handle.contains(event.target)) return;
      svg.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      move(event);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => svg.hasPointerCapture(event.pointerId) && move(event));
    const towards = { ArrowUp: [1, -0.5, -0.5], ArrowDown: [-1, 0.5, 0.5], ArrowLeft: [-0.5, 1, -0.5], ArrowRight: [-0.5, -0.5, 1] };
    handle.addEventListener("keydown", (event) => {
      const direction = towards[event.key];
      if (!direction) return;
      const step = event.shiftKey ? 0.1 : 0.01;
      const eta = handle.dataset.eta.split(",").map(Number);
      onMove(normalised(eta.map((value, k) => value + step * direction[k])));
      event.preventDefault();
    });
  }

  /* Returns the predictions that lie too far outside to be drawn. */
  function show({ field, points, handle }, state) {
    const { eta, solution, first, newton, gamma, lam, arrows } = state;
    handle.setAttribute("transform", `translate(${place(eta).join(" ")})`);
    handle.dataset.eta = eta.join(",");
    handle.setAttribute("aria-valuenow", eta[0]);
    handle.setAttribute("aria-valuetext", eta.map((value, k) => `class ${k + 1}: ${value.toFixed(3)}`).join(", "));
    points.replaceChildren();
    element(points, "path", { d: path([place(eta), place(solution.q)]), class: "displacement" });
    mark(points, "solution", ...place(solution.q));
    const outside = [["first", first], ["newton", newton]].filter(([kind, bias]) => {
      const predicted = bias && eta.map((value, k) => value + bias[k]);
      const inside = predicted && predicted.every((value) => value > -0.15);
      if (inside) mark(points, kind, ...place(predicted));
      return predicted && !inside;
    });
    field.replaceChildren();
    if (arrows) drawField(field, gamma, lam);
    return outside.map(([kind]) => kind);
  }

  function drawField(field, gamma, lam) {
    for (let i = 0; i <= CELLS; i += 1) {
      for (let j = 0; i + j <= CELLS; j += 1) {
        const eta = [i / CELLS, j / CELLS, (CELLS - i - j) / CELLS];
        const [from, to] = [place(eta), place(Solver.minimise(eta, gamma, lam).q)];
        const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
        if (length < 0.5) element(field, "circle", { cx: from[0], cy: from[1], r: 1 });
        else element(field, "path", { d: arrow(from, to, length) });
      }
    }
  }

  function arrow(from, to, length) {
    const head = Math.min(4, length / 2);
    const [ux, uy] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    const wing = (side) => [to[0] - head * (ux + side * 0.6 * uy), to[1] - head * (uy - side * 0.6 * ux)];
    return path([from, to]) + path([wing(1), to, wing(-1)]);
  }

  return { create };
})();
