/* Compiled twice for each instruction set, for REAL = float and double. Two ways through the array:
 *     rows    classes contiguous: the lanes of a vector are classes of one example
 *     lanes   anything else: the lanes are examples; channel-first arrays are read in place, and
 *             few classes, bfloat16 or odd strides go through a scratch block of one vector per class
 * Both leave e_k = exp(z_k - max z) where the gradient will be, then overwrite it with the gradient. */

#define LANES ((int64_t)(VECTOR_BYTES / sizeof(REAL)))

typedef VEC TYPED(unaligned) __attribute__((aligned(sizeof(REAL)), may_alias));
#define LOAD(address) (*(const TYPED(unaligned) *)(address))
#define STORE(address, value) (*(TYPED(unaligned) *)(address) = (value))

INLINE IVEC TYPED(iota)(void)
{
    IVEC v;
    for (int64_t l = 0; l < LANES; l++)
        v[l] = (INT)l;
    return v;
}

/* By 16-byte parts, which every instruction set adds and compares at once, then within the last one. */
typedef REAL TYPED(part) __attribute__((vector_size(16), may_alias));
typedef INT TYPED(part_mask) __attribute__((vector_size(16), may_alias));

INLINE REAL TYPED(horizontal_sum)(VEC v)
{
    const TYPED(part) *parts = (const TYPED(part) *)&v;
    TYPED(part) sum = parts[0];
    for (size_t i = 1; i < VECTOR_BYTES / 16; i++)
        sum += parts[i];
    return sizeof(REAL) == 8 ? sum[0] + sum[1] : (sum[0] + sum[1]) + (sum[16 / sizeof(REAL) - 2] + sum[16 / sizeof(REAL) - 1]);
}

INLINE REAL TYPED(horizontal_max)(VEC v)
{
    const TYPED(part) *parts = (const TYPED(part) *)&v;
    TYPED(part) max = parts[0];
    for (size_t i = 1; i < VECTOR_BYTES / 16; i++) {
        const TYPED(part_mask) larger = parts[i] > max;
        max = (TYPED(part))(((TYPED(part_mask))parts[i] & larger) | ((TYPED(part_mask))max & ~larger));
    }
    REAL result = max[0];
    for (size_t l = 1; l < 16 / sizeof(REAL); l++)
        result = max[l] > result ? max[l] : result;
    return result;
}

INLINE REAL TYPED(row_max)(const REAL *x, int64_t K)
{
    const VEC zero = {0};
    const int64_t full = K - K % LANES;
    VEC top = MAX(LOAD(x + K - LANES), zero - (REAL)INFINITY), top2 = top;
    int64_t k = 0;
    for (; k + 2 * LANES <= full; k += 2 * LANES) {
        top = MAX(LOAD(x + k), top);
        top2 = MAX(LOAD(x + k + LANES), top2);
    }
    if (k < full)
        top = MAX(LOAD(x + k), top);
    return TYPED(horizontal_max)(MAX(top2, top));
}

typedef struct {
    VEC sum, squares, drop, rival;
    IVEC tops;
} TYPED(Sums);

/* Add the classes in v (0 where they do not count), whose logits are x = max + below, to the sums. */
INLINE void TYPED(add)(TYPED(Sums) * s, VEC v, VEC x, VEC below, VEC own, IVEC keep, int kind)
{
    if (kind == BRIER) {
        const IVEC top = (v >= 1);
        s->tops -= top;
        v = (VEC)((IVEC)v & ~top);
    }
    s->sum += v;
    if (kind == PLAIN || kind == BRIER)
        s->squares += v * v;
    if (kind == SMOOTH)
        s->drop += (VEC)((IVEC)below & keep);
    if (kind == DUAL)
        s->rival = MAX((VEC)((IVEC)v & (x < own)), s->rival);
}

/* The vector x of classes from .. from + LANES: exp(x - max) to e, if wanted, and to the sums, those lanes
 * left out that are not in keep. */
