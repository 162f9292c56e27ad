"use strict";
/* The page: what is chosen, kept in the address after the #, and what is shown for it. */
(() => {
  const { number } = Svg;
  const { norm2, normInf, decision } = Quantities;
  const { data } = Kit;
  const get = (id) => document.getElementById(id);
  const LOWEST = Number(get("lam").min); // the slider's left end stands for lam = 0
  const LARGEST = Object.fromEntries(["gamma", "lam"].map((name) => [name, Number(get(`${name}-number`).max)]));
  const MOST_CLASSES = 200;
  const chosen = { gamma: 3, lam: 1, eta: data.presets[0].eta, arrows: false };
  const simplex = Simplex.create(get("simplex"), (eta) => choose({ eta }));

  const lamAt = (position) => (position <= LOWEST + 0.02 ? 0 : Number((10 ** position).toPrecision(3)));
  const positionOf = (lam) => (lam > 0 ? Math.max(Math.log10(lam), LOWEST + 0.05) : LOWEST);

  /* The numbers in a text, divided by their sum; an Error says what is wrong with them. */
  function posteriorIn(text) {
    const words = text.split(/[\s,;]+/).filter(Boolean);
    const values = words.map(Number);
    const wrong = values.findIndex((value) => !(value >= 0 && value < Infinity));
    if (wrong >= 0) throw new Error(`every number must be at least 0, got ${words[wrong]}`);
    if (values.length < 2) throw new Error("give at least two numbers, separated by spaces or commas");
    if (values.length > MOST_CLASSES) throw new Error(`give at most ${MOST_CLASSES} numbers, got ${values.length}`);
    const total = values.reduce((a, b) => a + b, 0);
    if (!(total > 0)) throw new Error("at least one number must be above 0");
    return { eta: values.map((value) => value / total), total };
  }

  function choose(change, { keepText = false } = {}) {
    Object.assign(chosen, change);
    if (!keepText) {
      get("eta").value = chosen.eta.map((value) => Number(value.toPrecision(6))).join(", ");
      get("eta-note").textContent = "";
      get("eta").removeAttribute("aria-invalid");
    }
    show();
    remember();
  }

  function show() {
    const { eta, gamma, lam, arrows } = chosen;
    const solution = Solver.minimise(eta, gamma, lam);
    const first = Quantities.firstOrderBias(eta, gamma, lam);
    const newton = Quantities.preAsymptoticBias(eta, gamma, lam);
    const state = { eta, gamma, lam, arrows, solution, first, newton, distortion: norm2(solution.displacement) };
    showControls();
    const three = eta.length === 3;
    ["simplex", "simplex-key", "arrows-row"].forEach((id) => get(id).toggleAttribute("hidden", !three));
    ["bars", "bars-key"].forEach((id) => get(id).toggleAttribute("hidden", three));
    const outside = three ? simplex.show(state) : Bars.show(get("bars"), state);
    const names = { first: "the first-order prediction", newton: "the prediction of one Newton step" };
    get("outside").textContent = outside.length ? `Outside the plot: ${outside.map((kind) => names[kind]).join(" and ")}.` : "";
    Curve.show(get("curve"), state);
    readOut(state);
    listClasses(state);
  }

  function showControls() {
    const { gamma, lam, arrows, eta } = chosen;
    [["gamma", gamma, gamma], ["lam", lam, positionOf(lam)]].forEach(([name, value, position]) => {
      get(name).value = position;
      get(name).setAttribute("aria-valuetext", String(value));
      if (document.activeElement !== get(`${name}-number`)) get(`${name}-number`).value = value;
    });
    get("arrows").checked = arrows;
    const same = (preset) => preset.eta.length === eta.length && preset.eta.every((value, k) => Math.abs(value - eta[k]) < 1e-6);
    get("preset").value = String(data.presets.findIndex(same));
  }

  function readOut({ eta, gamma, lam, solution, first, newton, distortion }) {
    const bounds = Quantities.bounds(eta, gamma, lam);
    const off = (bias) => (distortion > 1e-14 ? norm2(bias.map((value, k) => value - solution.displacement[k])) / distortion : 0);
    const predicted = (bias) => (bias ? number(norm2(bias)) : "needs lam > 0");
    const error = (bias) => (bias ? `${number(100 * off(bias), 3)} %` : "\u2013");
    const [before, after] = [decision(eta), decision(solution.q)];
    const tied = "tie: no single largest class";
    const kept = before < 0 ? tied : before === after ? `yes, class ${before + 1}` : `no: class ${before + 1} became ${after + 1}`;
    const interior = bounds.interior < Infinity ? number(bounds.interior) : `none below lam = ${number(bounds.threshold)}`;
    const values = {
      l2: number(distortion),
      linf: number(normInf(solution.displacement)),
      kept,
      slope: number(bounds.slope),
      global: number(bounds.global),
      entropy: number(bounds.entropy),
      logClasses: number(bounds.logClasses),
      interior,
      first: predicted(first),
      "first-error": error(first),
      newton: predicted(newton),
      "newton-error": error(newton),
      multiplier: number(solution.multiplier),
      stationarity: number(solution.stationarity, 3),
      feasibility: number(solution.feasibility, 3),
      steps: solution.converged ? String(solution.steps) : `${solution.steps}, not converged`,
    };
    Object.entries(values).forEach(([name, text]) => {
      get(`out-${name}`).textContent = text;
    });
  }

  function listClasses({ eta, solution, first, newton }) {
    get("classes").replaceChildren(
      ...eta.map((value, k) => {
        const row = document.createElement("tr");
        const predictions = [first, newton].map((bias) => (bias ? number(bias[k]) : "\u2013"));
        [k + 1, number(value), number(solution.q[k]), number(solution.displacement[k]), ...predictions].forEach((text) => {
          row.insertCell().textContent = text;
        });
        return row;
      }),
    );
  }

  function remember() {
    const preset = get("preset").value;
    const eta = preset === "-1" ? chosen.eta.map((value) => Number(value.toPrecision(6))).join(",") : null;
    const parts = [`gamma=${chosen.gamma}`, `lam=${chosen.lam}`, eta ? `eta=${eta}` : `preset=${preset}`];
    if (chosen.arrows) parts.push("arrows=1");
    history.replaceState(null, "", `#${parts.join("&")}`);
  }

  /* What the address asks for; what it asks for wrongly is left as it was, and said. */
  function recall() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const change = { arrows: asked.get("arrows") === "1" };
    const wrong = [];
    ["gamma", "lam"].filter((name) => asked.has(name)).forEach((name) => {
      const value = asked.get(name).trim() === "" ? NaN : Number(asked.get(name));
      if (value >= 0 && value <= LARGEST[name]) change[name] = value;
      else wrong.push(`${name} must be a number from 0 to ${LARGEST[name]}, got "${asked.get(name)}"`);
    });
    if (asked.has("preset")) {
      const preset = /^\d+$/.test(asked.get("preset")) ? data.presets[Number(asked.get("preset"))] : undefined;
      if (preset) change.eta = preset.eta;
      else wrong.push(`preset must be a whole number below ${data.presets.length}, got "${asked.get("preset")}"`);
    }
    try {
      if (asked.has("eta")) change.eta = posteriorIn(asked.get("eta")).eta;
    } catch (problem) {
      wrong.push(`eta: ${problem.message}`);
    }
    choose(change);
    if (wrong.length) get("eta-note").textContent = `Left out of the address: ${wrong.join("; ")}`;
  }

  function listen() {
    get("gamma").addEventListener("input", (event) => choose({ gamma: Number(event.target.value) }));
    get("lam").addEventListener("input", (event) => choose({ lam: lamAt(Number(event.target.value)) }));
    Object.entries(LARGEST).forEach(([name, most]) => {
      get(`${name}-number`).addEventListener("input", (event) => {
        const value = event.target.valueAsNumber;
        if (value >= 0 && value <= most) choose({ [name]: value });
      });
      get(`${name}-number`).addEventListener("change", (event) => {
        event.target.value = chosen[name]; // what was out of range goes
      });
    });
    get("preset").addEventListener("change", (event) => {
      if (data.presets[event.target.value]) choose({ eta: data.presets[event.target.value].eta });
    });
    get("arrows").addEventListener("change", (event) => choose({ arrows: event.target.checked }));
    get("eta").addEventListener("input", (event) => {
      try {
        const { eta, total } = posteriorIn(event.target.value);
        get("eta-note").textContent = Math.abs(total - 1) > 1e-5 ? `they sum to ${number(total)} and were divided by it` : "";
        event.target.removeAttribute("aria-invalid");
        choose({ eta }, { keepText: true });
      } catch (problem) {
        get("eta-note").textContent = problem.message;
        event.target.setAttribute("aria-invalid", "true");
      }
    });
    window.addEventListener("hashchange", recall);
  }

  /* The solver of this page against solutions that the Python solver stored in it. */
  function check() {
    const differences = data.references.map(({ eta, gamma, lam, q }) =>
      normInf(Solver.minimise(eta, gamma, lam).q.map((value, k) => value - q[k])),
    );
    const worst = Math.max(...differences);
    const badge = get("check");
    badge.classList.add(worst <= 1e-10 ? "good" : "bad");
    const verdict = worst <= 1e-10 ? "checked against" : "differs from";
    badge.textContent = `${verdict} the reference solver on ${differences.length} problems: ${number(worst, 2)} at most`;
  }

  document.querySelectorAll("[data-mark]").forEach((shape) => shape.setAttribute("d", Points.SHAPES[shape.dataset.mark]));
  Kit.start({ address: false });
  listen();
  recall();
  check();
})();
