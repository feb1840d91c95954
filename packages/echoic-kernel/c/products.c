/* Products, by whichever instructions the processor has. All sets of instructions agree to the last bit.

   The axes of word pieces are stored as bytes. The question's are rounded to 16 bits, which costs the same as 8 and
   loses nothing that shows in a score; sums of integers are exact. Rows of 16-bit floats are multiplied as 32-bit
   ones, in SUMS sums that every set adds up in the same order. */
#include "kernel.h"

#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define X86 1
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define NEON 1
#endif

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

#define BLOCK (AXES * LANES) /* numbers of a question that a block has */

enum { SUMS = 32, AT_ONCE = 4, AT_ONCE_AVX2 = 2, FEW = 12 };

INLINED float widened(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff, bits;
    if (exponent == 0) /* zero or too small to be normal: so many times 2^-24 */
        return (half & 0x8000 ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    bits = sign | (exponent == 0x1f ? 0xffu : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The sum of SUMS sums, once what is left of the row from `from` on was taken in. */
INLINED float added(float *sums, const uint16_t *row, const float *asked, size_t from, size_t width)
{
    for (size_t k = from, j = 0; k < width; k++, j++)
        sums[j] += widened(row[k]) * asked[k];
    for (size_t half = SUMS / 2; half; half /= 2)
        for (size_t j = 0; j < half; j++)
            sums[j] += sums[j + half];
    return sums[0];
}

static int always(void)
{
    return 1;
}

static void best_products_plain(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best)
{
    for (size_t b = 0; b < count; b += LANES, asked += BLOCK, best += LANES) {
        for (size_t p = 0; p < LANES; p++)
            best[p] = INT32_MIN;
        for (size_t u = 0; u < pieces; u++) {
            const int8_t *axes = said + u * AXES;
            int32_t sums[LANES] = {0};
            for (size_t j = 0; j < AXES / 2; j++)
                for (size_t p = 0; p < LANES; p++)
                    sums[p] += axes[2 * j] * asked[(j * LANES + p) * 2] + axes[2 * j + 1] * asked[(j * LANES + p) * 2 + 1];
            for (size_t p = 0; p < LANES; p++)
                best[p] = sums[p] > best[p] ? sums[p] : best[p];
        }
    }
}

static void half_products_plain(const uint16_t *vectors, size_t rows, size_t width, const float *asked, float *out)
{
    for (size_t i = 0; i < rows; i++, vectors += width) {
        float sums[SUMS] = {0};
        size_t k = 0;
        for (; k + SUMS <= width; k += SUMS)
            for (size_t j = 0; j < SUMS; j++)
                sums[j] += widened(vectors[k + j]) * asked[k + j];
        out[i] = added(sums, vectors, asked, k, width);
    }
}

#ifdef X86

#define AVX2 __attribute__((target("avx2,f16c")))

static int has_avx2(void)
{
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

AVX2 static void best_of_block(const int8_t *said, size_t pieces, const int16_t *asked, int32_t *best)
{
    __m256i low = _mm256_set1_epi32(INT32_MIN), high = low;
    for (size_t u = 0; u < pieces; u += AT_ONCE_AVX2) {
        /* two at a time, so that the question is read less often; the last one again where there is only one */
        int32_t pairs[AT_ONCE_AVX2][AXES / 2]; /* two axes of 16 bits each */
        __m256i first[AT_ONCE_AVX2], second[AT_ONCE_AVX2];
        for (size_t s = 0; s < AT_ONCE_AVX2; s++) {
            const int8_t *axes = said + (u + s < pieces ? u + s : pieces - 1) * AXES;
            for (size_t k = 0; k < AXES; k += 16) {
                __m128i bytes = _mm_loadu_si128((const __m128i *)(axes + k));
                _mm256_storeu_si256((__m256i *)(pairs[s] + k / 2), _mm256_cvtepi8_epi16(bytes));
            }
            first[s] = second[s] = _mm256_setzero_si256();
        }
        for (size_t j = 0; j < AXES / 2; j++) {
            const __m256i *question = (const __m256i *)(asked + j * LANES * 2);
            __m256i left = _mm256_loadu_si256(question), right = _mm256_loadu_si256(question + 1);
            for (size_t s = 0; s < AT_ONCE_AVX2; s++) {
                __m256i pair = _mm256_set1_epi32(pairs[s][j]);
                first[s] = _mm256_add_epi32(first[s], _mm256_madd_epi16(left, pair));
                second[s] = _mm256_add_epi32(second[s], _mm256_madd_epi16(right, pair));
            }
        }
        for (size_t s = 0; s < AT_ONCE_AVX2; s++) {
            low = _mm256_max_epi32(low, first[s]);
            high = _mm256_max_epi32(high, second[s]);
        }
    }
    _mm256_storeu_si256((__m256i *)best, low);
    _mm256_storeu_si256((__m256i *)(best + LANES / 2), high);
}

/* Sums of the products of a word piece with one of the question, four of them not added up yet. */
AVX2 INLINED __m128i part_sums(const __m256i *axes, const int16_t *asked)
{
    const __m256i *question = (const __m256i *)asked;
    __m256i sums = _mm256_madd_epi16(axes[0], _mm256_loadu_si256(question));
    for (size_t k = 1; k < AXES / 16; k++)
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(axes[k], _mm256_loadu_si256(question + k)));
    return _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
}

/* Of a block with few pieces of the question, one after another: otherwise a third of the lanes would be empty. */
AVX2 static void best_of_few(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best)
{
    for (size_t p = 0; p < LANES; p++)
        best[p] = INT32_MIN;
    for (size_t u = 0; u < pieces; u++, said += AXES) {
        __m256i axes[AXES / 16];
        for (size_t k = 0; k < AXES / 16; k++)
            axes[k] = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(said + 16 * k)));
        for (size_t p = 0; p < count; p += 4) {
            __m128i sums[4], *highest = (__m128i *)(best + p);
            for (size_t s = 0; s < 4; s++)
                sums[s] = p + s < count ? part_sums(axes, asked + (p + s) * AXES) : _mm_setzero_si128();
            sums[0] = _mm_hadd_epi32(_mm_hadd_epi32(sums[0], sums[1]), _mm_hadd_epi32(sums[2], sums[3]));
            _mm_storeu_si128(highest, _mm_max_epi32(_mm_loadu_si128(highest), sums[0]));
        }
    }
}

AVX2 static void best_products_avx2(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best)
{
    for (size_t b = 0; b < count; b += LANES, asked += BLOCK, best += LANES)
        if (count - b > FEW)
            best_of_block(said, pieces, asked, best);
        else
            best_of_few(said, pieces, asked, count - b, best);
}

AVX2 static void half_products_avx2(const uint16_t *vectors, size_t rows, size_t width, const float *asked, float *out)
{
    for (size_t i = 0; i < rows; i++, vectors += width) {
        __m256 part[SUMS / 8];
        float sums[SUMS];
        size_t k = 0;
        for (size_t s = 0; s < SUMS / 8; s++)
            part[s] = _mm256_setzero_ps();
        for (; k + SUMS <= width; k += SUMS)
            for (size_t s = 0; s < SUMS / 8; s++) {
                __m256 row = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(vectors + k + 8 * s)));
                part[s] = _mm256_add_ps(part[s], _mm256_mul_ps(row, _mm256_loadu_ps(asked + k + 8 * s)));
            }
        for (size_t s = 0; s < SUMS / 8; s++)
            _mm256_storeu_ps(sums + 8 * s, part[s]);
        out[i] = added(sums, vectors, asked, k, width);
    }
}

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

