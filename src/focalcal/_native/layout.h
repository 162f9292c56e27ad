/* Compiled twice for each instruction set, for REAL = float and double. Two ways through the array:
 *     rows    classes contiguous: the lanes of a vector are classes of one example
 *     lanes   anything else: the lanes are examples; channel-first arrays are read in place, and
 *             few classes, bfloat16 or odd strides go through a scratch block of one vector a class
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

/* exp(x - max) of classes k .. end (whole vectors) to e, if wanted, and to the sums. */
INLINE void TYPED(accumulate)(const REAL *x, REAL *e, int64_t k, int64_t end, REAL max, VEC *sum, VEC *squares)
{
    for (; k < end; k += LANES) {
        const VEC v = EXP(LOAD(x + k) - max);
        if (e)
            STORE(e + k, v);
        *sum += v;
        *squares += v * v;
    }
}

/* The vector x of classes from .. from + LANES likewise, the label and what lies before `new` left out. */
INLINE void TYPED(accumulate_some)(VEC x, REAL *e, int64_t from, int64_t new, int64_t y, REAL max, VEC *sum,
                                   VEC *squares)
{
    const IVEC index = TYPED(iota)() + (INT)from;
    VEC v = EXP(x - max);
    if (e)
        STORE(e + from, v);
    v = (VEC)((IVEC)v & (index >= (INT)new) & (index != (INT)y));
    *sum += v;
    *squares += v * v;
}

/* Fill entry i of the block from a row of K >= LANES logits; e, if wanted, may be x itself. The last,
 * partial vector is the one that ends at K: its first lanes repeat work and are left out of the sums. */
INLINE void TYPED(row_sums)(const REAL *x, REAL *e, int64_t K, int64_t y, REAL max, Block *b, int64_t i)
{
    const VEC zero = {0};
    const int64_t full = K - K % LANES;
    const REAL own = x[y];
    const VEC tail = LOAD(x + K - LANES);
    VEC sum = zero, squares = zero;
    if (K < SPLIT_FROM) { /* loops of a length that varies with the label would be mispredicted */
        for (int64_t k = 0; k < full; k += LANES)
            TYPED(accumulate_some)(LOAD(x + k), e, k, 0, y, max, &sum, &squares);
    } else {
        const int64_t at_label = y - y % LANES; /* the vector that holds the label */
        TYPED(accumulate)(x, e, 0, at_label < full ? at_label : full, max, &sum, &squares);
        if (at_label < full) {
            TYPED(accumulate_some)(LOAD(x + at_label), e, at_label, 0, y, max, &sum, &squares);
            TYPED(accumulate)(x, e, at_label + LANES, full, max, &sum, &squares);
        }
    }
    if (full < K)
        TYPED(accumulate_some)(tail, e, K - LANES, full, y, max, &sum, &squares);
    b->others[i] = TYPED(horizontal_sum)(sum);
    b->squares[i] = TYPED(horizontal_sum)(squares);
    b->own[i] = e ? e[y] : EXP(zero + (own - max))[0];
    b->lag[i] = own - max;
}

INLINE void TYPED(row_gradient)(REAL *e, int64_t K, int64_t y, const Block *b, int64_t i)
{
    const REAL linear = (REAL)b->linear[i], quadratic = (REAL)b->quadratic[i];
    const int64_t full = K - K % LANES;
    VEC tail = LOAD(e + K - LANES);
    for (int64_t k = 0; k < full; k += LANES) {
        VEC v = LOAD(e + k);
        STORE(e + k, v * (linear + quadratic * v));
    }
    if (full < K)
        STORE(e + K - LANES, tail * (linear + quadratic * tail));
    e[y] = (REAL)b->at_label[i];
}

static double TYPED(rows)(const Problem *p, int64_t begin, int64_t end, REAL *scratch)
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
            TYPED(row_sums)(x, p->gradient ? e : NULL, K, y, max[i], &block, i);
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
            TYPED(row_gradient)(e, K, y, &block, i);
            for (int64_t k = 0; packed && k < K; k++)
                ((uint16_t *)p->gradient)[at + k] = float_to_bfloat16((float)e[k]);
        }
    }
    return sum;
}

