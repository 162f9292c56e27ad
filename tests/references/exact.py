"""FCL's loss and gradient with 50 digits, straight from the definition."""

import mpmath as mp


def fcl(logits: list[float], label: int, gamma: float, lam: float, focal: float = 1.0) -> tuple[mp.mpf, list[mp.mpf]]:
    """focal * -(1 - p_y)^gamma log p_y + lam |p - e_y|^2 and its derivative in every logit (softmax's Jacobian)."""
    with mp.workdps(50):
        z = [mp.mpf(v) for v in logits]
        top = max(z)
        e = [mp.exp(v - top) for v in z]
        total = mp.fsum(e)
        p = [v / total for v in e]
        q = mp.fsum(v for k, v in enumerate(e) if k != label) / total
        log_p = z[label] - top - mp.log(total) if q > mp.mpf("0.5") else mp.log1p(-q)
        miss = [v if k != label else -q for k, v in enumerate(p)]  # p - e_y
        power = q**gamma if gamma else mp.mpf(1)
        loss = -focal * power * log_p + lam * mp.fsum(v * v for v in miss)
        # d/dp_y of the focal term, then dp_y/dz_j = p_y (1[j = y] - p_j), and 2 lam (p - e_y)' dp/dz
        d_focal = focal * (gamma * (q ** (gamma - 1) if gamma else 0) * log_p - power / p[label])
        inner = mp.fsum(m * v for m, v in zip(miss, p, strict=True))
        gradient = []
        for j in range(len(z)):
            own = q if j == label else -p[j]
            gradient.append(d_focal * p[label] * own + 2 * lam * p[j] * (miss[j] - inner))
        return loss, gradient
