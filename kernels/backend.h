// The seam between Causeway and arithmetic: what a compute backend is. reference/ (the specification), cpu/ and, as a
// plugin loaded at run time, cuda/ each implement the one table at the end of this file.
//
// It is plain C so that a plugin built by another compiler can be loaded, and so small that a backend is one table. New
// arithmetic (convolution, norms, embeddings, bf16, fused operations) is a new `kind` with its operand order written
// down here; the table never changes for it. Nothing in a backend is global: all state hangs on the opaque device.
//
// Life of an operation: describe it (cw_op: kind, attributes, shapes) -> prepare it once (cw_plan) -> run it many times
// on views of the same shapes. A plan is a function of (op, signature of the device), never of a timing, because the
// layout and blocking that it fixes decide the bits of the result.
//
// C++ code uses kernels/device.h and kernels/ops.h, which wrap this.
#ifndef CAUSEWAY_KERNELS_BACKEND_H
#define CAUSEWAY_KERNELS_BACKEND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CW_ABI = 1,             /* changes when a struct or the table does, not when a kind is added */
    CW_MAX_RANK = 6,        /* batch, time, head, height, width, channel */
    CW_MAX_OPERANDS = 16,
    CW_MAX_INTEGERS = 16,   /* a grouped, dilated, asymmetrically padded 2-D convolution needs 12 */
    CW_COMPUTE = 15,        /* integers[CW_COMPUTE]: cw_compute, of the six product kinds */
    CW_MAX_REALS = 4,
    CW_MAX_SCALARS = 8,
    CW_MAX_EXACT_TERMS = 8, /* updates that one CW_EXACT_ADD pass may add: twice the speed of one each */
    CW_ANY = -1             /* a dimension of an op that each run's views give (streaming kinds only) */
};

typedef struct cw_device cw_device;
typedef struct cw_plan cw_plan;
typedef struct cw_stream cw_stream;
typedef struct cw_event cw_event;

/* The first three have the numbers of causeway::DType. */
typedef enum cw_dtype {
    CW_F32 = 0,
    CW_I64 = 1,
    CW_U8 = 2,
    CW_U32 = 3,
    CW_F64 = 4,
    CW_BF16 = 5,
    CW_I32 = 6,
    CW_I8 = 7
} cw_dtype;

/* A tensor in device memory; in an op, the same without data. Row-major: the last dimension varies fastest.
 * Today every kind needs dense strides (strides[last] = 1, strides[i] = strides[i+1] * dims[i+1]); others are refused
 * by prepare as unsupported. A scalar result is rank 1, dims {1}. A dimension may be 0. */
typedef struct cw_view {
    void* data;
    int32_t dtype; /* cw_dtype */
    int32_t rank;
    int64_t dims[CW_MAX_RANK];
    int64_t strides[CW_MAX_RANK]; /* in elements */
} cw_view;

/* Kinds. For each: operands in order (in, out, inout), attributes (fixed in the plan: `integers[i]`, `reals[i]`), and
 * scalars (doubles in host memory, given at each run, because learning rates and step numbers change).
 * Shape letters: B batch, I inputs, O outputs, V classes, N elements. All f32 unless said. Operands never overlap
 * unless "in place" is said. "Streaming" kinds accept CW_ANY and need no workspace; on a device of one thread they may
 * run on any thread at once with the same plan. All others, and all of several threads, belong to the trainer thread.
 * NaN and infinity propagate as IEEE says (in convolutions they may spread); no kind traps or reads outside views. */