INLINE void TYPED(accumulate)(VEC x, REAL *e, int64_t from, IVEC keep, REAL own, REAL max, TYPED(Sums) * s, int kind)
{
    const VEC below = x - max, all = EXP(below);
    const VEC v = (VEC)((IVEC)all & keep);
    if (e)
        STORE(e + from, all);
    TYPED(add)(s, v, x, below, (VEC){0} + own, keep, kind);
}

/* Fill entry i of the block from a row of K >= LANES logits; e, if wanted, may be x itself. The last,
 * partial vector is the one that ends at K: its first lanes repeat work and are left out of the sums. */
INLINE void TYPED(row_sums)(const REAL *x, REAL *e, int64_t K, int64_t y, REAL max, Block *b, int64_t i, int kind)
{
    const VEC zero = {0};
    const IVEC iota = TYPED(iota)(), everything = iota >= 0;
    const int64_t full = K - K % LANES;
    const REAL own = x[y];
    const VEC tail = LOAD(x + K - LANES);
    TYPED(Sums) s = {zero, zero, zero, zero, (IVEC)zero};
    if (K < SPLIT_FROM) { /* loops of a length that varies with the label would be mispredicted */
        for (int64_t k = 0; k < full; k += LANES)
            TYPED(accumulate)(LOAD(x + k), e, k, iota + (INT)k != (INT)y, own, max, &s, kind);
    } else {
        const int64_t at_label = y - y % LANES; /* the vector that holds the label */
        for (int64_t k = 0; k < (at_label < full ? at_label : full); k += LANES)
            TYPED(accumulate)(LOAD(x + k), e, k, everything, own, max, &s, kind);
        if (at_label < full)
            TYPED(accumulate)(LOAD(x + at_label), e, at_label, iota + (INT)at_label != (INT)y, own, max, &s, kind);
        for (int64_t k = at_label + LANES; k < full; k += LANES)
            TYPED(accumulate)(LOAD(x + k), e, k, everything, own, max, &s, kind);
    }
    if (full < K) {
        const IVEC index = iota + (INT)(K - LANES);
        TYPED(accumulate)(tail, e, K - LANES, (index >= (INT)full) & (index != (INT)y), own, max, &s, kind);
    }
    b->others[i] = TYPED(horizontal_sum)(s.sum);
    b->own[i] = e ? e[y] : EXP(zero + (own - max))[0];
    b->lag[i] = own - max;
    if (kind == PLAIN || kind == BRIER)
        b->squares[i] = TYPED(horizontal_sum)(s.squares);
    if (kind == BRIER)
        b->tops[i] = TYPED(horizontal_sum)(__builtin_convertvector(s.tops, VEC));
    if (kind == SMOOTH)
        b->drop[i] = TYPED(horizontal_sum)(s.drop);
    if (kind == DUAL)
        b->rival[i] = TYPED(horizontal_max)(s.rival);
}

/* What the gradient of the classes in v is; linear, quadratic, constant, rival and at_rival belong to it. */
INLINE VEC TYPED(entries)(VEC v, VEC linear, VEC quadratic, VEC constant, VEC rival, VEC at_rival, int kind)
{
    if (kind == SMOOTH)
        return v * linear + constant;
    if (kind == DUAL)
        return v * linear + (VEC)((IVEC)at_rival & (v == rival) & (rival > 0));
    const VEC g = v * (linear + quadratic * v);
    if (kind == PLAIN)
        return g;
    const IVEC top = (v == rival) & (rival > 0);
    return (VEC)(((IVEC)g & ~top) | ((IVEC)at_rival & top));
}

