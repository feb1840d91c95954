"""Every check accepts numbers its issuer or a standard publishes as examples, and refuses a changed digit."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from echoic.secrets import checksums

# Example numbers from issuers' documentation, standards and textbooks; none is given out to anybody.
PUBLISHED = [
    (checksums.luhn, "79927398713"),
    (checksums.verhoeff, "2363"),
    (checksums.verhoeff, "758722"),
    (checksums.mod11_10, "794623"),
    (checksums.card, "4111111111111111"),
    (checksums.card, "378282246310005"),
    (checksums.card, "30569309025904"),
    (checksums.card, "6011111111111117"),
    (checksums.card, "3530111333300000"),
    (checksums.iban, "DE89370400440532013000"),
    (checksums.iban, "GB82WEST12345698765432"),
    (checksums.iban, "MT84MALT011000012345MTLCAST001S"),
    (checksums.uk_nhs, "9434765919"),
    (checksums.es_dni, "12345678Z"),
    (checksums.es_dni, "X1234567L"),
    (checksums.it_codice_fiscale, "RSSMRA85T10A562S"),
    (checksums.fr_nir, "295109912611193"),
    (checksums.fr_nir, "253072B07300470"),
    (checksums.de_tax_id, "36574261809"),
    (checksums.il_teudat_zehut, "039337423"),
    (checksums.in_aadhaar, "234123412346"),
    (checksums.br_cpf, "11144477735"),
    (checksums.nl_bsn, "111222333"),
    (checksums.be_national, "85073003328"),
    (checksums.pl_pesel, "44051401359"),
    (checksums.pt_nif, "123456789"),
    (checksums.ch_ahv, "7569217076985"),
    (checksums.at_svnr, "1237010180"),
    (checksums.ie_pps, "1234567T"),
    (checksums.se_personnummer, "8112289874"),
    (checksums.fi_hetu, "131052308T"),
    (checksums.no_fodselsnummer, "15108695088"),
    (checksums.ca_sin, "046454286"),
    (checksums.au_tfn, "123456782"),
    (checksums.mx_curp, "HEGG560427MVZRRL04"),
    (checksums.cl_rut, "123456785"),
    (checksums.ar_cuit, "20123456786"),
    (checksums.za_id, "8001015009087"),
    (checksums.kr_rrn, "9710139019902"),
    (checksums.cn_resident, "11010519491231002X"),
    (checksums.sg_nric, "S1234567D"),
    (checksums.tr_tckn, "10000000146"),
    (checksums.jp_my_number, "123456789018"),
    (checksums.ro_cnp, "1800101221144"),
    (checksums.vin, "1M8GDM9AXKP042788"),
]


@pytest.mark.parametrize(("check", "number"), PUBLISHED, ids=lambda value: getattr(value, "__name__", value))
def test_a_published_number_is_accepted(check, number):
    assert check(number)


@pytest.mark.parametrize(("check", "number"), PUBLISHED, ids=lambda value: getattr(value, "__name__", value))
def test_a_changed_digit_is_refused_at_almost_every_place(check, number):
    changed = [
        number[:place] + str((int(digit) + 1) % 10) + number[place + 1 :]
        for place, digit in enumerate(number)
        if digit.isdecimal()
    ]
    accepted = [other for other in changed if check(other)]
    assert len(accepted) <= len(changed) // 5, accepted


@settings(deadline=None)
@given(st.text("0123456789", min_size=2, max_size=30), st.integers(0, 29), st.integers(1, 9))
def test_luhn_and_verhoeff_see_every_single_wrong_digit(digits, place, by):
    assume(place < len(digits))
    wrong = digits[:place] + str((int(digits[place]) + by) % 10) + digits[place + 1 :]
    for check in (checksums.luhn, checksums.verhoeff):
        assert not (check(digits) and check(wrong))


@settings(deadline=None)
@given(st.text("0123456789", min_size=2, max_size=30), st.integers(0, 28))
def test_verhoeff_sees_every_two_neighbours_changed_about(digits, place):
    assume(place + 1 < len(digits) and digits[place] != digits[place + 1])
    wrong = digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]
    assert not (checksums.verhoeff(digits) and checksums.verhoeff(wrong))


@pytest.mark.parametrize("number", ["000000000", "666451234", "123006789", "123450000", "900451234"])
def test_social_security_numbers_never_given_out_are_refused(number):
    assert not checksums.us_ssn(number)


@pytest.mark.parametrize("number", ["078051120", "987654321"])
def test_social_security_numbers_and_itins_are_accepted(number):
    assert checksums.us_ssn(number)


@pytest.mark.parametrize("number", ["QQ123456C", "BG123456A", "FA123456A", "AO123456A"])
def test_insurance_prefixes_never_given_out_are_refused(number):
    assert not checksums.uk_nino(number)


@pytest.mark.parametrize(
    "number", ["4111111111111", "9999999999999995", "411111111111111", "0000000000000000"]
)
def test_what_no_issuer_gives_out_is_no_card(number):
    assert not checksums.card(number)


@pytest.mark.parametrize(
    "text", ["", "XX00", "DE89", "DE8937040044053201300\u00e9", "de89370400440532013000"]
)
def test_what_is_not_even_shaped_like_an_iban_is_refused_without_raising(text):
    assert not checksums.iban(text)
