/* Up to BLOCK rows into a block; compiled for REAL = float and double. */

/* Contiguous classes: the lanes are classes. The last, partial vector is the one that ends at K. */
INLINE void TYPED(row)(const Pass *p, const REAL *x, int64_t i, Block *b, Sums *s, double *scratch, int want)
{
    const vd zero = {0};
    const int64_t K = p->classes, full = K - K % WIDTH;
    vl lane;
    for (int64_t l = 0; l < WIDTH; l++)
        lane[l] = l;
    const vd end = WIDE(x + K - WIDTH);
    const vd tail = (vd)((vl)end & (lane + (K - WIDTH) >= full)); /* lanes met before count as 0 */
    vd top = end, lowest = end, total = tail, squares = tail * tail, total2 = zero, squares2 = zero;
    int64_t k = 0;
    for (; k + 2 * WIDTH <= full; k += 2 * WIDTH) {
        __builtin_prefetch((const char *)(x + k) + AHEAD);
        const vd u = WIDE(x + k), v = WIDE(x + k + WIDTH);
        top = MAX_PD(u, top), lowest = MIN_PD(u, lowest);
        top = MAX_PD(v, top), lowest = MIN_PD(v, lowest);
        total += u, total2 += v;
        if (want & WANT_BRIER)
            squares += u * u, squares2 += v * v;
    }
    if (k < full) {
        const vd u = WIDE(x + k);
        top = MAX_PD(u, top), lowest = MIN_PD(u, lowest), total += u, squares += u * u;
    }
    b->top[i] = b->second[i] = ISA(largest_of)(top);
    b->lowest[i] = -ISA(largest_of)(-lowest);
    b->total[i] = ISA(sum_of)(total + total2);
    b->squares[i] = ISA(sum_of)(squares + squares2);
    if ((want & WANT_CLASSES) && b->label[i] >= 0) {
        const double edge = first_edge(p);
        double *above = scratch + K * (lanes_at_once(p, 8) + 8);
        int32_t *above_class = (int32_t *)(above + K * 16 + 8);
        int64_t n = 0;
        for (int64_t j = 0; j < K; j += WIDTH) {
            const int64_t from = j < full ? j : K - WIDTH;
            const vd u = j < full ? WIDE(x + j) : tail;
            const vl over = u > edge;
            *(vu *)(s->first + from) += (vd)((vl)u & ~over);
            if ((WIDTH < 8 || K >= SPARSE_FROM) && !BITS_PD(over)) /* else mispredicted more often than it saves */
                continue;
            n += ISA(compress_from)(u, over, (int32_t)from, above + n, above_class + n);
        }
        for (int64_t j = 0; j < n; j++)
            add_to_class(p->edges, p->bins, s->classes + above_class[j] * p->bins, above[j]);
    }
}

static __attribute__((noinline)) void TYPED(rows)(const Pass *p, int64_t start, int64_t count, Block *b, Sums *s,
                                                  double *scratch)
{
    const int converts = p->converts;
    for (int64_t i = 0; i < count; i++) {
        const REAL *x = converts ? (const REAL *)ISA(convert_row)(p, start + i, i, b, scratch)
                                 : (const REAL *)p->scores + offset_of(p, start + i);
        if (p->want & WANT_CLASSES)
            TYPED(row)(p, x, i, b, s, scratch, WANT_BRIER | WANT_CLASSES);
        else if (p->want & WANT_BRIER)
            TYPED(row)(p, x, i, b, s, scratch, WANT_BRIER);
        else
            TYPED(row)(p, x, i, b, s, scratch, 0);
        if (converts)
            judge_converted(scratch, 1, i, b);
    }
}

/* Any strides: the lanes are rows, read in place where neighbours are contiguous, else through scratch. */
INLINE void TYPED(lane_block)(const Pass *p, const REAL *x, int64_t stride, int64_t i, Block *b, int want)
{
    const vd zero = {0};
    vd top = zero - INFINITY, second = top, lowest = -top, total = zero, squares = zero;
    for (int64_t k = 0; k < p->classes; k++) {
        const vd u = WIDE(x + k * stride);
        second = MAX_PD(MIN_PD(u, top), second);
        top = MAX_PD(u, top), lowest = MIN_PD(u, lowest), total += u;
        if (want & WANT_BRIER)
            squares += u * u;
    }
    *(vd *)(b->top + i) = top;
    *(vd *)(b->second + i) = second;
    *(vd *)(b->lowest + i) = lowest;
    *(vd *)(b->total + i) = total;
    *(vd *)(b->squares + i) = squares;
}

/* The classes' bins: vectors add to the first one, and list what lies above it. Returns the list's new length. */
INLINE int64_t TYPED(lane_classes)(const Pass *p, const REAL *x, int64_t stride, int64_t i, const Block *b,
                                   double *lane_first, double *above, int32_t *above_class, int64_t n)
{
    const double edge = first_edge(p);
    const vl keep = *(const vl *)(b->label + i) >= 0;
    const int64_t K = p->classes;
    for (int64_t k = 0; k < K; k++) {
        const vd u = WIDE(x + k * stride);
        const vl over = u > edge;
        *(vd *)(lane_first + k * 8) += (vd)((vl)u & ~over & keep);
        *(ni *)(above_class + n) = (ni){0} + (int32_t)k;
        n += ISA(compress)(u, over & keep, above + n);
    }
    return n;
}

static __attribute__((noinline)) void TYPED(lanes)(const Pass *p, int64_t start, int64_t count, Block *b, Sums *s,
                                                   double *scratch)
{
    const int64_t position = p->outer == 1 ? start : start % p->inner;
    const int in_place = p->strides[2] == 1 && count == BLOCK && position + BLOCK <= p->inner &&
                         !p->converts;
    const int64_t lanes = lanes_at_once(p, WIDTH);
    double *lane_first = scratch + p->classes * lanes_at_once(p, 8), *above = lane_first + p->classes * 8;
    int32_t *above_class = (int32_t *)(above + p->classes * 16 + 8);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i += WIDTH) {
        const REAL *x = (const REAL *)p->scores + offset_of(p, start + i);
        int64_t stride = p->strides[1];
        if (!in_place) {
            /* Long before it is read: a vector cannot be loaded while its parts are still being stored. */
            const int64_t rows = count - i < lanes ? count - i : lanes;
            if (i % lanes == 0 && p->converts)
                ISA(convert_lanes)(p, start, i, rows, lanes, b, scratch);
            else if (i % lanes == 0)
                gather(p, start + i, rows, scratch, lanes);
            x = (const REAL *)scratch + i % lanes, stride = lanes;
        }
        if (p->want & WANT_BRIER)
            TYPED(lane_block)(p, x, stride, i, b, WANT_BRIER);
        else
            TYPED(lane_block)(p, x, stride, i, b, 0);
        for (int64_t l = 0; p->converts && l < WIDTH; l++)
            judge_converted((const double *)x + l, stride, i + l, b);
        if (!(p->want & WANT_CLASSES))
            continue;
        n = TYPED(lane_classes)(p, x, stride, i, b, lane_first, above, above_class, n);
        if (n > p->classes * 8 || i + WIDTH >= count) {
            const double *edges = p->edges;
            const int64_t bins = p->bins;
            Pair *classes = s->classes;
            for (int64_t j = 0; j < n; j++)
                add_to_class(edges, bins, classes + above_class[j] * bins, above[j]);
            n = 0;
        }
    }
}

#undef REAL
#undef TYPED
