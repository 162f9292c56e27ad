"use strict";
/* Reliability diagrams: a panel per objective, one or two of them enlarged, epoch by epoch and class by class. */
const ReliabilityView = (() => {
  const { element, path, mark } = Svg;
  const Z = 1.96; // two-sided 95 %
  let playing = null;

  const scaling = () => State.get("scaling");
  const epochs = () => Study.cells().find((cell) => cell.epoch_bins)?.epoch_bins.epoch ?? [];
  const epoch = () => (scaling() === "whole" && !State.get("class") ? State.get("epoch") : "");

  /* The sums of the chosen state, epoch or class; null where a cell has none. */
  function sums(cell) {
    if (scaling() !== "whole") return cell.bins[scaling()] ?? null;
    if (State.get("class") !== "") return cell.classes[Number(State.get("class"))] ?? null;
    if (epoch() === "") return cell.bins.whole ?? null;
    const stored = cell.epoch_bins;
    const at = stored ? stored.epoch.indexOf(Number(epoch())) : -1;
    if (at < 0) return null;
    return { seeds: stored.seeds, count: stored.count[at], confidence: stored.confidence[at], correct: stored.correct[at] };
  }

  /* One entry per bin that is not empty: confidence, accuracy, rows, and half the width of what chance gives.
     The rows of several seeds are the same examples, so that chance is that of one seed's number of rows. */
  function bins({ seeds, count, confidence, correct }) {
    return count.map((rows, at) => {
      const sure = confidence[at] / rows;
      return { at, rows, sure, right: correct[at] / rows, chance: Z * Math.sqrt(Math.max(0, sure * (1 - sure)) / Math.max(1, rows / seeds)), of: count.length };
    }).filter((bin) => bin.rows > 0);
  }

  const ece = (list) => {
    const total = list.reduce((sum, bin) => sum + bin.rows, 0);
    return total ? list.reduce((sum, bin) => sum + bin.rows * Math.abs(bin.sure - bin.right), 0) / total : NaN;
  };

  const gap = (list) => {
    const total = list.reduce((sum, bin) => sum + bin.rows, 0);
    return total ? list.reduce((sum, bin) => sum + bin.rows * (bin.sure - bin.right), 0) / total : NaN;
  };

  const least = (list) => Math.min(100, Math.max(5, 0.01 * list.reduce((sum, bin) => sum + bin.rows, 0)));

  function diagram(group, list, box, { large = false, colour = "" } = {}) {
    const x = Axes.linear([0, 1], [box.left, box.right]);
    const y = Axes.linear([0, 1], [box.bottom, box.top]);
    const few = least(list);
    element(group, "rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top, class: "frame" });
    [0.5, ...(large ? [0.25, 0.75] : [])].forEach((value) => element(group, "path", { d: `M${box.left} ${y(value)}H${box.right}M${x(value)} ${box.top}V${box.bottom}`, class: "grid" }));
    const inside = (value) => Math.min(1, Math.max(0, value));
    list.filter((bin) => bin.rows >= few).forEach((bin) => {
      const [from, to] = [x(bin.at / bin.of), x((bin.at + 1) / bin.of)];
      element(group, "rect", { x: from, y: y(inside(bin.sure + bin.chance)), width: to - from, height: y(inside(bin.sure - bin.chance)) - y(inside(bin.sure + bin.chance)), class: "chance" });
    });
    list.filter((bin) => bin.rows >= few).forEach((bin) => {
      const [from, to] = [x(bin.at / bin.of) + 0.5, x((bin.at + 1) / bin.of) - 0.5];
      const [top, bottom] = [y(Math.max(bin.sure, bin.right)), y(Math.min(bin.sure, bin.right))];
      element(group, "rect", { x: from, y: top, width: to - from, height: Math.max(0.5, bottom - top), class: bin.sure > bin.right ? "gap-over" : "gap-under" });
    });
    element(group, "path", { d: path([[x(0), y(0)], [x(1), y(1)]]), class: "diagonal" });
    const shown = list.filter((bin) => bin.rows >= few);
    element(group, "path", { d: path(shown.map((bin) => [x(bin.sure), y(bin.right)])), class: `curve ${colour}` });
    list.forEach((bin) => {
      const tip = `confidence ${Svg.fixed(100 * bin.sure, 1)} %, accuracy ${Svg.fixed(100 * bin.right, 1)} %\n${bin.rows} rows, chance \u00b1 ${Svg.fixed(100 * bin.chance, 1)} points`;
      element(group, "circle", { cx: x(bin.sure), cy: y(bin.right), r: large ? 4.5 : 2.8, class: bin.rows >= few ? "point" : "point sparse", "data-tip": tip });
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
      element(group, "rect", { x: x(bin.at / bin.of) + 0.5, y: base - high, width: x(1 / bin.of) - x(0) - 1, height: high, class: "rows", "data-tip": `${bin.rows} rows` });
    });
    element(group, "path", { d: `M${box.left} ${base}H${box.right}`, class: "zero" });
    [0, 0.5, 1].forEach((value) => element(group, "text", { x: x(value), y: base + 12, class: "label small middle" }, String(value)));
  }

  function words(list) {
    const off = Svg.fixed(100 * Math.abs(gap(list)), 1);
    const mean = Number(off) === 0 ? "right on average" : `${gap(list) > 0 ? "over" : "under"}confident by ${off} points`;
    return `pooled ECE ${Svg.fixed(100 * ece(list), 2)} %, ${mean}`;
  }

  function drawAll(svg, width) {
    const there = Study.sorted(Study.metrics.has("ece") ? "ece" : State.get("metric")).filter((cell) => cell.bins.whole);
    const { kept, left } = Lanes.few(there);
    const drawn = kept.filter((cell) => sums(cell));
    const height = Panels.draw(svg, width, drawn, 48, (group, cell, box) => {
      const list = bins(sums(cell));
      Panels.heading(group, cell, box, `pooled ECE ${Svg.fixed(100 * ece(list), 1)} %`);
      diagram(group, list, box);
      histogram(group, list, box, 24);
      return words(list);
    });
    const missing = kept.length - drawn.length;
    const said = [missing ? `${missing} objectives have no such diagram.` : "", left ? `${left} more objectives are not shown.` : "",
      epoch() ? `After epoch ${epoch()}.` : "", State.get("class") !== "" && scaling() === "whole" ? `Probability of class ${State.get("class")} against how often it is right.` : ""].join(" ").trim();
    return { height: Math.max(height, 20), title: `Reliability on ${State.get("setting")}, seeds pooled${epoch() ? `, epoch ${epoch()}` : ""}`, said,
      headings: ["objective", "from", "to", "rows", "confidence", "accuracy", "chance"],
      rows: there.filter((cell) => sums(cell)).flatMap((cell) => bins(sums(cell)).map((bin) =>
        [Study.objective(cell.objective).key, bin.at / bin.of, (bin.at + 1) / bin.of, bin.rows, bin.sure, bin.right, bin.chance])) };
  }

  function drawLarge(svg, width) {
    const cells = Study.cells().filter((cell) => sums(cell));
    const wanted = ["objective", "other"].map((name) => cells.find((cell) => Study.objective(cell.objective).key === State.get(name))).filter(Boolean);
    const shown = [...new Set(wanted)];
    if (!State.get("objective") || !shown.length) return { height: 0, title: "", said: "", headings: [], rows: [] };
    const side = Math.min(400, shown.length > 1 && width > 640 ? width / 2 - 30 : width - 60);
    const abreast = width > 640 ? 2 : 1;
    const high = side + 134;
    shown.forEach((cell, at) => {
      const [column, row] = [at % abreast, Math.floor(at / abreast)];
      const box = { left: 34 + column * (side + 56), top: 60 + row * high };
      Object.assign(box, { right: box.left + side, bottom: box.top + side });
      const list = bins(sums(cell));
      const group = element(svg, "g", { style: `--c: var(--o${Study.objective(cell.objective).place})` });
      mark(group, Study.objective(cell.objective).marker, box.left + 6, box.top - 46, { class: "solid" });
      element(group, "text", { x: box.left + 18, y: box.top - 42, class: "label strong title", "data-tip": Study.objective(cell.objective).full }, Study.objective(cell.objective).name);
      element(group, "text", { x: box.left, y: box.top - 26, class: "label" }, words(list));
      diagram(group, list, box, { large: true });
      histogram(group, list, box, 36);
      element(group, "text", { x: (box.left + box.right) / 2, y: box.bottom + 68, class: "label middle axis" }, "confidence");
    });
    return { height: Math.ceil(shown.length / abreast) * high + 6, title: `Reliability of ${shown.map((cell) => Study.objective(cell.objective).name).join(" and ")}`, said: "",
      headings: ["objective", "rows", "confidence", "accuracy"], rows: shown.flatMap((cell) => bins(sums(cell)).map((bin) => [Study.objective(cell.objective).key, bin.rows, bin.sure, bin.right])) };
  }

  function controls() {
    const halves = Study.data.fitted_on === "halves"; // else before scaling is as trained
    const states = [["whole", halves ? "as trained, all rows" : "as trained"], ...(halves ? [["before", "as trained, the measured half"]] : []),
      ["after", halves ? "scaled, that half" : "temperature-scaled"]];
    const there = states.filter(([state]) => Study.cells().some((cell) => cell.bins[state]));
    Controls.radios("scaling", "scaling", there);
    const classes = Math.max(0, ...Study.cells().map((cell) => cell.classes.length));
    Controls.select("class", "class", [["", "the predicted one"], ...Array.from({ length: classes }, (_, at) => [String(at), String(at)])]);
    const chosen = State.get("objective");
    Controls.select("other", "other", chosen ? [["", "nothing"], ...Study.cells().map((cell) => Study.objective(cell.objective)).filter(({ key }) => key !== chosen).map(({ key, name }) => [key, name])] : []);
    const list = epochs();
    const usable = list.length > 1 && scaling() === "whole" && State.get("class") === "";
    ["epoch-control", "play-control"].forEach((id) => { Controls.get(id).hidden = !usable; });
    Controls.get("epoch").max = String(Math.max(0, list.length - 1));
    const at = epoch() === "" ? list.length - 1 : list.indexOf(Number(epoch()));
    Controls.get("epoch").value = String(at);
    Controls.get("epoch-shown").textContent = list.length ? `${list[at] ?? ""} of ${list[list.length - 1]}` : "";
    document.getElementById("chart-large").hidden = !chosen;
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
