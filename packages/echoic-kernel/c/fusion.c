/* The two looks of `blend` in echoic.ranking.fusion, where each step is explained. */
#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int begin_looks(Looks *looks, const Fusion *fusion)
{
    size_t rows = fusion->rows, most = fusion->sources < rows ? fusion->sources : rows;
    size_t firsts = fusion->limit > fusion->candidates ? fusion->limit : fusion->candidates;
    firsts = firsts < rows ? firsts : rows;
    size_t looked = (fusion->candidates < rows ? fusion->candidates : rows) + most;
    looks->fused = calloc(2 * rows + 1, sizeof *looks->fused);
    looks->home = calloc(rows + 1, sizeof *looks->home);
    looks->at = calloc(2 * rows + 1, sizeof *looks->at);
    looks->first = calloc(firsts + 2 * looked + 1, sizeof *looks->first);
    looks->late = calloc(3 * looked + 1, sizeof *looks->late);
    looks->shown = calloc(2 * firsts + most + 1, sizeof *looks->shown);
    if (!looks->fused || !looks->home || !looks->at || !looks->first || !looks->late || !looks->shown)
        return 0;
    looks->by_place = looks->fused + rows;
    looks->shown_at = looks->at + rows;
    looks->looked = looks->first + firsts;
    looks->sorted = looks->looked + looked;
    looks->again = looks->late + looked;
    looks->key = looks->again + looked;
    looks->members = looks->shown + firsts;
    return 1;
}

void end_looks(Looks *looks)
{
    free(looks->fused);
    free(looks->home);
    free(looks->at);
    free(looks->first);
    free(looks->late);
    free(looks->shown);
}

static inline float weighed(float weight, float score)
{
    return weight != 0 ? weight * score : 0; /* what weighs nothing may be NaN */
}

/* The weighted sum of one row, without signals. */
static float weighed_parts(const Fusion *from, const float *weights, size_t row)
{
    float text = scaled_by(from->by_text, from->text[row]), meaning = scaled_by(from->by_meaning, from->meaning[row]);
    int keyed = from->keyed && from->keyed[row] != 0;
    if (keyed && !(text >= meaning || isnan(meaning)))
        text = meaning;
    float sum = weighed(weights[MEANING], meaning);
    sum += weighed(weights[OWN_MEANING], scaled_by(from->by_own, from->own[row]));
    sum += weighed(weights[TEXT], text);
    return keyed ? sum + weighed(weights[KEYED_MEANING], meaning) : sum;
}

static float known(float score)
{
    return isnan(score) ? -INFINITY : score;
}

static int ascending(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return one < other ? -1 : one > other;
}

/* By place and worth, what is not a number last; of equals the earlier row first. */
static int in_order(const void *a, const void *b)
{
    const Member *one = a, *other = b;
    float first = known(one->worth), second = known(other->worth);
    if (one->place != other->place)
        return one->place < other->place ? -1 : 1;
    if (first != second)
        return first > second ? -1 : 1;
    return one->row < other->row ? -1 : one->row > other->row;
}

/* Finds the home of each found memory, and scores places. */
static void share_places(Looks *looks, const Fusion *from)
{
    const float *fused = looks->fused;
    memcpy(looks->by_place, fused, from->rows * sizeof *fused);
    for (size_t i = 0; i < from->rows; i++)
        looks->home[i] = -1;
    for (size_t p = 0; p < from->sources; p++) {
        int64_t turn = from->turn[p], *home = &looks->home[from->memory[p]];
        float score = known(fused[turn]), best = *home < 0 ? -INFINITY : known(fused[*home]);
        if (!isnan(fused[from->memory[p]]) && (*home < 0 || score > best || (score == best && turn > *home)))
            *home = turn;
    }
    for (size_t i = 0; from->sources && i < from->rows; i++)
        if (looks->home[i] >= 0)
            looks->by_place[looks->home[i]] = fmaxf(looks->by_place[looks->home[i]], fused[i]);
    for (size_t i = 0; from->sources && i < from->rows; i++)
        if (looks->home[i] >= 0)
            looks->by_place[i] = NAN;
}

int look_first(Looks *looks, const Fusion *from)
{
    const float *weights = from->broad;
    const Scale by_text = from->by_text, by_meaning = from->by_meaning, by_own = from->by_own;
    int blind = 0;
    for (size_t i = 0; i < from->rows; i++) { /* as `weighed_parts`, so simple that a compiler takes many at once */
        float text = scaled_by(by_text, from->text[i]), meaning = scaled_by(by_meaning, from->meaning[i]);
        float own = scaled_by(by_own, from->own[i]);
        blind |= (text == text) & ((meaning != meaning) | (own != own));
        looks->fused[i] = weighed(weights[MEANING], meaning) + weighed(weights[OWN_MEANING], own) + weighed(weights[TEXT], text);
    }
    if (blind)
        return 0;
    for (size_t i = 0; from->keyed && i < from->rows; i++)
        if (from->keyed[i] != 0)
            looks->fused[i] = weighed_parts(from, weights, i);
    for (size_t s = 0; s < SIGNAL_COUNT; s++)
        for (size_t i = 0; from->signal[s] && weights[SIGNALS + s] != 0 && i < from->rows; i++)
            looks->fused[i] += weights[SIGNALS + s] * from->signal[s][i];
    for (size_t i = 0; i < from->rows; i++)
        looks->fused[i] = from->missed[i] ? NAN : looks->fused[i];
    share_places(looks, from);
    looks->firsts = highest(looks->by_place, from->rows, (size_t)(looks->looked - looks->first), looks->first);
    looks->places = looks->firsts < from->candidates ? looks->firsts : from->candidates;
    for (size_t i = 0; i < from->rows; i++)
        looks->at[i] = -1;
    for (size_t i = 0; i < looks->places; i++)
        looks->at[looks->first[i]] = (int32_t)i;
    memcpy(looks->looked, looks->first, looks->places * sizeof *looks->looked);
    looks->count = looks->places;
    for (size_t i = 0; from->sources && i < from->rows; i++) {
        int32_t place = looks->home[i] < 0 ? -1 : looks->at[looks->home[i]];
        if (place >= 0 && (size_t)place < looks->places && looks->at[i] < 0) {
            looks->looked[looks->count] = (int64_t)i;
            looks->at[i] = (int32_t)looks->count++;
        }
    }
    memcpy(looks->sorted, looks->looked, looks->count * sizeof *looks->sorted);
    qsort(looks->sorted, looks->count, sizeof *looks->sorted, ascending);
    return 1;
}

