"use strict";
/* The paper's quantities for one posterior: bounds on |q* - eta|_2 and predictions of q* - eta. */
const Quantities = (() => {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const mean = (values) => sum(values) / values.length;
  const logRatio = (u) => (u < 1 ? -Math.log(u) / (1 - u) : 1); // r(u) = -log(u) / (1 - u)

  const psi = (t, gamma) => -Math.pow(1 - t, gamma) * (t > 0 ? gamma * t * logRatio(t) + 1 : 1);

  function curvature(u, gamma) {
    const bent = gamma > 0 ? Math.pow(1 - u, gamma - 1) * gamma * ((gamma - 1) * logRatio(u) + 2 / u) : 0;
    return bent + Math.pow(1 - u, gamma) / (u * u);
  }

  /* Phi(eta) = sum_k eta_k phi(eta_k); the entropy at gamma = 0. */
  const potential = (eta, gamma) =>
    sum(eta.map((value) => (value > 0 ? value * Math.pow(1 - value, gamma) * -Math.log(value) : 0)));

  /* The norm of the first-order bias; sqrt(Phi / lam) <= sqrt(H / lam) <= sqrt(log K / lam); and, with K the size of the
     support of eta, 2 A sqrt(K) / lam from lam0 on. */
  function bounds(eta, gamma, lam) {
    const inside = eta.filter((value) => value > 0);
    const threshold = (4 * potential(inside, gamma)) / Math.min(...inside) ** 2;
    const steepest = 1 + gamma * Math.max(1, Math.pow(2, 1 - gamma));
    const promised = lam > 0 && lam >= threshold;
    return {
      slope: lam > 0 ? norm2(firstOrderBias(eta, gamma, lam)) : Infinity,
      global: Math.sqrt(potential(eta, gamma) / lam),
      entropy: Math.sqrt(potential(eta, 0) / lam),
      logClasses: Math.sqrt(Math.log(eta.length) / lam),
      interior: promised ? (2 * steepest * Math.sqrt(inside.length)) / lam : Infinity,
      threshold,
    };
  }

  /* (mean psi - psi_k) / (2 lam) on the support; null where lam = 0 has no such expansion. */
  function firstOrderBias(eta, gamma, lam) {
    if (lam === 0) return null;
    const average = mean(eta.filter((value) => value > 0).map((value) => psi(value, gamma)));
    return eta.map((value) => (value > 0 ? (average - psi(value, gamma)) / (2 * lam) : 0));
  }

  /* One Newton step from eta: (nu - psi_k) / h_k, h_k = eta_k phi''(eta_k) + 2 lam, nu = (sum psi/h) / (sum 1/h). */
  function preAsymptoticBias(eta, gamma, lam) {
    if (eta.some((value) => value === 1)) return eta.map(() => 0);
    const softness = eta.map((value) => (value > 0 ? 1 / (value * curvature(value, gamma) + 2 * lam) : 0));
    const nu = sum(eta.map((value, k) => (value > 0 ? psi(value, gamma) * softness[k] : 0))) / sum(softness);
    return eta.map((value, k) => (value > 0 ? (nu - psi(value, gamma)) * softness[k] : 0));
  }

  const norm2 = (values) => Math.sqrt(sum(values.map((value) => value * value)));
  const normInf = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

  /* The most probable class, or -1 if several share the first place. */
  function decision(values) {
    const most = Math.max(...values);
    return values.indexOf(most) === values.lastIndexOf(most) ? values.indexOf(most) : -1;
  }

  return { bounds, firstOrderBias, preAsymptoticBias, norm2, normInf, decision };
})();
