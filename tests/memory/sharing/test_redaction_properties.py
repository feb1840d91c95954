"""What redaction promises of any text: found wherever it stands and however written; settled; no error."""

from __future__ import annotations

import phonenumbers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from echoic.memory.sharing import Redacted, redact
from echoic.secrets.checksums import card, iban, iban_length

unhurried = settings(deadline=None)
WORDS = "zero one two three four five six seven eight nine".split()
ANYTHING = st.text(st.characters(codec="utf-8"), max_size=40)
# A number ends where something stands that no number holds.
EDGES = st.sampled_from([" ", "\n", ", ", ": ", "; ", " (", "\t", "\u00a0", "\u2014 "])
INVISIBLE = st.sampled_from(["", "", "", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060"])
FRAGMENTS = st.sampled_from(
    """4111 1111 4471 555 0187 + @ . - _ / : ( ) [ ] [CARD] [PHONE] [EMAIL [KEY]] ana gmail com dot at
    underscore a b password pin is my the call number order born on march 3 1984 12 main street apartment
    4B one two double oh seven hundred thousand DE89 3704 0044 0532 0130 00 GB82WEST12345698765432
    https:// token= sk- key iban ssn 078 05 1120 passport X1234567 zip 90210 account ending in 4242 last
    four of \u200b \uff14 \u0664 \u2460 \u00df \ufdfa""".split()
)
SOUP = st.lists(st.tuples(FRAGMENTS, st.sampled_from(["", " ", ", ", "\n"])), max_size=25).map(
    lambda parts: "".join(fragment + gap for fragment, gap in parts)
)


def taken_out(redacted: Redacted, start: int, end: int) -> bool:
    taken = {place for finding in redacted.found for place in range(finding.start, finding.end)}
    return set(range(start, end)) <= taken


def digits_of(number: str, form: int) -> str:
    """The digits of a number in one of the forms in which they are typed or pasted."""
    return number.translate(
        {ord("0") + d: chr(base + d) for d in range(10) for base in [(0x30, 0xFF10, 0x660)[form]]}
    )


@st.composite
def card_numbers(draw: st.DrawFn) -> str:
    prefix, length = draw(
        st.sampled_from(
            [
                ("4", 16),
                ("51", 16),
                ("2221", 16),
                ("34", 15),
                ("37", 15),
                ("6011", 16),
                ("3528", 16),
                ("36", 14),
            ]
        )
    )
    body = prefix + draw(
        st.text("0123456789", min_size=length - len(prefix) - 1, max_size=length - len(prefix) - 1)
    )
    return next(body + check for check in "0123456789" if card(body + check))


@st.composite
def cards(draw: st.DrawFn) -> str:
    number = draw(card_numbers())
    groups = {16: (4, 4, 4, 4), 15: (4, 6, 5), 14: (4, 6, 4)}[len(number)]
    gap = draw(st.sampled_from(["", " ", "-", ".", " - ", "\u2011", "\u2009", "\u00a0"]))
    place, parts = 0, []
    for size in groups:
        parts.append(draw(INVISIBLE).join(number[place : place + size]))
        place += size
    return digits_of(gap.join(parts), draw(st.sampled_from([0, 0, 1, 2])))


@st.composite
def ibans(draw: st.DrawFn) -> str:
    country = draw(st.sampled_from(["DE", "GB", "FR", "NL", "ES", "IT", "NO", "MT", "IL", "CH", "BR", "LC"]))
    length = iban_length(country)
    assert length is not None
    account = draw(st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=length - 4, max_size=length - 4))
    check = 98 - int("".join(str(int(c, 36)) for c in f"{account}{country}00")) % 97
    number = f"{country}{check:02d}{account}"
    assert iban(number)
    size = draw(st.sampled_from([4, 100]))
    gap = draw(st.sampled_from([" ", "-", "\u00a0"]))
    written = gap.join(number[i : i + size] for i in range(0, length, size))
    return draw(st.sampled_from([written, written.lower()]))


@st.composite
def emails(draw: st.DrawFn) -> str:
    plain = "abcdefghijklmnopqrstuvwxyz0123456789"
    part = st.text(plain, min_size=1, max_size=12)
    local = draw(
        st.lists(part, min_size=1, max_size=3).map(lambda parts: draw(st.sampled_from("._-+")).join(parts))
    )
    host = ".".join(draw(st.lists(part, min_size=1, max_size=3)))
    end = draw(st.sampled_from(["com", "org", "co.uk", "museum", "d\u00fcsseldorf.de"]))
    at = draw(st.sampled_from(["@", "@", "\uff20", "\u200b@"]))
    return draw(st.sampled_from([f"{local}{at}{host}.{end}", f"{local}{at}{host}.{end}".upper()]))


# Seven digits at least: on a few islands numbers are shorter, and nothing tells them from a quantity.
REGIONS = sorted(
    region
    for region in phonenumbers.SUPPORTED_REGIONS
    if (number := phonenumbers.example_number_for_type(region, PhoneNumberType.MOBILE))
    and len(str(number.national_number)) >= 7
)


@st.composite
def phones(draw: st.DrawFn) -> tuple[str, str]:
    """A number of some country, and that country."""
    region = draw(st.sampled_from(REGIONS))
    kind = draw(st.sampled_from([PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE]))
    number = phonenumbers.example_number_for_type(region, kind)
    if number is None or len(str(number.national_number)) < 7:
        number = phonenumbers.example_number_for_type(region, PhoneNumberType.MOBILE)
    assert number is not None
    form = draw(st.sampled_from([PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164]))
    return phonenumbers.format_number(number, form), region


@unhurried
@given(ANYTHING, EDGES, cards(), EDGES, ANYTHING)
@example("", " ", "4111 1111 1111 1111", " ", "7")
@example("5", " ", "4111111111111111", ", ", "12/27")
def test_a_valid_card_is_found_in_any_surroundings_and_format(
    before: str, left: str, number: str, right: str, after: str
):
    text = f"{before}{left}{number}{right}{after}"
    start = len(before + left)
    assert taken_out(redact(text), start, start + len(number))


@unhurried
@given(ANYTHING, EDGES, ibans(), EDGES, ANYTHING)
def test_a_valid_iban_is_found_in_any_surroundings_and_format(
    before: str, left: str, number: str, right: str, after: str
):
    text = f"{before}{left}{number}{right}{after}"
    start = len(before + left)
    assert taken_out(redact(text), start, start + len(number))


@unhurried
@given(ANYTHING, EDGES, emails(), EDGES, ANYTHING)
def test_an_address_is_found_in_any_surroundings(
    before: str, left: str, address: str, right: str, after: str
):
    text = f"{before}{left}{address}{right}{after}"
    start = len(before + left)
    assert taken_out(redact(text), start, start + len(address))


@unhurried
@given(
    st.sampled_from(["", "call ", "Her cell: ", "fax is ", "ana, "]),
    phones(),
    st.sampled_from(["", " please", ".", ", or mail"]),
)
def test_an_international_number_of_every_country_is_found(before: str, phone: tuple[str, str], after: str):
    number, _ = phone
    text = f"{before}{number}{after}"
    assert taken_out(redact(text), len(before), len(before + number))


@unhurried
@given(phones())
def test_a_national_number_is_found_where_its_country_is_given(phone: tuple[str, str]):
    parsed = phonenumbers.parse(phone[0])
    national = phonenumbers.format_number(parsed, PhoneNumberFormat.NATIONAL)
    text = f"so {national} it is"
    assert taken_out(redact(text, region=phone[1]), 3, 3 + len(national))


@unhurried
@given(
    st.text("0123456789", min_size=10, max_size=10).filter(
        lambda digits: digits[0] not in "01" and len(set(digits)) > 1
    ),
    st.sampled_from(["call me at ", "my number is ", "her cell is "]),
    st.sampled_from([" ", ", ", " um "]),
    st.booleans(),
)
def test_a_number_said_digit_by_digit_is_found(digits: str, before: str, pause: str, oh: bool):
    said = [WORDS[int(digit)] if digit != "0" or not oh else "oh" for digit in digits]
    spoken = pause.join(" ".join(said[start:end]) for start, end in ((0, 3), (3, 6), (6, 10)))
    text = f"{before}{spoken} thanks"
    assert taken_out(redact(text), len(before), len(before + spoken))


@unhurried
@given(card_numbers(), st.sampled_from([" ", ", "]))
def test_a_card_said_digit_by_digit_is_found(number: str, pause: str):
    groups = [
        " ".join(WORDS[int(digit)] for digit in number[start : start + 4])
        for start in range(0, len(number), 4)
    ]
    spoken = pause.join(groups)
    text = f"so it is {spoken} thank you"
    assert taken_out(redact(text), 9, 9 + len(spoken))


@unhurried
@given(SOUP | ANYTHING | st.text(max_size=200))
@example("[EMAIL]@example.com")
@example("my password is my password is my password is x")
@example("12 12 [CARD] Main Street")
def test_redacting_again_changes_nothing(text: str):
    once = redact(text)
    again = redact(once.text)
    assert again.text == once.text
    assert again.found == ()


@unhurried
@given(SOUP | st.text(st.characters(), max_size=60), st.sampled_from([None, "DE", "us"]))
@example("\ud800 4111 1111 1111 1111 \udfff", None)
def test_findings_lie_in_the_text_in_order_and_apart_and_the_rest_is_kept(text: str, region: str | None):
    redacted = redact(text, region=region)
    place, kept = 0, ""
    for finding in redacted.found:
        assert place <= finding.start < finding.end <= len(text)
        kept += text[place : finding.start] + f"[{finding.kind}]"
        place = finding.end
    assert kept + text[place:] == redacted.text
