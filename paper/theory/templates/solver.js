"use strict";
/* The population minimiser of Focal Calibration Loss, by the Newton method of focalcal.theory.newton for one posterior.

   On the support of eta, with w = -phi' and s = -nu, stationarity reads  eta_k w(q_k) - 2 lam d_k = s,  d = q - eta.
   Terms stand on the side where they are positive and rho_k = log left_k - log right_k, which is close to linear in
   log q_k and log s. The class m of the largest eta_k is eliminated: d_m and 1 - q_m are sums over the others. */
const Solver = (() => {
  const EPS = Number.EPSILON;
  const HUGE = Number.MAX_VALUE;
  const MAX_STEPS = 200;

  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const largest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const spacing = (value) => Math.max(Math.abs(value) * EPS, Number.MIN_VALUE);

  function logSumOfExp(a, b) {
    const high = Math.max(a, b);
    return high === -Infinity ? high : high + Math.log1p(Math.exp(Math.min(a, b) - high));
  }

  /* q*, d = q* - eta, nu and the figures that judge them: see focalcal.theory.Solution. */
  function minimise(eta, gamma, lam) {
    const support = eta.map((_, k) => k).filter((k) => eta[k] > 0);
    if (support.length === 1) {
      const zeros = eta.map(() => 0);
      const multiplier = gamma === 0 ? -1 : 0;
      return { q: eta.slice(), displacement: zeros, multiplier, stationarity: 0, feasibility: 0, steps: 0, converged: true };
    }
    const problem = posed(support.map((k) => eta[k]), gamma, lam);
    let point = evaluate(problem, ...start(problem));
    let share = wholeStep(point);
    let steps = 0;
    for (; steps < MAX_STEPS; steps += 1) {
      const trial = evaluate(problem, ...moved(point, share));
      if (trial.excess < point.excess * (1 - 1e-4 * share)) {
        point = trial;
        share = wholeStep(point);
      } else {
        share /= 2;
      }
      if (point.excess === 0 || (point.excess < 1e-12 && share < 0.1) || share < 1e-12) break;
    }
    const q = eta.map(() => 0);
    const displacement = eta.map(() => 0);
    support.forEach((k, i) => {
      q[k] = point.q[i];
      displacement[k] = point.d[i];
    });
    const size = sum(point.d.map(Math.abs));
    const feasibility = size > 0 ? Math.abs(sum(point.d)) / size : 0;
    const stationarity = Math.tanh(point.error / 2);
    const converged = Math.min(stationarity, point.excess) <= 1e-12 && feasibility <= 1e-12;
    return { q, displacement, multiplier: -Math.exp(point.sigma), stationarity, feasibility, steps: steps + 1, converged };
  }

  function posed(eta, gamma, lam) {
    const top = eta.indexOf(largest(eta));
    return { eta, logEta: eta.map(Math.log), top, gamma, log2lam: Math.log(2) + Math.log(lam) };
  }

  /* q = eta, and the s that is right for an infinitely strong anchor: the mean of -psi(eta_k). */
  function start({ eta, logEta, top, gamma }) {
    const rest = sum(eta.map((value, k) => (k === top ? 0 : value)));
    const minusPsi = eta.map((value, k) => {
      const notEta = k === top ? rest : 1 - value;
      return Math.pow(notEta, gamma) * ((gamma * -logEta[k] * value) / notEta + 1);
    });
    return [eta.slice(), eta.map(() => 0), Math.log(sum(minusPsi) / eta.length)];
  }

  /* The largest share of the step, up to one, that keeps every q_k <= 1. */
  function wholeStep(point) {
    return point.q.reduce((share, q, k) => {
      const step = point.stepOfLogQ[k];
      return step > 0 ? Math.min(share, -Math.log(q) / step) : share;
    }, 1);
  }

  /* Multiplicative in q, so that q stays positive. */
  function moved(point, share) {
    const step = point.q.map((q, k) => q * Math.expm1(share * point.stepOfLogQ[k]));
    const q = point.q.map((value, k) => value + step[k]);
    const d = point.d.map((value, k) => value + step[k]);
    return [q, d, point.sigma + share * point.stepOfSigma];
  }

  /* rho and the Newton step at (q, d, log s); those of the class m follow from the others. */
  function evaluate(problem, qGiven, dGiven, sigma) {
    const { eta, top } = problem;
    const q = qGiven.slice();
    const d = dGiven.slice();
    const rest = sum(q.map((value, k) => (k === top ? 0 : value)));
    d[top] = -sum(d.map((value, k) => (k === top ? 0 : value)));
    q[top] = rest < 0.5 ? 1 - rest : eta[top] + d[top];
    const classes = q.map((_, k) => stationarityOf(problem, k, q[k], d[k], rest, sigma));

    let pushed = 0;
    let yielding = 0;
    const slope = classes.map((one) => Math.min(one.bend + one.pull, HUGE));
    classes.forEach((one, k) => {
      if (k === top) return;
      const weight = one.own / rest / slope[k];
      pushed += weight * one.rho;
      yielding += weight * one.sShare;
    });
    const stepOfSigma = (classes[top].rho + slope[top] * pushed) / (classes[top].sShare + slope[top] * yielding);
    const stepOfLogQ = classes.map((one, k) => (k === top ? 0 : (one.rho - one.sShare * stepOfSigma) / slope[k]));
    const beyond = classes.map((one) => (one.floor === Infinity ? 0 : Math.max(Math.abs(one.rho) - one.floor, 0)));
    const worst = beyond.some(Number.isNaN) || !(q[top] > 0) ? Infinity : largest(beyond);
    const error = largest(classes.map((one) => Math.abs(one.rho)));
    return { q, d, sigma, error, excess: worst, stepOfLogQ, stepOfSigma };
  }

  /* For one class: rho, its derivatives by log s and by the class's own variable, and what rounding can make of rho.
     The own variable is q_k, and 1 - q_m for the class m. */
  function stationarityOf({ logEta, top, gamma, log2lam }, k, q, d, rest, sigma) {
    const atTop = k === top;
    const own = atTop ? rest : q;
    const notQ = atTop ? rest : 1 - q;
    const logQ = atTop && rest < 0.5 ? Math.log1p(-rest) : Math.log(q);
    const logNotQ = atTop ? Math.log(rest) : Math.log1p(-q);
    const bent = (-logQ * q) / notQ;
    const factor = gamma * bent + 1; // w(q) = (1 - q)^gamma factor / q
    const logFocal = logEta[k] + gamma * logNotQ + Math.log(factor) - logQ;
    const elasticity = (gamma * ((gamma - 1) * bent + 2) * (own / notQ) + own / q) / factor;

    const falls = d < 0;
    const logAnchor = log2lam + Math.log(Math.abs(d));
    const logSum = logSumOfExp(falls ? logFocal : sigma, logAnchor); // the side that holds the anchor
    const rho = falls ? logSum - sigma : logFocal - logSum;
    const sShare = falls ? 1 : Math.exp(sigma - logSum);
    const bend = (falls ? Math.exp(logFocal - logSum) : 1) * elasticity;
    const pull = Math.exp(log2lam + Math.log(own) - logSum);

    const step = spacing(Math.min(own, q)) / own;
    const rounding = EPS * (2 + Math.abs(logEta[k]) + Math.abs(gamma * logNotQ) + Math.abs(logQ));
    const floor = rounding + (step < 0.05 ? bend * step : Infinity) + (pull * spacing(d)) / own;
    return { own, rho, sShare, bend, pull, floor };
  }

  return { minimise };
})();