static int has_vnni(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
}

VNNI static void best_products_vnni(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best)
{
    for (size_t b = 0; b < count; b += LANES, asked += BLOCK, best += LANES) {
        __m512i highest = _mm512_set1_epi32(INT32_MIN);
        for (size_t u = 0; u < pieces; u += AT_ONCE) {
            /* some at a time, so that the question is read less often; the last one again where there are fewer */
            int32_t pairs[AT_ONCE][AXES / 2]; /* two axes of 16 bits each */
            __m512i sums[AT_ONCE];
            for (size_t s = 0; s < AT_ONCE; s++) {
                const int8_t *axes = said + (u + s < pieces ? u + s : pieces - 1) * AXES;
                for (size_t k = 0; k < AXES; k += 32) {
                    __m256i bytes = _mm256_loadu_si256((const __m256i *)(axes + k));
                    _mm512_storeu_si512(pairs[s] + k / 2, _mm512_cvtepi8_epi16(bytes));
                }
                sums[s] = _mm512_setzero_si512();
            }
            for (size_t j = 0; j < AXES / 2; j++) {
                __m512i question = _mm512_loadu_si512(asked + j * LANES * 2);
                for (size_t s = 0; s < AT_ONCE; s++)
                    sums[s] = _mm512_dpwssd_epi32(sums[s], question, _mm512_set1_epi32(pairs[s][j]));
            }
            for (size_t s = 0; s < AT_ONCE; s++)
                highest = _mm512_max_epi32(highest, sums[s]);
        }
        _mm512_storeu_si512(best, highest);
    }
}