typedef enum cw_kind {
    /* ---- required: a backend without one of these is refused when a plan needs it ---- */

    /* The products, matmul and convolution: with CW_COMPUTE_BF16 the two factors are first rounded to bf16 (to nearest,
     * ties to even; below 2^-126 they may count as 0), products are summed in f32 or better, and all operands stay
     * f32. A bias, what is added to, and db as the sums of dy are not rounded. Where a factor is not finite, results
     * are at least as little: any may then be NaN, since 0 stands for tiny numbers and pads blocks. A device whose
     * processor has no such instructions refuses it (CW_UNSUPPORTED).
     * With CW_COMPUTE_WINOGRAD a convolution may be computed from sums of its factors (Winograd's way: fewer
     * multiplications, all in f32); errors are then some ten times those of the plain sum. What is not finite, or would
     * overflow in a sum of 36 values, may spread to the 16 places computed with it. Which shapes gain is the device's
     * to say; the others, and devices without it, give the bits of CW_COMPUTE_F32.
     * Packed weights: a plan of a product with weights among its inputs may give packed_bytes; where it does, the
     * result has the same bits with packed weights as with plain ones. */

    /* y = x * w^T + b.  0 x[B,I] in, 1 w[O,I] in, 2 b[O] in, 3 y[B,O] out.
     * Without a bias: three operands, x, w, y. */
    CW_MATMUL = 1,
    /* dx = dy * w.  0 dy[B,O] in, 1 w[O,I] in, 2 dx[B,I] out. */
    CW_MATMUL_BACKWARD_DATA = 2,
    /* dw = dy^T * x, db = column sums of dy.  0 dy[B,O] in, 1 x[B,I] in, 2 dw[O,I] out, 3 db[O] out.
     * Without a bias: three operands, dy, x, dw.
     * integers[0] cw_write: 0 overwrites dw and db, 1 adds to them (microbatches). */
    CW_MATMUL_BACKWARD_WEIGHTS = 3,

    /* y = max(x, 0); a NaN stays a NaN, -0 becomes +0.  0 x[N] in, 1 y[N] out (in place allowed). Streaming. */
    CW_RELU = 10,
    /* dx = dy where x > 0, else 0. Since y > 0 exactly where x > 0, y may be given for x.
     * 0 x[N] in, 1 dy[N] in, 2 dx[N] out (in place with dy allowed). Streaming. */
    CW_RELU_BACKWARD = 11,
    /* y = x/2 * (1 + erf(x / sqrt 2)): the exact form (PyTorch's approximate='none'), not the tanh form.
     * 0 x[N] in, 1 y[N] out (in place allowed). Streaming. */
    CW_GELU = 12,
    /* dx = dy * (Phi(x) + x * phi(x)), Phi and phi of the standard normal.
     * 0 x[N] in (the forward pass's input, not its output), 1 dy[N] in, 2 dx[N] out (in place with dy). Streaming. */
    CW_GELU_BACKWARD = 13,

    /* y = x * sigmoid(x).  0 x[N] in, 1 y[N] out (in place allowed). Streaming. */
    CW_SILU = 14,
    /* dx = dy * s * (1 + x * (1 - s)), s = sigmoid(x).  0 x[N] in, 1 dy[N] in, 2 dx[N] out (in place with dy).
     * Streaming. */
    CW_SILU_BACKWARD = 15,

    /* Softmax and cross-entropy over the last dimension, with d = scalars[0] (B for a mean over this batch; the whole
     * batch's size for a microbatch; must be > 0):
     *   loss = sum_b(-log softmax(x_b)[label_b]) / d      dx = (softmax(x) - onehot(label)) / d
     * 0 x[B,V] in, 1 labels i64[B] or u32[B] in, 2 loss f64[1] out, 3 correct i64[1] out,
     * 4 dx[B,V] out (in place with x allowed); four operands: no gradient (evaluation).
     * correct counts rows whose largest logit is the label's, the first of equal ones; a row with a NaN is never
     * correct. A label outside [0, V) makes the loss and that row of dx NaN and reads nothing outside. */
    CW_SOFTMAX_CROSS_ENTROPY = 20,
    /* The same with label smoothing e = scalars[1] in [0, 1) and a weight per class, as torch.nn.CrossEntropyLoss has
     * them but for the divisor, which is d = scalars[0] and not the sum of the weights (a microbatch cannot know it):
     *   l_b = (1 - e) * w[label] * -log p_b[label] + e / V * sum_v w[v] * -log p_b[v],  p_b = softmax(x_b);
     *   loss = sum_b l_b / d      dx = its derivative.
     * 0 x[B,V] in, 1 labels i64[B] or u32[B] in, 2 w[V] in, 3 loss f64[1] out, 4 correct i64[1] out, 5 dx[B,V] out (in
     * place with x allowed); five operands: no gradient. correct and labels outside [0, V) as above. */
    CW_WEIGHTED_CROSS_ENTROPY = 21,
    /* loss = sum over b and v of (x - t)^2 / (V * d), dx = 2 * (x - t) / (V * d), d = scalars[0].
     * 0 x[B,V] in, 1 t[B,V] in, 2 loss f64[1] out, 3 dx[B,V] out (in place with x allowed); three operands: no
     * gradient. */
    CW_MEAN_SQUARED_ERROR = 22,
    /* Sigmoid and cross-entropy of every output by itself (several labels an example), d = scalars[0]:
     *   loss = sum over b and v of (max(x, 0) - x * t + log(1 + exp(-|x|))) / (V * d)   dx = (sigmoid(x) - t) / (V * d)
     * 0 x[B,V] in, 1 t[B,V] in (0..1), 2 loss f64[1] out, 3 correct i64[1] out, 4 dx[B,V] out (in place with x
     * allowed); four operands: no gradient. correct counts rows with x > 0 exactly where t > 1/2, and no NaN. */
    CW_BINARY_CROSS_ENTROPY = 23,

    /* One step of torch.optim.SGD:  g += decay * theta;  m = step == 1 ? g : momentum * m + (1 - dampening) * g;
     *   g = nesterov ? g + momentum * m : m;  theta -= rate * g.
     * 0 theta[N] inout, 1 g[N] in (unchanged), 2 m[N] inout. Without momentum: two operands, theta and g.
     * integers[0] nesterov 0|1.  scalars: 0 rate, 1 momentum, 2 dampening, 3 decay, 4 step (from 1). Streaming. */
    CW_SGD = 30,
    /* One step of torch.optim.AdamW (amsgrad off):  theta *= 1 - rate * decay;  m = beta1 * m + (1 - beta1) * g;
     *   v = beta2 * v + (1 - beta2) * g^2;
     *   theta -= rate / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon).
     * 0 theta[N] inout, 1 g[N] in, 2 m[N] inout, 3 v[N] inout.
     * scalars: 0 rate, 1 beta1, 2 beta2, 3 epsilon, 4 decay, 5 step (from 1). Streaming. */
    CW_ADAMW = 31,

    /* The step behind Adam and its relatives:  g += l2 * theta;  m = beta1 * m + (1 - beta1) * g;
     *   v = beta2 * v + (1 - beta2) * g^2;  theta = keep * theta - (own * g + moment * m) / (sqrt(v) * c + epsilon).
     * 0 theta[N] inout, 1 g[N] in, 2 m[N] inout, 3 v[N] inout.
     * scalars: 0 keep, 1 l2, 2 beta1, 3 beta2, 4 own, 5 moment, 6 c, 7 epsilon. Streaming. */
    CW_ADAM = 32,

    /* y = a * x + y.  0 x[N] in, 1 y[N] inout; scalars: 0 a (rounded to f32 first). Streaming. */
    CW_AXPY = 40,
    /* x = a * x.  0 x[N] inout; scalars: 0 a (rounded to f32 first). Streaming. */
    CW_SCALE = 41,
    /* s = sum of x[i]^2, in double and in one fixed order: equal bits on every instruction set. NaN or infinity when an
     * element is: finite exactly when all elements are.  0 x[N] in, 1 s f64[1] out. Streaming. */
    CW_SUM_OF_SQUARES = 42,
    /* x[i] = a.  0 x[N] out; scalars: 0 a. Streaming. */
    CW_FILL = 43,
    /* y = x.  0 x[N] in, 1 y[N] out. Streaming. */
    CW_COPY = 44,

    /* Dropout by counting: with e = first + i, u = word e mod 4 of the Philox4x32-10 block of counter (e / 4, 0) under
     * the key:  y[i] = u >= rate * 2^32 ? x[i] / (1 - rate) : 0. The backward pass is the same run on dy.
     * 0 x[N] in, 1 y[N] out (in place allowed); scalars: 0 rate in [0, 1), 1 the key's low and 2 its high 32 bits,
     * 3 first (below 2^53). Streaming. */
    CW_DROPOUT = 45,

    /* Adds weight_k * x_k, k = 0..K-1, K = 1..CW_MAX_EXACT_TERMS, to a sum of two limbs per element (kernels/exact.h):
     * high in units of 2^-10, low of 2^-62. Same bits for every order and grouping.
     * 0 high i64[N] inout, 1 low i64[N] inout, 2..1+K x_k[N] in; scalars: 0..K-1 weights, integers in [0, 2^29).
     * The caller has checked that all x are finite and |weight * x| * additions < 2^52, and carries every 2048
     * additions. Streaming. */
    CW_EXACT_ADD = 50,
    /* Moves whole high units out of low: afterwards -2^51 <= low < 2^51. Equal sums have equal limbs after it.
     * 0 high i64[N] inout, 1 low i64[N] inout. Streaming. */
    CW_EXACT_CARRY = 51,
    /* mean = f32(f64(high * 2^-10 + low * 2^-62) / weight): the sum is rounded once to double, the quotient once to
     * double and once to float.  0 high i64[N] in, 1 low i64[N] in, 2 mean[N] out; scalars: 0 weight > 0. Streaming. */
    CW_EXACT_MEAN = 52,

    /* Windows over images, channels last. Shape letters: B batch, H W height and width in, R S out, C channels in, O
     * channels out, P Q height and width of the window, I channels in per group.
     * integers: 0 write (cw_write, backward weights only), 1 stride, 2 padding above, 3 below, 4 left, 5 right,
     * 6 groups (convolutions: C = groups * I, groups divides O), 7 and 8 height and width of the window (pools only).
     *   R = (H + above + below - P) / stride + 1, S likewise; every dimension but B is at least 1. */

    /* Cross-correlation plus bias, as torch.nn.Conv2d:
     *   y[b,r,s,o] = b[o] + sum over p, q, i of w[o,p,q,i] * x[b, r*stride - above + p, s*stride - left + q, g*I + i],
     * g the group of o; outside the image x is 0.
     * 0 x[B,H,W,C] in, 1 w[O,P,Q,I] in, 2 b[O] in, 3 y[B,R,S,O] out. Without a bias: three operands, x, w, y. */
    CW_CONVOLUTION = 60,
    /* 0 dy[B,R,S,O] in, 1 w[O,P,Q,I] in, 2 dx[B,H,W,C] out. */
    CW_CONVOLUTION_BACKWARD_DATA = 61,
    /* 0 dy[B,R,S,O] in, 1 x[B,H,W,C] in, 2 dw[O,P,Q,I] out, 3 db[O] out (three operands: no bias). */
    CW_CONVOLUTION_BACKWARD_WEIGHTS = 62,
    /* The largest of each window; a NaN in it wins. Padding must be smaller than the window.
     * 0 x[B,H,W,C] in, 1 y[B,R,S,C] out. */
    CW_MAXPOOL = 63,
    /* Each dy goes to the first place, row by row, of its window that holds the largest value.
     * 0 x[B,H,W,C] in, 1 y[B,R,S,C] in, 2 dy[B,R,S,C] in, 3 dx[B,H,W,C] out. */
    CW_MAXPOOL_BACKWARD = 64,
    /* The mean of each window, padding counted as zeros.  0 x[B,H,W,C] in, 1 y[B,R,S,C] out. */
    CW_AVGPOOL = 65,
    /* 0 dy[B,R,S,C] in, 1 dx[B,H,W,C] out. */
    CW_AVGPOOL_BACKWARD = 66,

    /* Norms. reals[0] is epsilon > 0; statistics are sums in double, rounded once to f32. Where slopes meet infinities
     * the result is not finite, and no more is promised.
     * Group norm over S places and C / G channels of each example (layer norm: S = 1, G = 1):
     *   y = (x - mean) * rstd * gamma + beta,  rstd = 1 / sqrt(variance + epsilon), the variance divided by the count.
     * 0 x[B,S,C] in, 1 gamma[C] in, 2 beta[C] in, 3 y[B,S,C] out, 4 mean[B,G] out, 5 rstd[B,G] out. */
    CW_GROUP_NORM = 70,
    /* 0 x[B,S,C] in, 1 gamma[C] in, 2 mean[B,G] in, 3 rstd[B,G] in, 4 dy[B,S,C] in, 5 dx[B,S,C] out (in place with dy
     * allowed), 6 dgamma[C] out, 7 dbeta[C] out.  integers[0] cw_write, for dgamma and dbeta. */
    CW_GROUP_NORM_BACKWARD = 71,
    /* Batch norm over N rows: as above for each channel, and
     *   running = running * (1 - momentum) + observed * momentum, for the mean and the variance divided by N - 1.
     * 0 x[N,C] in, 1 gamma[C] in, 2 beta[C] in, 3 running mean[C] inout, 4 running variance[C] inout, 5 y[N,C] out,
     * 6 mean[C] out, 7 rstd[C] out; scalars: 0 momentum. */
    CW_BATCH_NORM = 72,
    /* y = (x - mean) / sqrt(variance + epsilon) * gamma + beta.
     * 0 x[N,C] in, 1 gamma[C] in, 2 beta[C] in, 3 mean[C] in, 4 variance[C] in, 5 y[N,C] out. */
    CW_BATCH_NORM_INFERENCE = 73,
    /* 0 x[N,C] in, 1 gamma[C] in, 2 mean[C] in, 3 rstd[C] in, 4 dy[N,C] in, 5 dx[N,C] out (in place with dy
     * allowed), 6 dgamma[C] out, 7 dbeta[C] out.  integers[0] cw_write, for dgamma and dbeta. */
    CW_BATCH_NORM_BACKWARD = 74,

    /* ---- fused: from here on. A backend may decline one; it is then composed from required kinds ---- */
    CW_FIRST_FUSED = 1000,
    /* CW_RELU in place, then CW_MAXPOOL of windows that cover each place of the image exactly once: x and y have the
     * bits of the two.  0 x[B,H,W,C] inout, 1 y[B,R,S,C] out. */
    CW_RELU_MAXPOOL = 1000,
    /* CW_MAXPOOL_BACKWARD, then CW_RELU_BACKWARD, of the same windows; x as CW_RELU_MAXPOOL left it.
     * 0 x[B,H,W,C] in, 1 y[B,R,S,C] in, 2 dy[B,R,S,C] in, 3 dx[B,H,W,C] out. */
    CW_RELU_MAXPOOL_BACKWARD = 1001
} cw_kind;

