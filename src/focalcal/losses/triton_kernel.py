"""The focal family's loss and gradient as Triton kernels: the formulas of _native/vector.h for a GPU.

docs/math/fused_gradient.md derives them; `triton_launch` launches them. Each program takes ROWS examples. Where all
classes fit one block (WHOLE) the logits are read once and stay in registers until the gradient is written; otherwise
blocks of classes go by twice, once for sums relative to the largest logit so far and once for the gradient.
"""

import triton
import triton.language as tl

FOCAL = tl.constexpr(0)
BRIER = tl.constexpr(1)  # alone: its top entry is a small difference of large numbers
SMOOTH = tl.constexpr(2)
DUAL = tl.constexpr(3)
NOTHING = tl.constexpr(-float("inf"))  # a masked class's logit, and the largest of none


@triton.jit(do_not_specialize=["rows", "ignore_index"])
def count_labels(labels, weight, totals, bad, rows, classes, ignore_index, BLOCK: tl.constexpr):
    """The sum of the labels' weights, and the first position out of range or `rows`: one pair per program."""
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], totals.dtype.element_ty)
    first = tl.zeros([BLOCK], tl.int64) + rows
    for start in range(tl.program_id(0) * BLOCK, rows, tl.num_programs(0) * BLOCK):
        row = start + lane
        label = tl.load(labels + row, mask=row < rows, other=0)
        counted = row < rows
        if ignore_index is not None:
            counted = counted & (label != ignore_index)
        valid = (label >= 0) & (label < classes)
        if weight is not None:
            total += tl.load(weight + label, mask=counted & valid, other=0.0)
        else:
            total += tl.where(counted, 1.0, 0.0).to(total.dtype)
        first = tl.minimum(first, tl.where(counted & (valid == 0), row.to(tl.int64), first))
    tl.store(totals + tl.program_id(0), tl.sum(total))
    tl.store(bad + tl.program_id(0), tl.min(first))