VNNI static void half_products_vnni(const uint16_t *vectors, size_t rows, size_t width, const float *asked, float *out)
{
    for (size_t i = 0; i < rows; i++, vectors += width) {
        __m512 low = _mm512_setzero_ps(), high = low;
        float sums[SUMS];
        size_t k = 0;
        for (; k + SUMS <= width; k += SUMS) {
            __m512 row = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(vectors + k)));
            __m512 next = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(vectors + k + 16)));
            low = _mm512_add_ps(low, _mm512_mul_ps(row, _mm512_loadu_ps(asked + k)));
            high = _mm512_add_ps(high, _mm512_mul_ps(next, _mm512_loadu_ps(asked + k + 16)));
        }
        _mm512_storeu_ps(sums, low);
        _mm512_storeu_ps(sums + 16, high);
        out[i] = added(sums, vectors, asked, k, width);
    }
}

#endif

#ifdef NEON

static void best_products_neon(const int8_t *said, size_t pieces, const int16_t *asked, size_t count, int32_t *best)
{
    for (size_t b = 0; b < count; b += LANES, asked += BLOCK, best += LANES) {
        int32x4_t highest[4];
        for (size_t s = 0; s < 4; s++)
            highest[s] = vdupq_n_s32(INT32_MIN);
        for (size_t u = 0; u < pieces; u++) {
            const int8_t *axes = said + u * AXES;
            int32x4_t sums[4];
            for (size_t s = 0; s < 4; s++)
                sums[s] = vdupq_n_s32(0);
            for (size_t j = 0; j < AXES / 2; j++)
                for (size_t half = 0; half < 2; half++) {
                    int16x8x2_t question = vld2q_s16(asked + j * LANES * 2 + half * 16);
                    for (size_t odd = 0; odd < 2; odd++) {
                        int16_t axis = axes[2 * j + odd];
                        sums[2 * half] = vmlal_n_s16(sums[2 * half], vget_low_s16(question.val[odd]), axis);
                        sums[2 * half + 1] = vmlal_n_s16(sums[2 * half + 1], vget_high_s16(question.val[odd]), axis);
                    }
                }
            for (size_t s = 0; s < 4; s++)
                highest[s] = vmaxq_s32(highest[s], sums[s]);
        }
        for (size_t s = 0; s < 4; s++)
            vst1q_s32(best + 4 * s, highest[s]);
    }
}

static void half_products_neon(const uint16_t *vectors, size_t rows, size_t width, const float *asked, float *out)
{
    for (size_t i = 0; i < rows; i++, vectors += width) {
        float32x4_t part[SUMS / 4];
        float sums[SUMS];
        size_t k = 0;
        for (size_t s = 0; s < SUMS / 4; s++)
            part[s] = vdupq_n_f32(0);
        for (; k + SUMS <= width; k += SUMS)
            for (size_t s = 0; s < SUMS / 4; s++) {
                float32x4_t row = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(vectors + k + 4 * s)));
                part[s] = vaddq_f32(part[s], vmulq_f32(row, vld1q_f32(asked + k + 4 * s)));
            }
        for (size_t s = 0; s < SUMS / 4; s++)
            vst1q_f32(sums + 4 * s, part[s]);
        out[i] = added(sums, vectors, asked, k, width);
    }
}

#endif

const Instructions INSTRUCTIONS[] = {
#ifdef X86
    {"avx512vnni", has_vnni, 0, best_products_vnni, half_products_vnni},
    {"avx2", has_avx2, FEW, best_products_avx2, half_products_avx2},
#endif
#ifdef NEON
    {"neon", always, 0, best_products_neon, half_products_neon},
#endif
    {"plain", always, 0, best_products_plain, half_products_plain},
    {NULL, NULL, 0, NULL, NULL},
};

void lay_out(const Instructions *set, const int16_t *axes, size_t p, size_t count, int16_t *asked)
{
    size_t lane = p % LANES;
    asked += p / LANES * BLOCK;
    for (size_t k = 0; k < AXES; k++)
        asked[count - (p - lane) > set->few ? (k / 2 * LANES + lane) * 2 + k % 2 : lane * AXES + k] = axes[k];
}
