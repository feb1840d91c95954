/* The arithmetic of ranking, without Python. Whoever calls has checked that every index is inside its array. */
#ifndef ECHOIC_KERNEL_H
#define ECHOIC_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define AXES 64  /* of a word piece: a signed byte each */
#define LANES 16 /* pieces of the question that are compared at once */

/* One set of instructions. All sets give the same bits. */
typedef struct {
    const char *name;
    int (*runs_here)(void);
    size_t few; /* a block of no more pieces of the question is laid out piece after piece; see `lay_out` */
    /* best[count]: the highest product of any of `pieces` word pieces (at least one) with each of the `count` pieces
       of the question, which `lay_out` put there. In best there is room for whole blocks; what is behind `count`
       means nothing. */
    void (*best_products)(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best);
    /* out[rows]: the product of each row of `width` 16-bit floats with the question. */
    void (*half_products)(const uint16_t *vectors, size_t rows, size_t width, const float *asked, float *out);
} Instructions;

extern const Instructions INSTRUCTIONS[]; /* the best first; the last one has no name */

/* Puts piece p of `count` of a question where `set` reads it in asked[blocks][AXES * LANES]: a block is
   [AXES / 2][LANES][2], or [LANES][AXES] if it has few pieces. */
void lay_out(const Instructions *set, const int16_t *axes, size_t p, size_t count, int16_t *asked);

/* Rounds `values` to steps of 1/most of the largest; returns the length of a step, NaN if some are not finite. */
float round_to_steps(const float *values, size_t count, int most, int16_t *into);

/* The `count` highest of scores, NaN left out: `kept` has their places, best first, of equals the earlier first.
   Returns how many there are. */
size_t highest(const float *scores, size_t size, size_t count, int64_t *kept);

/* (x - low) / (high - low), see `scaled` in echoic.ranking.fusion. */
typedef struct {
    float low, by, most;
} Scale;

static inline float scaled_by(Scale scale, float score)
{
    float between = (score - scale.low) * scale.by;
    return between > scale.most ? scale.most : between;
}

Scale scale_of(const float *scores, size_t size, float least, const uint8_t *ranged);
void scale(const float *scores, size_t size, float least, const uint8_t *ranged, float *out);

/* The terms of one place, and what BM25 needs to know of it. */
typedef struct {
    const int32_t *row;      /* [postings] */
    const uint8_t *count;    /* [postings] */
    const int64_t *bounds;   /* [terms + 1] */
    const float *worth;      /* [terms] inverse document frequency times how often it is asked for, times k1 + 1 */
    const int64_t *slot_of;  /* [rows] */
    const int32_t *row_at;   /* [width] */
    const float *lengths;    /* [rows] */
    const float *window_lengths; /* [width] */
    const float *window;     /* [2 reach + 1] what a word counts for the rows before and behind */
    int64_t head, width, reach;
    float norm, norm_by_length, window_norm_by_length;
} Postings;

/* Room for one call of `score_words`: all zero before and after it. */
typedef struct {
    double *around;   /* [width] */
    float *best;      /* [max(rows, width)] */
    int64_t *touched; /* [width] */
    int64_t *marked;  /* [max(rows, width)] */
} Room;

/* Adds to own[rows], and to window[rows] where it is given, for each word the weight of the best of its terms.
   words: where the terms of each word begin among `term` and `closeness`; [count + 1]. */
void score_words(const Postings *said, const int64_t *words, size_t count, const int32_t *term,
                 const float *closeness, Room *room, double *own, double *window);

/* ---- fusion: the two looks of `blend` in echoic.ranking.fusion ---- */

/* The weights, in the order in which they are added up; late interaction comes last. */
enum { LATE, MEANING, OWN_MEANING, TEXT, KEYED_MEANING, SIGNALS, KEY = 2, SIGNAL_COUNT = 9, WEIGHT_COUNT = SIGNALS + SIGNAL_COUNT };

/* What is weighed. */
typedef struct {
    size_t rows, limit, candidates;
    const float *text, *meaning, *own; /* [rows], as the following */
    const float *keyed, *signal[SIGNAL_COUNT]; /* NULL where no row has it */
    const uint8_t *missed;
    Scale by_text, by_meaning, by_own;
    const float *broad, *close; /* [WEIGHT_COUNT] */
    size_t sources; /* pairs of a memory and a turn that it was learned from */
    const int64_t *memory, *turn;
} Fusion;

/* A row of a hit. */
typedef struct {
    size_t place;
    int64_t row;
    float worth;
} Member;

/* The state of one fusion. */
typedef struct {
    float *fused, *by_place; /* [rows] the first scores of rows and of places; NaN where there is none */
    int64_t *home;           /* [rows] of a found memory the best of its turns, whose place it shares; else -1 */
    int32_t *at;             /* [rows] where it is in `looked`, else -1 */
    int32_t *shown_at;       /* [rows] likewise in `shown` */
    int64_t *first;          /* the first places */
    int64_t *looked;         /* the rows to compare closely: `candidates` of these, and the memories that share one */
    int64_t *sorted;         /* the same, ascending */
    float *late, *again, *key; /* [looked] */
    Member *shown, *members;   /* the places to show, and all of their rows */
    size_t firsts, places, count, shows, member_count;
} Looks;

/* Makes room for `fusion`; 0 without memory for it. */
int begin_looks(Looks *looks, const Fusion *fusion);
void end_looks(Looks *looks);

/* The first scores, and what is to be compared; 0 where words are to stand in for a vector. */
int look_first(Looks *looks, const Fusion *fusion);

/* The second scores, by late, and the places to show with their members, each best first. */
void look_again(Looks *looks, const Fusion *fusion);

#endif