INLINE void TYPED(row_gradient)(REAL *e, int64_t K, int64_t y, const Block *b, int64_t i, int kind)
{
    const VEC zero = {0};
    const VEC linear = zero + (REAL)b->linear[i], quadratic = zero + (REAL)b->quadratic[i];
    const VEC constant = zero + (REAL)b->constant[i], rival = zero + (REAL)b->rival[i];
    const int64_t full = K - K % LANES;
    REAL at_rival = (REAL)b->at_rival[i];
    if (kind == DUAL) { /* equal ones share */
        e[y] = -1;      /* the label is not one of them */
        IVEC equal = {0};
        for (int64_t k = 0; k < full; k += LANES)
            equal -= LOAD(e + k) == rival;
        INT count = 0;
        for (int64_t l = 0; l < LANES; l++)
            count += equal[l];
        for (int64_t k = full; k < K; k++)
            count += e[k] == rival[0];
        at_rival /= (REAL)(count ? count : 1);
    }
    const VEC share = zero + at_rival;
    const VEC tail = LOAD(e + K - LANES);
    for (int64_t k = 0; k < full; k += LANES)
        STORE(e + k, TYPED(entries)(LOAD(e + k), linear, quadratic, constant, rival, share, kind));
    if (full < K)
        STORE(e + K - LANES, TYPED(entries)(tail, linear, quadratic, constant, rival, share, kind));
    e[y] = (REAL)b->at_label[i];
}

INLINE double TYPED(rows)(const Problem *p, int64_t begin, int64_t end, REAL *scratch, int kind)
{
    const int64_t K = p->classes, step = rows_at_once(p);
    const int packed = p->dtype == BFLOAT16;
    double sum = 0;
    Block block;
    REAL max[BLOCK];
    for (int64_t first = begin; first < end; first += step) {
        const int64_t count = end - first < step ? end - first : step;
        clear(&block, count);
        /* A pass of its own, so that no row waits for its maximum. */
        for (int64_t i = 0; !packed && i < count; i++)
            max[i] = TYPED(row_max)((const REAL *)p->logits + offset_of(p, p->logit_strides, first + i), K);
        for (int64_t i = 0; i < count; i++) {
            const int64_t y = label_of(p, first + i);
            if (y < 0)
                continue;
            const int64_t at = offset_of(p, p->logit_strides, first + i);
            const REAL *x = (const REAL *)p->logits + at;
            REAL *e = (REAL *)p->gradient;
            if (packed) {
                e = scratch + i * K;
                for (int64_t k = 0; k < K; k++)
                    e[k] = bfloat16_to_float(((const uint16_t *)p->logits)[at + k]);
                x = e;
                max[i] = TYPED(row_max)(x, K);
            } else if (e) {
                e += offset_of(p, p->gradient_strides, first + i);
            }
            TYPED(row_sums)(x, p->gradient ? e : NULL, K, y, max[i], &block, i, kind);
            block.scale[i] = weight_of(p, y);
        }
        ISA(coefficients)(p, &block, count);
        sum += deliver(p, &block, first, count);
        for (int64_t i = 0; p->gradient && i < count; i++) {
            const int64_t y = label_of(p, first + i);
            const int64_t at = offset_of(p, p->gradient_strides, first + i);
            const size_t size = element_bytes(p);
            if (y < 0) {
                memset((char *)p->gradient + (size_t)at * size, 0, (size_t)K * size);
                continue;
            }
            REAL *e = packed ? scratch + i * K : (REAL *)p->gradient + at;
            TYPED(row_gradient)(e, K, y, &block, i, kind);
            for (int64_t k = 0; packed && k < K; k++)
                ((uint16_t *)p->gradient)[at + k] = float_to_bfloat16((float)e[k]);
        }
    }
    return sum;
}

