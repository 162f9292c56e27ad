"use strict";
/* The evidence of every stream against its bound; the gap of each period; outcomes against scores, period by period. */
(() => {
  const { element, path } = Svg;
  const points = (value) => `${Svg.fixed(100 * value, 1, { sign: true })} points`;

  function names(svg, list, x, y) {
    const every = Math.max(1, Math.ceil((list.length * 72) / Math.max(72, x(list.length - 1) - x(0))));
    list.forEach((name, at) => {
      if (at % every === 0) element(svg, "text", { x: x(at), y, class: "label middle" }, name);
    });
  }

  function evidence(svg, width) {
    const streams = Kit.data.evidence;
    const box = { left: 52, right: width - 60, top: 26, bottom: 286 };
    const longest = streams.reduce((most, stream) => (stream.periods.length > most.length ? stream.periods : most), []);
    const shown = streams.flatMap((stream) => [...stream.values, stream.bound, 0]);
    const x = Axes.linear([0, Math.max(1, longest.length - 1)], [box.left, box.right]);
    const y = Axes.linear(Axes.extent(shown), [box.bottom, box.top]);
    Axes.left(svg, y, box, "log10 of the evidence");
    names(svg, longest, x, box.bottom + 16);
    const bounds = [...new Set(streams.map((stream) => stream.bound.toFixed(6)))];
    bounds.forEach((bound, at) => {
      element(svg, "path", { d: `M${box.left} ${y(bound)}H${box.right}`, class: "bound" });
      const apart = bounds.length > 1 && Math.abs(y(bounds[0]) - y(bounds[1])) > 14;
      const text = apart ? (at ? "groups" : "all rows") : bounds.length > 1 ? "bounds" : "bound";
      if (apart || !at) element(svg, "text", { x: box.right + 4, y: y(bound) + 4, class: "label" }, text);
    });
    streams.slice().reverse().forEach((stream) => {
      const shift = longest.length - stream.periods.length;
      const all = stream.name === "all rows";
      const kind = all ? "of-all" : `of-group${stream.alarm === null ? "" : " alarmed"}`;
      const place = (at) => (shift ? Math.max(0, longest.indexOf(stream.periods[at])) : at);
      element(svg, "path", { d: path(stream.values.map((value, at) => [x(place(at)), y(value)])), class: kind });
      stream.values.forEach((value, at) => {
        if (stream.values.length > 200 && at !== stream.alarm) return;
        const tip = `${stream.name}, ${stream.periods[at]}: 10^${Svg.fixed(value, 2)}`;
        element(svg, "circle", { cx: x(place(at)), cy: y(value), r: at === stream.alarm ? 5 : 2, class: "dot", "data-tip": tip });
      });
    });
    return { height: box.bottom + 30, title: "The evidence against the bound",
      said: streams.length > 1 ? "thick: all rows; thin: groups; a large dot is an alarm" : "a large dot is an alarm",
      headings: ["rows of", "period", "log10 of the evidence", "bound"],
      rows: streams.flatMap((stream) => stream.values.map((value, at) => [stream.name, stream.periods[at], value, stream.bound])) };
  }

  function gaps(svg, width) {
    const periods = Kit.data.gaps;
    const box = { left: 58, right: width - 20, top: 26, bottom: 226 };
    const x = Axes.linear([0, Math.max(1, periods.length - 1)], [box.left + 8, box.right]);
    const y = Axes.linear(Axes.extent(periods.flatMap((one) => [one.low, one.high, 0])), [box.bottom, box.top]);
    Axes.left(svg, y, box, "mean outcome minus mean score, in points", { format: (value) => Svg.fixed(100 * value, 1, { sign: true }) });
    names(svg, periods.map((one) => one.name), x, box.bottom + 16);
    periods.forEach((one, at) => {
      const g = element(svg, "g", { class: one.broken ? "broken" : "" });
      element(g, "path", { d: `M${x(at)} ${y(one.low)}V${y(one.high)}`, class: "interval" });
      const tip = `${one.name}: ${points(one.mean)} (${points(one.low)} to ${points(one.high)})\n${one.rows} rows`;
      element(g, "circle", { cx: x(at), cy: y(one.mean), r: 4, class: "dot", "data-tip": tip });
    });
    return { height: box.bottom + 30, title: "Mean outcome minus mean score by period",
      said: Kit.data.left ? `${Kit.data.left} earlier periods are in the table` : "", headings: ["period", "rows", "gap", "low", "high"],
      rows: periods.map((one) => [one.name, one.rows, one.mean, one.low, one.high]) };
  }

  function panels(svg, width) {
    const [side, space, head] = [110, 26, 20];
    const across = Math.max(1, Math.floor((width + space) / (side + space)));
    const periods = Kit.data.gaps.slice(-24);
    const seen = periods.flatMap((one) => one.bins.flatMap(([, , score, outcome]) => [score, outcome])).filter((value) => value > 0);
    const powers = [Math.floor(Math.log10(Math.min(...seen))), Math.ceil(Math.log10(Math.max(...seen)))];
    const ends = Kit.data.rare && powers[0] < powers[1] ? powers.map((power) => Number(`1e${power}`)) : [0, 1];
    const scale = ends[0] ? Axes.logarithmic : Axes.linear;
    const inside = (value) => Math.min(ends[1], Math.max(ends[0], value));
    periods.forEach((one, at) => {
      const [left, top] = [(at % across) * (side + space), Math.floor(at / across) * (side + space + head) + head];
      const g = element(svg, "g", { class: one.broken ? "broken" : "" });
      const [x, y] = [scale(ends, [left, left + side]), scale(ends, [top + side, top])];
      element(g, "text", { x: left, y: top - 6, class: "label strong" }, one.name);
      element(g, "rect", { x: left, y: top, width: side, height: side, class: "frame" });
      element(g, "path", { d: `M${x(ends[0])} ${y(ends[0])}L${x(ends[1])} ${y(ends[1])}`, class: "diagonal" });
      one.bins.forEach(([from, to, score, outcome, error]) => {
        const [low, high] = [inside(outcome - 2 * error), inside(outcome + 2 * error)];
        element(g, "path", { d: `M${x(inside(score))} ${y(low)}V${y(high)}`, class: "err" });
        const tip = `${one.name}, scores ${Svg.number(from, 3)} to ${Svg.number(to, 3)}: ${Svg.fixed(100 * score, 1)} % said, ${Svg.fixed(100 * outcome, 1)} % came`;
        element(g, "circle", { cx: x(inside(score)), cy: y(inside(outcome)), r: 2.5, class: "dot", "data-tip": tip });
      });
    });
    const height = Math.ceil(periods.length / across) * (side + space + head);
    return { height, title: "Outcomes against scores by period", said: "across: mean score of a bin; up: mean outcome, with two standard errors; " +
        `both from ${ends.join(" to ")}${ends[0] ? ", in powers of ten" : ""}`,
      headings: ["period", "from", "to", "mean score", "mean outcome", "standard error"],
      rows: periods.flatMap((one) => one.bins.map((bin) => [one.name, ...bin])) };
  }

  Charts.add("evidence", evidence);
  Charts.add("gaps", gaps);
  Charts.add("panels", panels);
  Kit.start();
})();
