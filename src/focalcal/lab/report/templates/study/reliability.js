"use strict";
/* Reliability diagrams: a panel per objective, one or two of them enlarged, epoch by epoch and class by class. */
const ReliabilityView = (() => {
  const { element, path, mark } = Svg;
  let playing = null;

  const scaling = () => State.get("scaling");
  const epochs = () => Study.views("reliability").filter(({ choice }) => choice.startsWith("epoch ")).map(({ choice }) => Number(choice.slice("epoch ".length)));
  const epoch = () => (scaling() === "whole" && !State.get("class") ? State.get("epoch") : "");

  /* That of the chosen state, epoch or class. */
  function chosen() {
    if (scaling() !== "whole") return Study.view("reliability", scaling());
    if (State.get("class") !== "") return Study.view("reliability", `class ${State.get("class")}`);
    return Study.view("reliability", epoch() === "" ? "whole" : `epoch ${epoch()}`);
  }

  /* One entry per bin that is not empty. */
  const bins = (row) => row.bin.map((bin, at) => ({ from: (bin - 1) / Study.data.bins, to: bin / Study.data.bins, rows: row.rows[at], sure: row.confidence[at], right: row.accuracy[at], chance: row.chance[at], few: row.rows[at] < row.least }));

  function diagram(group, list, box, { large = false } = {}) {
    const x = Axes.linear([0, 1], [box.left, box.right]);
    const y = Axes.linear([0, 1], [box.bottom, box.top]);
    element(group, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "frame" });
    [0.5, ...(large ? [0.25, 0.75] : [])].forEach((value) => element(group, "path", { d: `M${box.left} ${y(value)}H${box.right}M${x(value)} ${box.top}V${box.bottom}`, class: "grid" }));
    const shown = list.filter((bin) => !bin.few);
    const inside = (value) => Math.min(1, Math.max(0, value));
    shown.forEach((bin) => {
      const [from, to] = [x(bin.from), x(bin.to)];
      element(group, "rect", { x: from, y: y(inside(bin.sure + bin.chance)), width: to - from, height: y(inside(bin.sure - bin.chance)) - y(inside(bin.sure + bin.chance)), class: "chance" });
    });
    shown.forEach((bin) => {
      const [from, to] = [x(bin.from) + 0.5, x(bin.to) - 0.5];
      const [top, bottom] = [y(Math.max(bin.sure, bin.right)), y(Math.min(bin.sure, bin.right))];
      element(group, "rect", { x: from, y: top, width: to - from, height: Math.max(0.5, bottom - top), class: bin.sure > bin.right ? "gap-over" : "gap-under" });
    });
    element(group, "path", { d: path([[x(0), y(0)], [x(1), y(1)]]), class: "diagonal" });
    element(group, "path", { d: path(shown.map((bin) => [x(bin.sure), y(bin.right)])), class: "curve" });
    list.forEach((bin) => {
      const tip = `confidence ${Svg.fixed(100 * bin.sure, 1)} %, accuracy ${Svg.fixed(100 * bin.right, 1)} %\n${bin.rows} rows, chance \u00b1 ${Svg.fixed(100 * bin.chance, 1)} points`;
      element(group, "circle", { cx: x(bin.sure), cy: y(bin.right), r: large ? 4.5 : 2.8, class: bin.few ? "point sparse" : "point", "data-tip": tip });
    });
    ticks(group, x, y, box, large);
  }

  function ticks(group, x, y, box, large) {
    (large ? [0, 0.25, 0.5, 0.75, 1] : [0, 1]).forEach((value) => {
      element(group, "text", { x: box.left - 4, y: y(value) + 4, class: "label small end" }, String(value));
    });
    if (large) element(group, "text", { x: box.left, y: box.top - 8, class: "label axis" }, "accuracy");
  }

  /* Rows per bin, as shares of the fullest one. */
  function histogram(group, list, box, height) {
    const most = Math.max(...list.map((bin) => bin.rows));
    const x = Axes.linear([0, 1], [box.left, box.right]);
    const base = box.bottom + 6 + height;
    list.forEach((bin) => {
      const high = Math.max(1, (bin.rows / most) * height);
      element(group, "rect", { x: x(bin.from) + 0.5, y: base - high, width: x(bin.to) - x(bin.from) - 1, height: high, class: "rows", "data-tip": `${bin.rows} rows` });
    });
    element(group, "path", { d: `M${box.left} ${base}H${box.right}`, class: "zero" });
    [0, 0.5, 1].forEach((value) => element(group, "text", { x: x(value), y: base + 12, class: "label small middle" }, String(value)));
  }

  function words({ ece, gap }) {
    const off = Svg.fixed(100 * Math.abs(gap), 1);
    const mean = Number(off) === 0 ? "right on average" : `${gap > 0 ? "over" : "under"}confident by ${off} points`;
    return `pooled ECE ${Svg.fixed(100 * ece, 2)} %, ${mean}`;
  }

  function drawAll(svg, width) {
    const view = chosen();
    if (!view) return Study.nothing("This setting has no such diagram.");
    const { kept, left } = Lanes.few(view.rows);
    const missing = (Study.view("reliability", "whole")?.rows.length ?? 0) - view.rows.length;
    const height = Panels.draw(svg, width, kept, 48, (group, row, box) => {
      const list = bins(row);
      Panels.heading(group, row, box, `pooled ECE ${Svg.fixed(100 * row.ece, 1)} %`);
      diagram(group, list, box);
      histogram(group, list, box, 24);
      return words(row);
    });
    return Study.made(view, Math.max(height, 20), missing > 0 ? `${missing} objectives have no such diagram.` : "", left, view.choice === "whole" ? "" : `${view.title}.`);
  }

  function drawLarge(svg, width) {
    const view = chosen();
    const wanted = ["objective", "other"].map((name) => view?.rows.find(({ objective }) => objective === State.get(name))).filter(Boolean);
    const shown = [...new Set(wanted)];
    if (!State.get("objective") || !shown.length) return { ...Study.nothing(""), height: 0 };
    const side = Math.min(400, shown.length > 1 && width > 640 ? width / 2 - 30 : width - 60);
    const abreast = width > 640 ? 2 : 1;
    const high = side + 134;
    shown.forEach((one, at) => {
      const [column, row] = [at % abreast, Math.floor(at / abreast)];
      const box = { left: 34 + column * (side + 56), top: 60 + row * high };
      Object.assign(box, { right: box.left + side, bottom: box.top + side });
      const { name, full, marker, place } = Study.objective(one.objective);
      const group = element(svg, "g", { style: `--c: var(--o${place})` });
      mark(group, marker, box.left + 6, box.top - 46, { class: "solid" });
      element(group, "text", { x: box.left + 18, y: box.top - 42, class: "label strong title", "data-tip": full }, name);
      element(group, "text", { x: box.left, y: box.top - 26, class: "label" }, words(one));
      diagram(group, bins(one), box, { large: true });
      histogram(group, bins(one), box, 36);
      element(group, "text", { x: (box.left + box.right) / 2, y: box.bottom + 68, class: "label middle axis" }, "confidence");
    });
    const title = `Reliability of ${shown.map(({ objective }) => Study.objective(objective).name).join(" and ")}`;
    return Study.made({ title, rows: shown }, Math.ceil(shown.length / abreast) * high + 6);
  }

  function controls() {
    const halves = Study.data.fitted_on === "halves"; // else before scaling is as trained
    const states = [["whole", halves ? "as trained, all rows" : "as trained"], ...(halves ? [["before", "as trained, the measured half"]] : []),
      ["after", halves ? "scaled, that half" : "temperature-scaled"]];
    const there = states.filter(([state]) => Study.view("reliability", state));
    Controls.radios("scaling", "scaling", there);
    const classes = Study.views("reliability").filter(({ choice }) => choice.startsWith("class ")).length;
    Controls.select("class", "class", [["", "the predicted one"], ...Array.from({ length: classes }, (_, at) => [String(at), String(at)])]);
    const pressed = State.get("objective");
    const others = (chosen()?.rows ?? []).filter(({ objective }) => objective !== pressed).map(({ objective }) => [objective, Study.objective(objective).name]);
    Controls.select("other", "other", pressed ? [["", "nothing"], ...others] : []);
    const list = epochs();
    const usable = list.length > 1 && scaling() === "whole" && State.get("class") === "";
    ["epoch-control", "play-control"].forEach((id) => { Controls.get(id).hidden = !usable; });
    Controls.get("epoch").max = String(Math.max(0, list.length - 1));
    const at = epoch() === "" ? list.length - 1 : list.indexOf(Number(epoch()));
    Controls.get("epoch").value = String(at);
    Controls.get("epoch-shown").textContent = list.length ? `${list[at] ?? ""} of ${list[list.length - 1]}` : "";
    document.getElementById("chart-large").hidden = !pressed;
  }

  const atEpoch = (at) => State.set({ epoch: at >= epochs().length - 1 ? "" : String(epochs()[at]) });

  function play() {
    if (playing) {
      clearInterval(playing);
      playing = null;
    } else {
      let at = 0;
      playing = setInterval(() => {
        atEpoch(at);
        at += 1;
        if (at >= epochs().length) play();
      }, 300);
    }
    Controls.get("play").textContent = playing ? "Stop" : "Play";
  }

  function define() {
    State.define("scaling", "whole", ["whole", "before", "after"]);
    State.define("epoch", "");
    State.define("class", "");
    State.define("other", "", ["", ...Study.data.objectives.map(({ key }) => key)]);
  }

  function start() {
    if (!Controls.get("chart-reliability")) return;
    ["class", "other"].forEach((name) => Controls.listen(name, name));
    Controls.get("epoch").addEventListener("input", (event) => atEpoch(Number(event.target.value)));
    Controls.get("play").addEventListener("click", play);
    State.on(controls);
    Charts.add("large", drawLarge);
    Charts.add("reliability", drawAll);
  }

  return { define, start };
})();