/* LANES examples, from entry i of the block, whose classes lie x_stride (e_stride) apart; label -1 matches no class. */
INLINE void TYPED(lane_sums)(const REAL *x, int64_t x_stride, REAL *e, int64_t e_stride, int64_t K,
                             IVEC label, Block *b, int64_t i, int kind)
{
    const VEC zero = {0};
    VEC top = zero - (REAL)INFINITY, own_logit = zero;
    for (int64_t k = 0; k < K; k++) {
        const VEC v = LOAD(x + k * x_stride);
        top = MAX(v, top);
        if (kind == DUAL)
            own_logit = (VEC)((IVEC)own_logit | ((IVEC)v & (label == (INT)k)));
    }
    VEC own = zero, lag = zero;
    TYPED(Sums) s = {zero, zero, zero, zero, (IVEC)zero};
    for (int64_t k = 0; k < K; k++) {
        const VEC logit = LOAD(x + k * x_stride), below = logit - top, all = EXP(below);
        const IVEC is_label = label == (INT)k;
        own = (VEC)((IVEC)own | ((IVEC)all & is_label));
        lag = (VEC)((IVEC)lag | ((IVEC)below & is_label));
        const VEC v = (VEC)((IVEC)all & ~is_label);
        TYPED(add)(&s, v, logit, below, own_logit, ~is_label, kind);
        if (e)
            STORE(e + k * e_stride, v);
    }
    /* An ignored lane has no label to take sums around: give it harmless ones. */
    const IVEC live = label >= 0, one = (IVEC)(zero + 1) & ~live;
    REAL lanes[7][VECTOR_BYTES / sizeof(REAL)];
    STORE(lanes[0], (VEC)(((IVEC)s.sum & live) | one));
    STORE(lanes[1], (VEC)((IVEC)s.squares & live));
    STORE(lanes[2], (VEC)((IVEC)own | one));
    STORE(lanes[3], lag);
    STORE(lanes[4], (VEC)((IVEC)s.drop & live));
    STORE(lanes[5], (VEC)((IVEC)s.rival & live));
    STORE(lanes[6], (VEC)((IVEC)__builtin_convertvector(s.tops, VEC) & live));
    for (int64_t l = 0; l < LANES; l++) {
        b->others[i + l] = lanes[0][l];
        b->squares[i + l] = lanes[1][l];
        b->own[i + l] = lanes[2][l];
        b->lag[i + l] = lanes[3][l];
        b->drop[i + l] = lanes[4][l];
        b->rival[i + l] = lanes[5][l];
        b->tops[i + l] = lanes[6][l];
    }
}

INLINE VEC TYPED(to_vector)(const double *values)
{
    REAL lanes[VECTOR_BYTES / sizeof(REAL)];
    for (int64_t l = 0; l < LANES; l++)
        lanes[l] = (REAL)values[l];
    return LOAD(lanes);
}

INLINE void TYPED(lane_gradient)(REAL *e, int64_t e_stride, int64_t K, IVEC label, const Block *b, int64_t i, int kind)
{
    const IVEC live = label >= 0; /* an ignored example's gradient is 0, whatever its logits are */
    const VEC linear = TYPED(to_vector)(b->linear + i), quadratic = TYPED(to_vector)(b->quadratic + i);
    const VEC at_label = TYPED(to_vector)(b->at_label + i), constant = TYPED(to_vector)(b->constant + i);
    const VEC rival = TYPED(to_vector)(b->rival + i);
    VEC at_rival = TYPED(to_vector)(b->at_rival + i);
    if (kind == DUAL) { /* equal ones share; the label's own e is stored as 0 */
        IVEC equal = {0};
        for (int64_t k = 0; k < K; k++)
            equal -= LOAD(e + k * e_stride) == rival;
        equal -= equal == 0; /* without a rival there is nothing to share, but 0 / 0 is NaN */
        at_rival /= __builtin_convertvector(equal, VEC);
    }
    for (int64_t k = 0; k < K; k++) {
        const VEC v = LOAD(e + k * e_stride);
        const IVEC is_label = label == (INT)k;
        const VEC g = TYPED(entries)(v, linear, quadratic, constant, rival, at_rival, kind);
        STORE(e + k * e_stride, (VEC)((((IVEC)g & ~is_label) | ((IVEC)at_label & is_label)) & live));
    }
}

/* The labels of count examples, -1 for those to be ignored and for the rest of the vectors, and their weights. */
INLINE void TYPED(lane_labels)(const Problem *p, int64_t first, int64_t count, INT *labels, Block *b)
{
    for (int64_t l = 0; l < (count + LANES - 1) / LANES * LANES; l++) {
        const int64_t y = l < count ? label_of(p, first + l) : -1;
        labels[l] = (INT)y;
        b->scale[l] = y < 0 ? 0 : weight_of(p, y);
    }
}