/* integers[0] of kinds that can add to what is there. */
typedef enum cw_write { CW_OVERWRITE = 0, CW_ACCUMULATE = 1 } cw_write;
/* In what a product's factors are. */
typedef enum cw_compute { CW_COMPUTE_F32 = 0, CW_COMPUTE_BF16 = 1, CW_COMPUTE_WINOGRAD = 2 } cw_compute;

/* What to compute. Unused fields are zero: two equal ops have equal bytes. */
typedef struct cw_op {
    int32_t kind; /* cw_kind */
    int32_t operand_count;
    int64_t integers[CW_MAX_INTEGERS];
    double reals[CW_MAX_REALS];
    cw_view operands[CW_MAX_OPERANDS]; /* data is NULL */
} cw_op;

typedef enum cw_status {
    CW_OK = 0,
    CW_UNSUPPORTED = 1,   /* this backend has no such kind, dtype, stride or device */
    CW_INVALID = 2,       /* the op contradicts the kind's description above */
    CW_OUT_OF_MEMORY = 3,
    CW_FAILED = 4         /* the device or its library failed */
} cw_status;

/* Filled when a function does not return CW_OK: what, where, what next, zero-terminated. */
typedef struct cw_error {
    char message[256];
} cw_error;

typedef struct cw_options {
    int32_t threads;      /* of the kinds that may use several; 1..256 */
    int32_t device_index; /* 0 on a CPU */
} cw_options;