@triton.jit(do_not_specialize=["rows", "ignore_index", "steps", "parts"])
def loss_and_gradient(
    logits, labels, weight, edges, gammas, totals, bad, report, factor, loss, gradient,
    rows, classes, inner, batch_stride, class_stride, position_stride,
    gradient_batch_stride, gradient_class_stride, gradient_position_stride,
    ignore_index, steps, parts,
    focal: tl.float64, gamma: tl.float64, lam: tl.float64, smoothing: tl.float64,
    KIND: tl.constexpr, ANCHORED: tl.constexpr, EACH: tl.constexpr, REAL: tl.constexpr, WIDE: tl.constexpr,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Each example's reduced share of the loss, and the gradient of the sum of those shares times `factor`.

    What is None is not wanted or not there: `loss`, `gradient`, `totals` (for a mean), `weight`, `gammas`, `factor`
    (one number, or one per example if EACH), `ignore_index`. `report` gets the position of the first label out of
    range, the label and the number of classes; the example's loss and gradient are NaN, and nothing is read there.
    """
    if loss is not None:  # noqa: SIM102, known when it is compiled, unlike the next
        if tl.program_id(0) == 0:
            part = tl.arange(0, PARTS)
            first = tl.min(tl.load(bad + part, mask=part < parts, other=rows))
            if first < rows:
                tl.store(report + 1, tl.load(labels + first).to(tl.int64))
                tl.store(report + 2, classes)
                tl.store(report, first)

    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    label = tl.load(labels + row, mask=row < rows, other=0)
    counted = row < rows
    if ignore_index is not None:
        counted = counted & (label != ignore_index)
    valid = counted & (label >= 0) & (label < classes)
    scale = tl.where(valid, 1.0, float("nan")).to(REAL)
    if weight is not None:
        scale = scale * tl.load(weight + label, mask=valid, other=0.0).to(REAL)
    nothing = tl.zeros([ROWS], REAL)  # an ignored example's share: 0, or NaN if the mean is over none
    if totals is not None:
        part = tl.arange(0, PARTS)
        share = 1.0 / tl.sum(tl.load(totals + part, mask=part < parts, other=0.0))
        scale = scale * share
        nothing = nothing * share

    begin = logits + (row // inner) * batch_stride + (row % inner) * position_stride
    top = tl.full([ROWS], NOTHING, REAL)
    others = tl.zeros([ROWS], REAL)
    squares = tl.zeros([ROWS], REAL)
    tops = tl.zeros([ROWS], REAL)
    drop = tl.zeros([ROWS], REAL)
    rival = tl.full([ROWS], NOTHING, REAL)
    rival_ties = tl.zeros([ROWS], REAL)
    column = tl.arange(0, BLOCK)
    if WIDE:
        column = column.to(tl.int64)
    if WHOLE:
        z = _load(begin, column, classes, class_stride, valid, REAL)
        own = column[None, :] == label[:, None]
        own_logit = tl.sum(tl.where(own, z, 0.0), 1)
        top, others, squares, tops, drop, rival, rival_ties = _fold(
            z, own, column < classes, own_logit, top, others, squares, tops, drop, rival, rival_ties, 0, KIND
        )
    else:
        own_logit = tl.load(begin + label * class_stride, mask=valid, other=0.0).to(REAL)
        for start in range(0, classes, BLOCK):
            at = start + column
            z = _load(begin, at, classes, class_stride, valid, REAL)
            own = at[None, :] == label[:, None]
            seen = start - tl.where(label < start, 1, 0)  # of the other classes
            top, others, squares, tops, drop, rival, rival_ties = _fold(
                z, own, at < classes, own_logit, top, others, squares, tops, drop, rival, rival_ties, seen, KIND
            )

    value, linear, quadratic, constant, at_label, special = _coefficients(
        own_logit, top, others, squares, tops, drop, rival, rival_ties, classes, edges, gammas, steps,
        focal, gamma, lam, smoothing, KIND, ANCHORED, REAL,
    )  # fmt: skip
    if loss is not None:
        tl.store(loss + row, tl.where(counted, scale * value, nothing), mask=row < rows)
    if gradient is not None:
        if factor is not None:
            if EACH:
                scale = scale * tl.load(factor + row, mask=row < rows, other=0.0).to(REAL)
            else:
                scale = scale * tl.load(factor).to(REAL)
        linear, quadratic, constant = scale * linear, scale * quadratic, scale * constant
        at_label, special = scale * at_label, scale * special
        out = gradient + (row // inner) * gradient_batch_stride + (row % inner) * gradient_position_stride
        if WHOLE:
            entries = _entries(
                z, own, own_logit, top, rival, linear, quadratic, constant, at_label, special, KIND, ANCHORED
            )
            _store(out, column, classes, gradient_class_stride, row < rows, counted, entries)
        else:
            for start in range(0, classes, BLOCK):
                at = start + column
                z = _load(begin, at, classes, class_stride, valid, REAL)
                own = at[None, :] == label[:, None]
                entries = _entries(
                    z, own, own_logit, top, rival, linear, quadratic, constant, at_label, special, KIND, ANCHORED
                )
                _store(out, at, classes, gradient_class_stride, row < rows, counted, entries)


@triton.jit(do_not_specialize=["size"])
def multiply(gradient, factor, size, BLOCK: tl.constexpr):
    """The stored gradient times the upstream factor; where that is 1, as in loss.backward(), no gradient is read."""
    number = tl.load(factor)
    if number != 1.0:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        values = tl.load(gradient + at, mask=at < size)
        tl.store(gradient + at, (values * number).to(gradient.dtype.element_ty), mask=at < size)


@triton.jit
def _load(begin, column, classes, stride, wanted, REAL: tl.constexpr):
    """A block of logits, -inf beyond the last class; examples that are not `wanted` are not read."""
    where = begin[:, None] + (column * stride)[None, :]
    return tl.load(where, mask=wanted[:, None] & (column < classes)[None, :], other=NOTHING).to(REAL)


@triton.jit
def _store(out, column, classes, stride, inside, counted, entries):
    entries = tl.where(counted[:, None], entries, 0.0).to(out.dtype.element_ty)
    tl.store(out[:, None] + (column * stride)[None, :], entries, mask=inside[:, None] & (column < classes)[None, :])


@triton.jit
def _fold(
    z, own, real, own_logit, top, others, squares, tops, drop, rival, rival_ties, seen, KIND: tl.constexpr
):  # fmt: skip
    """The sums over the classes but the label, one block further, relative to the largest logit so far.

    BRIER counts classes at the top apart (`tops`, e = 1 each), so that `others` and `squares` leave them out.
    """
    new_top = tl.maximum(top, tl.max(z, 1))
    anchor = tl.where(new_top == NOTHING, 0.0, new_top)  # masked classes alone so far
    shrink = tl.where(top == NOTHING, 0.0, tl.exp(top - anchor))
    below_top = z - anchor[:, None]  # NaN if the top is infinite, and so are the sums
    e = tl.where(own, 0.0, tl.exp(below_top))
    if KIND == BRIER:
        raised = new_top > top
        at_top = (below_top == 0.0) & (own == 0)
        others += tl.where(raised, tops, 0.0)
        squares += tl.where(raised, tops, 0.0)
        tops = tl.where(raised, 0.0, tops) + tl.sum(tl.where(at_top, 1.0, 0.0), 1)
        e = tl.where(at_top, 0.0, e)
    if KIND == SMOOTH:  # the sum of z - top over the other classes
        drop += tl.where(top == NOTHING, 0.0, (top - anchor) * seen)
        drop += tl.sum(tl.where(real[None, :] & (own == 0), below_top, 0.0), 1)
    if KIND == DUAL:  # the best class below the label, and how many there are of it
        below = tl.where(z < own_logit[:, None], z, NOTHING)
        best = tl.maximum(rival, tl.max(below, 1))
        equal = tl.sum(tl.where((z == best[:, None]) & (z < own_logit[:, None]) & real[None, :], 1.0, 0.0), 1)
        rival_ties = tl.where(best > rival, equal, rival_ties + equal)
        rival = best
    others = others * shrink + tl.sum(e, 1)
    squares = squares * shrink * shrink + tl.sum(e * e, 1)
    return new_top, others, squares, tops, drop, rival, rival_ties


@triton.jit
def _coefficients(
    own_logit, top, others, squares, tops, drop, rival, rival_ties, classes, edges, gammas, steps,
    focal_, gamma_, lam_, smoothing_, KIND: tl.constexpr, ANCHORED: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """From the sums of an example to its loss and the numbers that its gradient needs (see `_entries`)."""
    focal, lam = tl.full([], focal_, REAL), tl.full([], lam_, REAL)
    lag = own_logit - top
    own = tl.exp(lag)
    below, squares_below = others, squares
    if KIND == BRIER:
        others += tops
        squares += tops
    inverse = 1.0 / (others + own)
    q, own_p, spread = others * inverse, own * inverse, squares * inverse * inverse
    # The largest e is 1. If it is the label's, the sum of all is 1 + others; if not, lag dominates.
    log_total = _log1p(tl.where(lag == 0.0, others, others + own - 1.0), REAL)
    log_p = lag - log_total

    gamma = tl.zeros_like(q) + tl.full([], gamma_, REAL)
    if gammas is not None:
        gamma = tl.zeros_like(q) + tl.load(gammas).to(REAL)
        for step in range(1, steps):
            gamma = tl.where(own_p >= tl.load(edges + step).to(REAL), tl.load(gammas + step).to(REAL), gamma)
    inverse_focal = gamma < 0.0
    gamma = tl.abs(gamma)
    if KIND == DUAL:
        rival_p = tl.exp(rival - top) * inverse
        base = q + rival_p
    else:
        base = tl.where(inverse_focal, 1.0 + own_p, q)
    saturated = base == 0.0  # no other class has mass: the power is 0 unless gamma is, and the ratio finite
    safe_base = tl.where(saturated, 1.0, base)
    power = tl.where(gamma == 0.0, 1.0, tl.where(saturated, 0.0, tl.exp(gamma * tl.log(safe_base))))
    own_pull = tl.where(own_p == 0.0, 0.0, log_p * own_p)  # p log p -> 0

    constant, special, quadratic = tl.zeros_like(q), tl.zeros_like(q), tl.zeros_like(q)
    if KIND == DUAL:
        growth = gamma * power / safe_base
        rival_pull = tl.where(rival_p == 0.0, 0.0, log_p * rival_p)
        value = -power * log_p
        linear = power - growth * (own_pull - rival_pull)
        at_label = -power * q + growth * own_pull * base
        special = -growth * rival_pull / tl.maximum(rival_ties, 1.0)
    elif KIND == BRIER:
        value, linear, at_label = tl.zeros_like(q), tl.zeros_like(q), tl.zeros_like(q)
    else:
        slope = focal * power * (gamma * own_pull / tl.where(inverse_focal, -safe_base, safe_base) - 1.0)
        value = -focal * power * log_p
        linear = -slope
        at_label = slope * q
    if ANCHORED:
        anchor = q * q + spread
        value += lam * anchor
        linear -= 2.0 * lam * (spread - own_p * q)
        at_label -= 2.0 * lam * own_p * anchor
        quadratic = 2.0 * lam * inverse * inverse
        if KIND == BRIER:
            gap = inverse * (below * inverse + own_p) - squares_below * inverse * inverse + own_p * q
            special = 2.0 * lam * inverse * gap
    if KIND == SMOOTH:
        smoothing = tl.full([], smoothing_, REAL)
        value += smoothing * ((classes - 1) * log_total - drop)
        linear += smoothing * (classes - 1)
        at_label += smoothing * (classes - 1) * own_p
        constant = tl.zeros_like(q) - smoothing
    return value, linear * inverse, quadratic, constant, at_label, special


@triton.jit
def _entries(
    z, own, own_logit, top, rival, linear, quadratic, constant, at_label, special, KIND: tl.constexpr,
    ANCHORED: tl.constexpr,
):  # fmt: skip
    """e (linear + quadratic e) + constant, with `special` at the top class (BRIER) or added at the rival (DUAL)."""
    e = tl.exp(z - top[:, None])
    entries = e * (linear[:, None] + quadratic[:, None] * e) if ANCHORED else e * linear[:, None]
    if KIND == SMOOTH:
        entries += constant[:, None]
    if KIND == BRIER:
        entries = tl.where(z == top[:, None], special[:, None], entries)
    if KIND == DUAL:
        entries += tl.where((z == rival[:, None]) & (z < own_logit[:, None]), special[:, None], 0.0)
    return tl.where(own, at_label[:, None], entries)


@triton.jit
def _log1p(x, REAL: tl.constexpr):
    """log(1 + x) for x >= 0. A GPU's float32 logarithm has an absolute error near 1: below, 2 artanh(x / (2 + x)).

    Its series to the fifteenth power is right to 5e-10. float64's logarithm is right everywhere, and only 1 + x is not.
    """
    above_one = 1.0 + x
    if tl.float64 == REAL:
        rounded = above_one - 1.0
        return tl.where(rounded == 0.0, x, tl.log(above_one) * (x / tl.where(rounded == 0.0, 1.0, rounded)))
    s = x / (2.0 + x)
    t = s * s
    series = 1.0 / 13.0 + t * (1.0 / 15.0)
    series = 1.0 / 9.0 + t * (1.0 / 11.0 + t * series)
    series = 1.0 / 5.0 + t * (1.0 / 7.0 + t * series)
    series = 1.0 + t * (1.0 / 3.0 + t * series)
    return tl.where(x < 1.0, 2.0 * s * series, tl.log(above_one))