/* Raises each turn that is compared to the best memory learned from it. */
static void raise_turns(const Looks *looks, const Fusion *from, float *scores)
{
    for (size_t p = 0; p < from->sources; p++) {
        int32_t memory = looks->at[from->memory[p]], turn = looks->at[from->turn[p]];
        if (memory >= 0 && turn >= 0)
            scores[turn] = fmaxf(scores[turn], scores[memory]);
    }
}

/* Estimates what is not known of late interaction, as `_fair` does. */
static void be_fair(Looks *looks, const Fusion *from)
{
    enum { FEW = 8 };
    const double usual_slope = 0.65;
    double late = 0, broad = 0, late_apart = 0, broad_apart = 0;
    size_t there = 0, keyed = 0;
    float *before = looks->again;
    for (size_t i = 0; i < looks->count; i++) {
        int64_t row = looks->looked[i];
        /* a turn that no channel found is only included for its memory */
        before[i] = isnan(looks->fused[row]) ? looks->by_place[row] : looks->fused[row];
        keyed += from->keyed && from->keyed[row] > 0;
        there += !isnan(looks->late[i]);
        late += isnan(looks->late[i]) ? 0 : looks->late[i];
        broad += isnan(looks->late[i]) ? 0 : before[i];
    }
    if (there == looks->count && !keyed)
        return;
    late /= there ? (double)there : 1;
    broad /= there ? (double)there : 1;
    for (size_t i = 0; i < looks->count; i++)
        if (!isnan(looks->late[i])) {
            late_apart += (looks->late[i] - late) * (looks->late[i] - late);
            broad_apart += (before[i] - broad) * (before[i] - broad);
        }
    double slope = usual_slope;
    if (there >= FEW)
        slope = sqrt(late_apart / (double)there) / (sqrt(broad_apart / (double)there) + 1e-9);
    for (size_t i = 0; i < looks->count; i++) {
        double level = late + slope * (before[i] - broad);
        float expected = (float)(level < -1 ? -1 : level > 1 ? 1 : level);
        int under_key = from->keyed && from->keyed[looks->looked[i]] > 0;
        if (isnan(looks->late[i]) || (under_key && expected > looks->late[i]))
            looks->late[i] = expected;
    }
}

/* The rows of each place that is shown. */
static void find_members(Looks *looks, const Fusion *from)
{
    for (size_t i = 0; i < from->rows; i++)
        looks->shown_at[i] = -1;
    for (size_t i = 0; i < looks->shows; i++)
        looks->shown_at[looks->shown[i].row] = (int32_t)i;
    for (size_t i = 0; i < from->rows; i++) {
        int32_t place = looks->shown_at[i], at = looks->at[i];
        if (place < 0 && looks->home[i] >= 0)
            place = looks->shown_at[looks->home[i]];
        if (place >= 0)
            looks->members[looks->member_count++] = (Member){(size_t)place, (int64_t)i, at < 0 ? looks->fused[i] : looks->again[at]};
    }
    qsort(looks->members, looks->member_count, sizeof *looks->members, in_order);
}

void look_again(Looks *looks, const Fusion *from)
{
    const float *key = from->signal[KEY], *weights = from->close;
    size_t limit = from->limit < looks->firsts ? from->limit : looks->firsts;
    float lowest = INFINITY, least = INFINITY;
    for (size_t i = 0; key && i < looks->count; i++)
        looks->key[i] = key[looks->looked[i]];
    if (key)
        raise_turns(looks, from, looks->key);
    raise_turns(looks, from, looks->late);
    be_fair(looks, from);
    for (size_t i = 0; i < looks->count; i++) {
        size_t row = (size_t)looks->looked[i];
        float sum = weighed_parts(from, weights, row);
        for (size_t s = 0; s < SIGNAL_COUNT; s++)
            if (from->signal[s] && weights[SIGNALS + s] != 0)
                sum += weights[SIGNALS + s] * (s == KEY ? looks->key[i] : from->signal[s][row]);
        looks->again[i] = sum + weights[LATE] * looks->late[i];
    }
    for (size_t i = 0; i < looks->places; i++) {
        int64_t row = looks->looked[i];
        looks->shown[i] = (Member){0, row, looks->again[i]};
        lowest = looks->by_place[row] < lowest ? looks->by_place[row] : lowest;
        least = looks->again[i] < least ? looks->again[i] : least;
    }
    qsort(looks->shown, looks->places, sizeof *looks->shown, in_order);
    float behind = lowest - least + 1;
    for (size_t i = looks->places; i < limit; i++)
        looks->shown[i] = (Member){0, looks->first[i], looks->by_place[looks->first[i]] - behind};
    looks->shows = limit;
    if (from->sources)
        find_members(looks, from);
}