/* What a run of a plan needs besides its operands. The caller allocates both with alloc. */
typedef struct cw_plan_size {
    uint64_t workspace_bytes; /* scratch, any content, not shared by two runs at once */
    uint64_t packed_bytes;    /* packed weights, 0 when the plan reads plain ones */
} cw_plan_size;

typedef struct cw_run {
    const cw_view* views; /* as many as the op has operands, in its order and shapes */
    int32_t view_count;
    int32_t scalar_count;
    const double* scalars;
    void* workspace;
    const void* packed; /* what pack wrote from this version of the weights; NULL: use the view */
} cw_run;

typedef enum cw_direction { CW_TO_DEVICE = 0, CW_FROM_DEVICE = 1, CW_ON_DEVICE = 2 } cw_direction;
typedef enum cw_stream_action { CW_STREAM_OPEN = 0, CW_STREAM_WAIT = 1, CW_STREAM_CLOSE = 2 } cw_stream_action;
typedef enum cw_event_action {
    CW_EVENT_OPEN = 0,
    CW_EVENT_RECORD = 1,      /* on the stream */
    CW_EVENT_STREAM_WAIT = 2, /* the stream waits for the event */
    CW_EVENT_HOST_WAIT = 3,   /* the calling thread does */
    CW_EVENT_CLOSE = 4
} cw_event_action;

