"""How a text becomes words."""

from __future__ import annotations

from itertools import product

from echoic.text import cut


def test_a_text_is_cut_alike_with_and_without_letters_of_another_alphabet():
    every = "".join(map(chr, range(128)))
    for pair in product(every, every):
        text = "a{}{}b".format(*pair)
        assert cut(f"{text} я") == [*cut(text), "я"]
