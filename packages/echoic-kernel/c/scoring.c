/* What is not a product of vectors: BM25 over rows and windows, scaling, and the highest scores. */
#include "kernel.h"

#include <math.h>
#include <string.h>

float round_to_steps(const float *values, size_t count, int most, int16_t *into)
{
    float largest = 0;
    for (size_t k = 0; k < count; k++) {
        if (!isfinite(values[k]))
            return NAN;
        largest = fabsf(values[k]) > largest ? fabsf(values[k]) : largest;
    }
    double steps = largest > 0 ? most / (double)largest : 0;
    for (size_t k = 0; k < count; k++)
        into[k] = (int16_t)lrint(values[k] * steps);
    return largest / (float)most;
}

/* A number that is greater for a higher score, and of equal ones for an earlier place. */
static uint64_t rank_of(float score, size_t place)
{
    uint32_t bits;
    score = score == 0 ? 0 : score; /* -0 is no less */
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~place;
}

static void sift(uint64_t *heap, size_t size, size_t at)
{
    uint64_t moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        child += child + 1 < size && heap[child + 1] < heap[child];
        if (heap[child] >= moved)
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

size_t highest(const float *scores, size_t size, size_t count, int64_t *kept)
{
    uint64_t *heap = (uint64_t *)(void *)kept; /* the least of what is kept comes first */
    size_t held = 0, i = 0;
    for (; i < size && held < count; i++)
        if (!isnan(scores[i]))
            heap[held++] = rank_of(scores[i], i);
    for (size_t at = held / 2; at-- > 0;)
        sift(heap, held, at);
    for (float least = -INFINITY; held && i < size; i++) {
        if (!(scores[i] >= least)) /* nor is NaN */
            continue;
        uint64_t rank = rank_of(scores[i], i);
        if (rank <= heap[0])
            continue;
        heap[0] = rank;
        sift(heap, held, 0);
        least = scores[(uint32_t)~heap[0]];
    }
    for (size_t last = held; last > 1; last--) {
        uint64_t least = heap[0];
        heap[0] = heap[last - 1];
        heap[last - 1] = least;
        sift(heap, last - 1, 0);
    }
    for (size_t at = 0; at < held; at++)
        kept[at] = (uint32_t)~heap[at];
    return held;
}

Scale scale_of(const float *scores, size_t size, float least, const uint8_t *ranged)
{
    enum { AT_ONCE = 8 };
    float lows[AT_ONCE], highs[AT_ONCE], low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < AT_ONCE; j++) {
        lows[j] = INFINITY;
        highs[j] = -INFINITY;
    }
    for (size_t i = 0; i + AT_ONCE <= size; i += AT_ONCE)
        for (size_t j = 0; j < AT_ONCE; j++) { /* NaN is neither below nor above anything */
            float score = !ranged || ranged[i + j] ? scores[i + j] : NAN;
            lows[j] = score < lows[j] ? score : lows[j];
            highs[j] = score > highs[j] ? score : highs[j];
        }
    for (size_t i = size - size % AT_ONCE; i < size; i++)
        if (!ranged || ranged[i]) {
            low = scores[i] < low ? scores[i] : low;
            high = scores[i] > high ? scores[i] : high;
        }
    for (size_t j = 0; j < AT_ONCE; j++) {
        low = lows[j] < low ? lows[j] : low;
        high = highs[j] > high ? highs[j] : high;
    }
    if (ranged && low > high)
        return scale_of(scores, size, least, NULL);
    float range = high - low + 1e-9f;
    return (Scale){low, 1.0f / (range > least ? range : least), ranged ? 1 : INFINITY};
}

void scale(const float *scores, size_t size, float least, const uint8_t *ranged, float *out)
{
    Scale by = scale_of(scores, size, least, ranged);
    for (size_t i = 0; i < size; i++)
        out[i] = scaled_by(by, scores[i]);
}

static float saturated(float count, float norm, float worth)
{
    return count / (count + norm) * worth;
}

/* best[place] = max(best[place], weight), and notes each place once. */
static void lift(float *best, int64_t *marked, int64_t *count, int64_t place, float weight)
{
    if (best[place] == 0 && weight > 0)
        marked[(*count)++] = place;
    if (weight > best[place])
        best[place] = weight;
}

/* Adds each best to `total` and takes it out again. */
static void settle(float *best, const int64_t *marked, int64_t count, double *total)
{
    for (int64_t i = 0; i < count; i++) {
        total[marked[i]] += best[marked[i]];
        best[marked[i]] = 0;
    }
}

static void raise_own(const Postings *said, int32_t term, float closeness, Room *room, int64_t *marked)
{
    for (int64_t p = said->bounds[term]; p < said->bounds[term + 1]; p++) {
        float norm = said->norm + said->lengths[said->row[p]] * said->norm_by_length;
        float weight = saturated(said->count[p], norm, said->worth[term]) * closeness;
        lift(room->best, room->marked, marked, said->row[p], weight);
    }
}

static void raise_window(const Postings *said, int32_t term, float closeness, Room *room, int64_t *marked)
{
    int64_t touched = 0;
    for (int64_t p = said->bounds[term]; p < said->bounds[term + 1]; p++) {
        int64_t slot = said->slot_of[said->row[p]], first = slot, last = slot;
        if (!said->count[p])
            continue;
        if (slot < said->head) {
            first = slot > said->reach ? slot - said->reach : 0;
            last = slot + said->reach < said->width ? slot + said->reach : said->width - 1;
        }
        for (int64_t near = first; near <= last; near++) {
            float part = slot < said->head ? said->count[p] * said->window[slot - near + said->reach] : said->count[p];
            if (room->around[near] == 0)
                room->touched[touched++] = near;
            room->around[near] += part;
        }
    }
    for (int64_t i = 0; i < touched; i++) {
        int64_t slot = room->touched[i];
        float count = (float)room->around[slot];
        float norm = said->norm + said->window_lengths[slot] * said->window_norm_by_length;
        room->around[slot] = 0;
        if (said->row_at[slot] >= 0) /* in a gap nobody sits */
            lift(room->best, room->marked, marked, said->row_at[slot], saturated(count, norm, said->worth[term]) * closeness);
    }
}

void score_words(const Postings *said, const int64_t *words, size_t count, const int32_t *term,
                 const float *closeness, Room *room, double *own, double *window)
{
    for (size_t word = 0; word < count; word++) {
        int64_t marked = 0;
        for (int64_t t = words[word]; t < words[word + 1]; t++)
            raise_own(said, term[t], closeness[t], room, &marked);
        settle(room->best, room->marked, marked, own);
        if (!window)
            continue;
        marked = 0;
        for (int64_t t = words[word]; t < words[word + 1]; t++)
            raise_window(said, term[t], closeness[t], room, &marked);
        settle(room->best, room->marked, marked, window);
    }
}