/* The table. Every function that can fail returns a cw_status and fills *error. A NULL stream is the device's own, on
 * which work is done in order; on a CPU all work is done when the call returns, and streams and events are formalities.
 * threads: open and close from one thread; alloc, free and copy from any; prepare, size, pack, drop from the trainer
 * thread, or from any thread for streaming kinds, on a device that this thread opened; run as each kind says. */
typedef struct cw_backend {
    int32_t abi;      /* CW_ABI */
    const char* name; /* "reference", "cpu", "cuda" */

    cw_status (*open)(const cw_options* options, cw_device** device, cw_error* error);
    void (*close)(cw_device* device);
    /* All that decides bits: "cpu onednn-2.6.3 avx512 caches=32+512+1024 threads=1" (KiB a level, of one core).
     * Valid until close. */
    const char* (*signature)(const cw_device* device);

    /* 64-byte aligned, content undefined. bytes may be 0: *memory is then a pointer that free accepts. */
    cw_status (*alloc)(cw_device* device, uint64_t bytes, void** memory, cw_error* error);
    void (*free)(cw_device* device, void* memory);
    cw_status (*copy)(cw_device* device, cw_stream* stream, void* to, const void* from, uint64_t bytes,
                      cw_direction direction, cw_error* error);
    cw_status (*stream)(cw_device* device, cw_stream_action action, cw_stream** stream, cw_error* error);
    cw_status (*event)(cw_device* device, cw_event_action action, cw_stream* stream, cw_event** event, cw_error* error);

    /* errors: CW_INVALID, CW_UNSUPPORTED, CW_OUT_OF_MEMORY, CW_FAILED. The op is copied. */
    cw_status (*prepare)(cw_device* device, const cw_op* op, cw_plan** plan, cw_error* error);
    cw_plan_size (*size)(const cw_plan* plan);
    /* Writes the packed form of the plan's weights; nothing to do when packed_bytes is 0. */
    cw_status (*pack)(cw_plan* plan, cw_stream* stream, const cw_view* weights, void* packed, cw_error* error);
    /* Never allocates, never synchronises. The views have been checked against the op by the caller. */
    cw_status (*run)(cw_plan* plan, cw_stream* stream, const cw_run* run, cw_error* error);
    void (*drop)(cw_plan* plan);
} cw_backend;

/* A plugin exports one function of this type, with this name and default visibility. */
typedef const cw_backend* (*cw_backend_entry)(void);
#define CW_BACKEND_ENTRY_NAME "causeway_backend"

#ifdef __cplusplus
}
#endif

#endif
