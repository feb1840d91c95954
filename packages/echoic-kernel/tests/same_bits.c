/* Whether every set of instructions that this processor has gives what plain C gives, to the last bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../c/kernel.h"

enum { PIECES = 37, BLOCKS = 3, ROWS = 9, WIDEST = 400 };

static unsigned state = 12345;

static unsigned drawn(void)
{
    return state = state * 1664525u + 1013904223u;
}

int main(void)
{
    static int8_t said[PIECES * AXES];
    static int16_t drawn_pieces[BLOCKS * LANES][AXES], asked[BLOCKS * AXES * LANES];
    static uint16_t halves[ROWS * WIDEST];
    static float floats[WIDEST];
    static int32_t best[2][BLOCKS * LANES];
    static float products[2][ROWS];
    const Instructions *plain = INSTRUCTIONS;
    int compared = 0;

    while (plain[1].name)
        plain++;
    for (int round = 0; round < 200; round++) {
        for (size_t k = 0; k < sizeof said; k++)
            said[k] = round ? (int8_t)(drawn() >> 24) : -128;
        for (size_t k = 0; k < BLOCKS * LANES * AXES; k++)
            drawn_pieces[k / AXES][k % AXES] = round ? (int16_t)((int)(drawn() >> 16) - 32768) : 32767;
        for (size_t k = 0; k < sizeof halves / sizeof *halves; k++)
            halves[k] = (uint16_t)(drawn() >> 16) & 0xbbff; /* no more than 2, small ones and zeros among them */
        for (size_t k = 0; k < WIDEST; k++)
            floats[k] = (float)((int)(drawn() >> 8) - (1 << 23)) / (1 << 23);
        size_t pieces = 1 + drawn() % PIECES, width = drawn() % (WIDEST + 1), count = 1 + drawn() % (BLOCKS * LANES);
        memset(best[0], 0, sizeof best[0]);
        for (size_t p = 0; p < count; p++)
            lay_out(plain, drawn_pieces[p], p, count, asked);
        plain->best_products(said, pieces, asked, count, best[0]);
        plain->half_products(halves, ROWS, width, floats, products[0]);
        for (const Instructions *set = INSTRUCTIONS; set != plain; set++) {
            if (!set->runs_here())
                continue;
            memset(best[1], 0, sizeof best[1]);
            memset(products[1], 0, sizeof products[1]);
            for (size_t p = 0; p < count; p++)
                lay_out(set, drawn_pieces[p], p, count, asked);
            set->best_products(said, pieces, asked, count, best[1]);
            set->half_products(halves, ROWS, width, floats, products[1]);
            if (memcmp(best[0], best[1], count * sizeof **best) || memcmp(products[0], products[1], sizeof *products)) {
                printf("%s differs\n", set->name);
                return 1;
            }
            compared += round == 0;
            if (round == 0)
                printf("%s\n", set->name);
        }
    }
    return compared ? 0 : 2;
}