INLINE double TYPED(lanes)(const Problem *p, int64_t begin, int64_t end, REAL *scratch, int kind)
{
    const int64_t K = p->classes;
    const int in_place = p->logit_strides[2] == 1 && p->dtype != BFLOAT16 &&
                         (!p->gradient || p->gradient_strides[2] == 1);
    const int tiled = in_place && tile_fits(p);
    double sum = 0;
    Block block;
    INT labels[BLOCK] __attribute__((aligned(64)));
    for (int64_t first = begin, count; first < end; first += count) {
        const int64_t left = p->inner - first % p->inner;
        count = end - first;
        if (in_place && left < count)
            count = left;
        /* The planes of classes are often a power of two apart, so that a vector of each would push the next ones'
         * out of the cache: whole lines are copied to where they stay. */
        const int tile = tiled && count >= BLOCK;
        const int64_t step = tile ? BLOCK : LANES;
        count = count < step ? count : step;
        TYPED(lane_labels)(p, first, count, labels, &block);
        const int direct = in_place && !tile && count == LANES;
        const REAL *x = scratch;
        REAL *e = p->gradient ? scratch : NULL;
        int64_t x_stride = step, e_stride = step;
        if (direct || tile)
            x = (const REAL *)p->logits + offset_of(p, p->logit_strides, first);
        REAL *g = (REAL *)p->gradient;
        if (g && (direct || tile))
            g += offset_of(p, p->gradient_strides, first);
        if (direct) {
            x_stride = p->logit_strides[1];
            if (g)
                e = g, e_stride = p->gradient_strides[1];
        } else if (tile) {
            for (int64_t k = 0; k < K; k++)
                memcpy(scratch + k * BLOCK, x + k * p->logit_strides[1], BLOCK * sizeof(REAL));
            x = scratch;
        } else {
            gather(p, first, count, scratch, LANES);
        }
        for (int64_t l = 0; l < step; l += LANES)
            TYPED(lane_sums)(x + l, x_stride, e ? e + l : NULL, e_stride, K, (IVEC)LOAD(labels + l), &block, l, kind);
        ISA(coefficients)(p, &block, step);
        sum += deliver(p, &block, first, count);
        if (!p->gradient)
            continue;
        for (int64_t l = 0; l < step; l += LANES)
            TYPED(lane_gradient)(e + l, e_stride, K, (IVEC)LOAD(labels + l), &block, l, kind);
        if (tile)
            for (int64_t k = 0; k < K; k++)
                memcpy(g + k * p->gradient_strides[1], scratch + k * BLOCK, BLOCK * sizeof(REAL));
        else if (!direct)
            scatter(p, first, count, scratch, LANES);
    }
    return sum;
}

/* A copy of the code for each kind, so that none pays for the others. */
#define COPY(kind)                                                                             \
    static double TYPED(rows_##kind)(const Problem *p, int64_t begin, int64_t end, REAL *scratch)  \
    {                                                                                          \
        return TYPED(rows)(p, begin, end, scratch, kind);                                      \
    }                                                                                          \
    static double TYPED(lanes_##kind)(const Problem *p, int64_t begin, int64_t end, REAL *scratch) \
    {                                                                                          \
        return TYPED(lanes)(p, begin, end, scratch, kind);                                     \
    }
COPY(PLAIN)
COPY(BRIER)
COPY(SMOOTH)
COPY(DUAL)
#undef COPY

static double TYPED(examples)(const Problem *p, int64_t begin, int64_t end, void *scratch)
{
    const int rows = in_rows(p) && p->classes >= LANES;
    if (p->kind == BRIER)
        return (rows ? TYPED(rows_BRIER) : TYPED(lanes_BRIER))(p, begin, end, (REAL *)scratch);
    if (p->kind == SMOOTH)
        return (rows ? TYPED(rows_SMOOTH) : TYPED(lanes_SMOOTH))(p, begin, end, (REAL *)scratch);
    if (p->kind == DUAL)
        return (rows ? TYPED(rows_DUAL) : TYPED(lanes_DUAL))(p, begin, end, (REAL *)scratch);
    return (rows ? TYPED(rows_PLAIN) : TYPED(lanes_PLAIN))(p, begin, end, (REAL *)scratch);
}

#undef LANES
#undef LOAD
#undef STORE
#undef REAL
#undef VEC
#undef IVEC
#undef INT
#undef MAX
#undef EXP
#undef TYPED