/* LANES examples whose classes lie x_stride (e_stride) apart; label -1 matches no class. */
INLINE void TYPED(lane_sums)(const REAL *x, int64_t x_stride, REAL *e, int64_t e_stride, int64_t K,
                             IVEC label, Block *b)
{
    const VEC zero = {0};
    VEC top = zero - (REAL)INFINITY;
    for (int64_t k = 0; k < K; k++)
        top = MAX(LOAD(x + k * x_stride), top);
    VEC sum = zero, squares = zero, own = zero, lag = zero;
    for (int64_t k = 0; k < K; k++) {
        VEC below = LOAD(x + k * x_stride) - top;
        VEC v = EXP(below);
        IVEC is_label = label == (INT)k;
        own = (VEC)((IVEC)own | ((IVEC)v & is_label));
        lag = (VEC)((IVEC)lag | ((IVEC)below & is_label));
        v = (VEC)((IVEC)v & ~is_label);
        sum += v;
        squares += v * v;
        if (e)
            STORE(e + k * e_stride, v);
    }
    /* An ignored lane has no label to take sums around: give it harmless ones. */
    const IVEC ignored = label < 0, one = (IVEC)(zero + 1) & ignored;
    REAL lanes[4][VECTOR_BYTES / sizeof(REAL)];
    STORE(lanes[0], (VEC)(((IVEC)sum & ~ignored) | one));
    STORE(lanes[1], (VEC)((IVEC)squares & ~ignored));
    STORE(lanes[2], (VEC)((IVEC)own | one));
    STORE(lanes[3], lag);
    for (int64_t l = 0; l < LANES; l++) {
        b->others[l] = lanes[0][l];
        b->squares[l] = lanes[1][l];
        b->own[l] = lanes[2][l];
        b->lag[l] = lanes[3][l];
    }
}

INLINE void TYPED(lane_gradient)(REAL *e, int64_t e_stride, int64_t K, IVEC label, const Block *b)
{
    const IVEC live = label >= 0; /* an ignored example's gradient is 0, whatever its logits are */
    REAL lanes[3][VECTOR_BYTES / sizeof(REAL)];
    for (int64_t l = 0; l < LANES; l++) {
        lanes[0][l] = (REAL)b->linear[l];
        lanes[1][l] = (REAL)b->quadratic[l];
        lanes[2][l] = (REAL)b->at_label[l];
    }
    const VEC linear = LOAD(lanes[0]), quadratic = LOAD(lanes[1]), at_label = LOAD(lanes[2]);
    for (int64_t k = 0; k < K; k++) {
        VEC v = LOAD(e + k * e_stride);
        IVEC is_label = label == (INT)k;
        IVEC g = ((IVEC)(v * (linear + quadratic * v)) & ~is_label) | ((IVEC)at_label & is_label);
        STORE(e + k * e_stride, (VEC)(g & live));
    }
}

static double TYPED(lanes)(const Problem *p, int64_t begin, int64_t end, REAL *scratch)
{
    const int64_t K = p->classes;
    const int in_place = p->logit_strides[2] == 1 && p->dtype != BFLOAT16 &&
                         (!p->gradient || p->gradient_strides[2] == 1);
    double sum = 0;
    Block block;
    REAL labels[VECTOR_BYTES / sizeof(REAL)];
    for (int64_t first = begin, count; first < end; first += count) {
        count = end - first < LANES ? end - first : LANES;
        if (in_place && p->inner - first % p->inner < count)
            count = p->inner - first % p->inner;
        for (int64_t l = 0; l < LANES; l++) {
            const int64_t y = l < count ? label_of(p, first + l) : -1;
            ((INT *)labels)[l] = (INT)y;
            block.scale[l] = y < 0 ? 0 : weight_of(p, y);
        }
        const IVEC label = (IVEC)LOAD(labels);
        const REAL *x = scratch;
        REAL *e = p->gradient ? scratch : NULL;
        int64_t x_stride = LANES, e_stride = LANES;
        const int direct = in_place && count == LANES;
        if (direct) {
            x = (const REAL *)p->logits + offset_of(p, p->logit_strides, first);
            x_stride = p->logit_strides[1];
            if (p->gradient) {
                e = (REAL *)p->gradient + offset_of(p, p->gradient_strides, first);
                e_stride = p->gradient_strides[1];
            }
        } else {
            gather(p, first, count, scratch, LANES);
        }
        TYPED(lane_sums)(x, x_stride, e, e_stride, K, label, &block);
        ISA(coefficients)(p, &block, LANES);
        sum += deliver(p, &block, first, count);
        if (!p->gradient)
            continue;
        TYPED(lane_gradient)(e, e_stride, K, label, &block);
        if (!direct)
            scatter(p, first, count, scratch, LANES);
    }
    return sum;
}

static double TYPED(examples)(const Problem *p, int64_t begin, int64_t end, void *scratch)
{
    if (in_rows(p) && p->classes >= 2 * LANES)
        return TYPED(rows)(p, begin, end, (REAL *)scratch);
    return TYPED(lanes)(p, begin, end, (REAL *)scratch);
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
