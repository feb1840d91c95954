"""Telephone audio: mu-law to the bit, and no tone that was never there."""

from __future__ import annotations

import hashlib
import warnings

import numpy as np
import pytest

from echoic.adapters.twilio.media import SILENCE, Resampler, mulaw_decode, mulaw_encode, pcm_of, samples_of

EVERY_CODE = bytes(range(256))
ENCODED = "81d633c9e6972a18c74a58720b96cb8ca0bdd096d4060b646dd708c3b846019a"
DECODED = "3dab54339e520bb2c924826e3b72a917a2b612e9fd12fc867500f1d983a75827"
EVERY_SAMPLE = np.arange(-32768, 32768, dtype=np.int32).astype(np.int16)


def _segments():
    """ITU-T G.711 (1988), table 2a/2b: decoder values of the positive half, from 8031 down, at 14 bits."""
    values = []
    for segment in range(8):
        values += [((33 + 2 * step) << segment) - 33 for step in range(16)]
    return values


def test_every_code_decodes_to_the_value_of_the_standard():
    positive = np.array(_segments()) * 4  # 14 bits of the standard in 16
    decoded = mulaw_decode(EVERY_CODE)
    assert decoded[0x80:][::-1].tolist() == positive.tolist()
    assert decoded[:0x80][::-1].tolist() == (-positive).tolist()


def test_every_sample_and_code_is_as_the_reference_implementation_has_it():
    # the tables of CPython's audioop (3.12), by their digests: it is gone from later Pythons
    assert hashlib.sha256(mulaw_encode(EVERY_SAMPLE)).hexdigest() == ENCODED
    assert hashlib.sha256(pcm_of(mulaw_decode(EVERY_CODE))).hexdigest() == DECODED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audioop = pytest.importorskip("audioop")
    assert mulaw_encode(EVERY_SAMPLE) == audioop.lin2ulaw(EVERY_SAMPLE.tobytes(), 2)
    assert pcm_of(mulaw_decode(EVERY_CODE)) == audioop.ulaw2lin(EVERY_CODE, 2)


def test_what_was_decoded_encodes_to_the_same_code():
    again = mulaw_encode(mulaw_decode(EVERY_CODE))
    # the code has two zeros, 0x7f and 0xff, which are one value
    assert [code for code in EVERY_CODE if again[code] != code] == [0x7F]
    assert mulaw_encode(np.zeros(1, np.int16)) == SILENCE


def _tone(hz, rate, seconds=1.0, amplitude=10_000):
    return (amplitude * np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)).astype(np.int16)


def level_db(samples, amplitude=10_000):
    """Of the middle, against a tone of that amplitude."""
    middle = samples[len(samples) // 10 : -len(samples) // 10].astype(float)
    return 20 * np.log10(max(np.sqrt((middle**2).mean()), 1e-3) / (amplitude / np.sqrt(2)))


@pytest.mark.parametrize("rate", [16_000, 24_000])
@pytest.mark.parametrize("hz", [4_100, 4_500, 5_000, 6_000, 7_900])
def test_a_tone_the_telephone_cannot_carry_does_not_fold_into_what_is_heard(rate, hz):
    assert level_db(Resampler(rate, 8_000)(_tone(hz, rate))) < -65


def test_control_taking_every_third_sample_lets_the_alias_through_whole():
    assert level_db(_tone(5_000, 24_000)[::3]) > -1


@pytest.mark.parametrize(
    "rates", [(8_000, 16_000), (8_000, 24_000), (16_000, 8_000), (24_000, 8_000), (16_000, 24_000)]
)
@pytest.mark.parametrize("hz", [300, 1_000, 3_000])
def test_speech_passes_at_its_level(rates, hz):
    came, went = rates
    out = Resampler(came, went)(_tone(hz, came))
    assert abs(level_db(out)) < 0.1
    spectrum = np.abs(np.fft.rfft(out[2000:6000].astype(float) * np.hanning(4000)))
    assert abs(spectrum.argmax() * went / 4000 - hz) <= went / 4000
    image = np.r_[spectrum[: max(0, int(hz * 4000 / went) - 20)], spectrum[int(hz * 4000 / went) + 20 :]]
    assert image.max() < spectrum.max() / 1000, "nothing else is there"


@pytest.mark.parametrize("rates", [(8_000, 24_000), (24_000, 8_000), (8_000, 16_000), (24_000, 16_000)])
def test_how_a_stream_is_cut_changes_no_sample(rates):
    noise = np.random.default_rng(7).normal(0, 8_000, 4_800).clip(-32768, 32767).astype(np.int16)
    whole = Resampler(*rates)(noise)
    for size in (1, 7, 160, 481):
        stream = Resampler(*rates)
        cut = [stream(noise[at : at + size]) for at in range(0, len(noise), size)]
        assert np.array_equal(np.concatenate(cut), whole)


def test_the_end_of_a_stream_is_not_lost():
    click = np.zeros(800, np.int16)
    click[-1] = 20_000
    stream = Resampler(8_000, 24_000)
    body, tail = stream(click), stream.flush()
    assert abs(int(np.argmax(np.concatenate([body, tail]))) - (799 * 3 + stream.delay_s * 24_000)) <= 1


def test_the_loudest_sound_is_clipped_not_wrapped():
    square = np.where(np.arange(2_400) % 48 < 24, 32767, -32768).astype(np.int16)
    out = Resampler(24_000, 8_000)(square)
    assert out.max() == 32767
    assert out.min() == -32768


def test_half_a_sample_and_impossible_rates_are_refused():
    with pytest.raises(ValueError, match="even number"):
        samples_of(b"abc")
    for rate in (0, -8_000, 8_000.0):
        with pytest.raises(ValueError, match="whole numbers"):
            Resampler(rate, 8_000)
