"""The classes of secrets, the words that announce each, and the value behind "my pin is".

A cue alone says nothing: "I forgot my PIN" has no value. Between a cue and its value stands a link: nothing,
a verb, or a short clause that ends in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from echoic.secrets import values
from echoic.secrets.values import Span
from echoic.text import END, START, any_of, word_lists
from echoic.text.analysis import STOP
from echoic.text.spoken_numbers import View

_WORDS = word_lists("echoic.secrets")

Secret = Literal[
    "card",
    "security code",
    "PIN",
    "password",
    "security answer",
    "recovery phrase",
    "one-time code",
    "API key",
    "account number",
    "ID number",
    "hidden key",
]
"""The classes of what is a secret."""
SECRETS: tuple[Secret, ...] = get_args(Secret)
WORDED: frozenset[Secret] = frozenset({"password", "security answer", "recovery phrase"})
"""The kinds of secrets whose value may be ordinary words."""


@dataclass(frozen=True, slots=True)
class Label:
    """One class and the words that announce it."""

    kind: Secret
    cue: re.Pattern[str]
    least: int = 3
    """Digits of a value, at least."""
    most: int = 12
    near: bool = True
    """Whether a value may follow the cue with nothing between."""


def _cue(words: str) -> re.Pattern[str]:
    return re.compile(START + any_of(words) + END, re.IGNORECASE)


_DOORS = any_of(_WORDS["doors"])
_HARMLESS_CODE = any_of(_WORDS["harmless code"])
_NUMBERED = r"(?=\s*(?:numbers?|nos?\b|nr\b|#))"
_NOT_OF_MONEY = re.compile(
    r"""\b(?:balance|amount|limit|total|charge[sd]?|fee|bill|cost|price|points|miles|rewards?|cash\s?back
    |zip(?:\s?code)?|post(?:al)?\s?code|address|name|year|date|spent|owe|interest|minimum|transaction|purchase|deposit|withdrawal|expiry|expires|expiration)\b
    (?:\s+\w+){0,4}\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_OTHER_CARD = re.compile(
    r"""\b(?:library|loyalty|member(?:ship)?|rewards?|business|birthday|greeting|post|report|score|sim
    |graphics|sound|memory|sd|boarding|punch|time|index|flash|yellow|red|calling|video|insurance|health
    |medicare|medicaid|id|identity|green|resident|student|staff|key|wild|oyster|bus|travel|christmas
    |thank[ -]you|nectar|clubcard|advantage)\s+$""",
    re.IGNORECASE | re.VERBOSE,
)
_OTHER_ACCOUNT = re.compile(
    r"""\b(?:customer|client|loyalty|member(?:ship)?|rewards?|frequent[ -]flyer|subscriber|utility
    |electric(?:ity)?
    |gas|water|energy|phone|mobile|twitter|instagram|facebook|x|email|e-mail|user|internet|broadband|cable)
    \s+$""",
    re.IGNORECASE | re.VERBOSE,
)
# "The passport office", "the card machine": the cue only says of what kind something else is.
_OF_SOMETHING = re.compile(
    r"""\s+(?:office|agency|services?|renewals?|applications?|appointments?|photos?|fees?|control|line|department
    |cent(?:er|re)|workers?|media|club|events?|machine|reader|payments?|company|games?|holders?|statements?
    |issuer|managers?|balance|team|executive|type|entry|pad|board|cushion|drop|mailer|review|of\s+conduct|base
    |editor|reset|policy|requirements?|rules?|strength|length|field|hints?|history)\b(?!\s*[:=])""",
    re.IGNORECASE | re.VERBOSE,
)
_LAST_FOUR = re.compile(
    r"\b(?:last|final)\s+(?:four|4|few|3|three|2|two)(?:\s+(?:digits|numbers))?\s+(?:of|on|from|for)?\s*"
    r"(?:(?:my|the|your|his|her|that|this|our)\s+)?(?:\w+\s+)?$",
    re.IGNORECASE,
)

_BACK = (
    r"(?:on|at)\s+the\s+(?:back|reverse|rear|front|other\s+side)"
    r"(?:\s+of\s+(?:the|my|that|it|this|your)(?:\s+\w+)?)?"
)
_SENDER = (
    r"(?:you|they|it|i|he|she|we|someone|the_(?:bank|app|system|website|text)|google|apple|amazon|paypal"
    r"|my_(?:bank|phone))"
)
_SENT = (
    r"(?:sent|texted|emailed|messaged|got|received|gave|sends?|text|get|generated|shows?|showed|came|arrived"
    r"|is_showing|given|just|see|have)"
)
_AUXILIARY = r"(?:guys_|people_|have_|had_|'ve_|just_|already_|was_|were_|did_|also_)"
_BY = (
    r"(?:_(?:me|us|to|my|phone|number|cell|mobile|email|just|now|earlier|over|across|through|by|via|in|on|a|the"
    r"|text|sms|message|minute|second|moment|ago|for|with|today))"
)
_PASSCODE = r"(?:pass)?(?:code|pin)s?"
_MEDIA = r"(?:text|sms|message|email|e-mail|app|authenticator|phone|notification|screen)"
LABELS: tuple[Label, ...] = (
    Label(
        "security code",
        _cue(
            rf"""cvv2?(?:_(?:code|number))? cvc2?(?:_(?:code|number))? c\.?v\.?[vc]\.? cid csc ccv
            c_v_[vc2](?:_(?:code|number))? see_v_v
            card_(?:verification|security)_(?:code|value|number) verification_(?:value|number) card_code
            security_(?:code|number|digits) security_code_(?:number)?
            (?:(?:the|those|these|last)_)?(?:last_)?(?:three|four|3|4)[\s-]+(?:digits?|numbers?)_{_BACK}
            (?:three|four|3|4)[\s-]+digits?_(?:security_)?(?:code|number)
            (?:(?:the|those|that)_)?(?:code|numbers?|digits)_{_BACK}
            (?:the|that)_back_(?:says|reads|number)
            (?:three|four|3|4)[\s-]digits(?=_(?:are|is)\b.{{0,40}}on_the_(?:back|front))"""
        ),
        most=10,
    ),
    Label(
        "one-time code",
        _cue(
            rf"""one[\s-]*time[\s-]*(?:pass)?(?:code|password|pin|passcode|key|number)
            otp(?:_(?:code|number))? o_t_p single[\s-]*use_(?:code|password|pin) tan_(?:code|number) mtan
            (?:two|2)[\s-]*(?:factor|step|fa)_(?:\w+_)?(?:code|number|token) 2fa(?:_(?:code|number))?
            (?:two|2)[\s-]*(?:factor|step|fa)(?=_(?:is|was|says))
            authenticator(?:_app)?(?=_(?:says|shows|is|reads))
            (?:verification|authentication|authenticator|authori[sz]ation|auth|sms|text(?:ed)?|login)_{_PASSCODE}
            (?:log[\s-]*in|sign[\s-]*in|reset|recovery|backup|activation|access_token|confirmation)_{_PASSCODE}
            (?:validation|mfa|totp|temporary|temp|whats\s?app|bank(?:ing)?_app)_{_PASSCODE}
            code_(?:\w+_)?(?:by|via|through|over|from)_(?:the_|my_|an_|your_)?{_MEDIA}
            (?:passcode|code|number)_(?:that_)?{_SENDER}_{_AUXILIARY}{{0,3}}{_SENT}{_BY}{{0,6}}
            (?:passcode|code)_(?:that_)?(?:was|just|which|i_was)_(?:\w+_){{0,2}}{_SENT}{_BY}{{0,6}}
            code_(?:in|on|from)_(?:the|my|your|that)_{_MEDIA}(?:_message)?"""
        ),
        least=4,
        most=10,
    ),
    Label(
        "PIN",
        _cue(
            rf"""pin(?:[\s-]*(?:codes?|numbers?))? pins(?=_(?:are|were)|[\s-]*(?:codes?|numbers?))
            p\.?i\.?n\.? pass[\s-]*codes? puk(?:_code)?
            {_DOORS}_(?:pass)?(?:code|combination|combo) access_code unlock(?:ing)?_code key[\s-]*code
            security_pin telephone_banking_(?:code|number) passkey_code disarm_code panic_code
            (?:lock|locker|safe|vault|padlock|bike_lock|suitcase)_(?:combination|combo)
            codes?(?=_(?:for|to|of|on)_(?:(?:the|my|our|his|her|their|your)_)?(?:[a-z]+_)?{_DOORS}{END})
            combination(?=_(?:for|to|of|on|is)|\s*[.,!]|\s*$)"""
        ),
    ),
    Label(
        "card",
        _cue(
            r"""(?:(?:credit|debit|payment|bank|visa|master|amex|prepaid|gift|corporate|company)\s?)*cards?_(?:numbers?|no\.?|digits|details)
            (?:credit|debit|visa|payment|bank|prepaid|master|amex|discover)_?cards? visa(?:_debit)?
            master\s?card
            amex american_express maestro cards?
            (?:long|16|sixteen|fifteen|15)[\s-]*(?:digit_)?(?:card_)?(?:number|digits)
            number_(?:on|across)_(?:the|my)_(?:front(?:_of_(?:the|my)_card)?|card)
            digits_on_(?:the|my)_(?:front|card)
            pan tarjeta kreditkarte(?:nnummer)? carte_(?:bancaire|bleue|de_credit) carta_di_credito
            cartao(?:_de_credito)?"""
        ),
        least=3,
        most=23,
    ),
    Label(
        "account number",
        _cue(
            r"""(?:(?:bank|checking|chequing|savings?|current|brokerage|joint|business|giro|isa|my)_)*(?:account|acct|acc)\.?_(?:numbers?|no\.?|nr|num)
            (?:bank|checking|chequing|savings?|current|brokerage|joint|business|giro)_accounts? accounts?
            acct a/c
            (?:aba_|bank_)?(?:routing|transit)(?:_(?:transit_)?(?:number|no\.?|code))? aba(?:_number)?
            sort[\s-]?code bank_code bsb(?:_number)? kontonummer iban(?:_number)?
            international_bank_account_number
            bankleitzahl numero_(?:de|di)_(?:cuenta|compte|conta|conto)"""
        ),
        least=4,
        most=34,
    ),
    Label(
        "ID number",
        _cue(
            r"""ssn(?:_number)? s\.?s\.?n\.? s_s_n social_security(?:_(?:number|no\.?|card))?
            social(?=_(?:is|was|number|:|it|ends|\d))
            itin national_(?:insurance|id|identity|identification)(?:_(?:number|no\.?|card))? ni_number
            nino_number my_nino (?-i:NINO)
            tax(?:payer)?_(?:id|file|identification)(?:_number)? (?-i:TIN) tin_(?:number|no\.?)
            aadhaa?r(?:_(?:number|card))? pan_card
            passports?(?:_(?:number|no\.?))? pasaporte passeport reisepass
            driv(?:er'?s?|ing)_licen[cs]e(?:_(?:number|no\.?))? licen[cs]e_number nhs(?:_number)?
            medicare(?:_(?:number|id|card))? medicaid(?:_(?:number|id|card))? teudat_zehut
            (?:government|state|citizen|resident|alien|military|voter|identity|id)_(?:id_)?(?:card_)?(?:number|no\.?)
            green_card_number health_card(?:_number)? n_i_n nin b_v_n bvn kennitala nric cedula
            cpr_number oib jmbg
            emirates_id iqama (?:personal|identity)_document pps(?:n|_n)?(?:_number)? hkid tfn
            social_insurance(?:_number)? sin_number (?-i:SIN) (?-i:CNP) my_sin hetu dni nie nif bsn nir
            last_(?:four|4)(?:_digits|_numbers)?_(?:of|on)_(?:(?:my|the|your|his|her)_)?(?:ssn|social(?:_security)?(?:_number)?)
            codice_fiscale steuer-?(?:id|nummer) cpf pesel personnummer curp rut"""
        ),
        least=4,
        most=34,
    ),
    Label(
        "API key",
        _cue(
            r"""api[\s\x5f-]?(?:key|token|secret) a_p_i_key
            (?:client|app|webhook|signing|shared|secret)[\s\x5f-](?:secret|key|token)
            (?:access|auth(?:entication|orization)?|bearer|refresh|session|private|encryption|signing|license|licence|product|ssh|deploy|personal_access)[\s\x5f-]?(?:key|token)s?
            secret_access_key token secret(?=\s*(?:[:=]|is\b))"""
        ),
    ),
    Label(
        "recovery phrase",
        _cue("(?:seed|recovery|backup|mnemonic|wallet)_(?:seed_)?(?:phrase|words?) mnemonic"),
    ),
    Label(
        "security answer",
        _cue(
            r"""mother'?s_maiden_name maiden_name (?:security|secret)_(?:question_)?answer
            memorable_(?:word|name|place|phrase|information|date)
            (?:security|secret)_(?:word|phrase|name) (?:safe|alarm|duress|code)_word verbal_(?:password|code)
            (?:security|secret)_question,?_(?:\w+_){0,3}?answer(?:_to_(?:it|that))?
            answer_(?:to|for|on)_(?:(?:my|the|your|that|this|our|his|her)_)?(?:security|secret|verification|challenge|recovery)(?:_question)?
            (?:security|secret|challenge)_question(?=[,:]?_(?:answer|is_\w+_(?:and|the_answer)))"""
        ),
    ),
    Label(
        "password",
        _cue(
            r"""pass[\s-]?words? pass[\s-]?phrases? passwd pwd pass(?=\s*[:=]) pw(?=\s*[:=]|\s+is\b)
            (?:wi-?\s?fi|network|router|hotspot)_(?:key|pass)
            contrasena mot_de_passe passwort kennwort senha wachtwoord parola_d'ordine
            (?:login|log-in|log_in)(?=_(?:details|credentials)_(?:is|are))"""
        ),
        most=64,
    ),
)
# Checked by itself: most codes are nobody's secret.
CODE = re.compile(
    rf"{START}(?P<what>[\w'-]{{1,40}}\s+|){any_of('(?:pass)?code kodigo codigo')}{END}", re.IGNORECASE
)
PLAIN_CODE = Label("one-time code", CODE, least=4, most=8)

_ENDING = re.compile(
    r"(?:\s+\w+){0,3}\s+(?:ending|ends|ended|finish(?:ing|es)|expires?|expiring|valid|last\s+(?:four|4))\b",
    re.IGNORECASE,
)


def harmless(label: Label, cue: re.Match[str], text: str) -> bool:
    """Whether the words around a cue say that no secret is meant."""
    if _OF_SOMETHING.match(text, cue.end()):
        return True
    before = text[max(0, cue.start() - 60) : cue.start()]
    if label.kind in {"card", "account number"}:
        named = re.search(r"number|no\b|iban|routing|sort|digits", cue[0], re.IGNORECASE) is not None
        bare = cue[0].lower().startswith(("card", "acc", "a/c"))
        other = _OTHER_CARD if label.kind == "card" else _OTHER_ACCOUNT
        return bool(
            (not named and _NOT_OF_MONEY.search(before))
            or (bare and other.search(before))
            or _LAST_FOUR.search(before)
            or _ENDING.match(text, cue.end(), cue.end() + 60)
        )
    if label.kind == "security code":
        return re.search(r"\bsocial\s+$", before, re.IGNORECASE) is not None
    if label.kind == "one-time code" and "confirmation" in cue[0].lower():
        return re.search(r"text|sms|sent|got|receiv|phone|app\b|email", text, re.IGNORECASE) is None
    return False


def is_plain_code(cue: re.Match[str]) -> bool:
    """Whether a "code" is not one of a kind that anybody may know."""
    before = cue.string[max(0, cue.start() - 40) : cue.start() + len(cue["what"])]
    if re.search(r"\b(?:error|fault|exit|status|warning)\b(?:\s+\w+){0,3}\s*$", before, re.IGNORECASE):
        return False
    return re.fullmatch(_HARMLESS_CODE + r"\s+", cue["what"], re.IGNORECASE) is None


_VERB = any_of(_WORDS["verb"])
_ACT = any_of("use enter try press dial say type")
_FILLER = any_of(
    r"""now still just currently actually also simply probably like uh um er erm hmm okay ok so well right
    the_word the_words set_to it's its it_is that's thats that_is that_would_be it_would_be here_it_is here
    let_me_see let's_see i_think i_believe the_number_is the_number number all_lowercase all_caps
    all_one_word lowercase one_second hang_on hold_on : - , = \x22 yeah yes sure you_know and_it's
    apparently basically literally supposed_to_be going_to_be gonna_be equal_to as_follows following
    the_following spelled spelt written"""
)
_STOPS_CLAUSE = any_of(_WORDS["stops clause"])
# The clause between cue and verb: whose it is, what it is for, where it came from.
_CLAUSE = rf"(?:\s+(?!{_STOPS_CLAUSE}\b|[0-9]{{3}})[\w'/.-]*[\w'/-]){{1,8}}?"
_SUFFIX = (
    r"(?:\s*(?:numbers?|no\.|nr\.?|#|digits|code|details))?"
    r"(?:,?\s*(?:the\s+)?last\s+(?:four|4)(?:\s+(?:digits|numbers))?)?"
)
_LINK = re.compile(
    rf"{_SUFFIX}(?:{_CLAUSE})??(?:\s*,?\s*\b(?:{_VERB}|{_ACT})(?![\w'])|\s*[:=](?!//)|\s*[\"']\s*:|\s*,(?=\s*(?:it|that)))"
    rf"(?:\s*(?:{_FILLER})(?![\w'])|\s*[:,=\"-](?!\d)){{0,6}}\s*",
    re.IGNORECASE,
)
_OWN_CLAUSE = (
    r"(?:\s+(?:for|to|of|on|at|in|with|from|that|which|you|i|we|they|he|she|over|by)\b"
    rf"(?:\s+(?!{_STOPS_CLAUSE}\b|{_VERB}\b)[\w'.-]*[\w'-]){{0,8}}?)"
)
_WORD_LINK = re.compile(
    rf"(?!\s*,\s*to\b)(?:{_OWN_CLAUSE})?(?:\s*,?\s*\b{_VERB}(?![\w'])|\s*[:=](?!//)|\s*[\"']\s*:)"
    rf"(?:\s*(?:{_FILLER})(?![\w'])|\s*[:,=-]){{0,6}}\s*",
    re.IGNORECASE,
)
_NEAR = re.compile(
    rf"{_SUFFIX}\s*[:=#\"',.?-]{{0,3}}(?:[.?!]\s+(?=it|that|here))?"
    rf"(?:\s*(?:{_FILLER})(?![\w'])|\s*[:,]){{0,4}}\s*",
    re.IGNORECASE,
)
_TIMES_BEFORE = re.compile(
    r"\b(?:(?<!punch )(?<!type )(?<!key )(?<!put )in|at|since|by|until|around|about|only|every|after"
    r"|before|room|year)\s+$",
    re.IGNORECASE,
)


def labelled(view: View) -> list[tuple[Secret, Span]]:
    """What is announced in a view, as class and stretch."""
    found = list(_all(view))
    # "the PIN of my card is 9021": a card's number is longer than what else is said of a card
    others = {span for kind, span in found if kind != "card"}
    return [(kind, span) for kind, span in found if kind != "card" or span not in others]


# "My old PIN was 1998 and the new one is 2047", "… so I changed it to 2047".
_AGAIN = re.compile(
    r"\b(?:(?:the|my)\s+(?:new|old|other|second|first|current|previous)\s+one\s*(?:is|was|'s|:)"
    r"|now\s+it(?:'s|\s+is)|it(?:'s|\s+is)\s+now|(?:changed?|updated?|set|reset)\s+it\s+to)\s+(?:be\s+)?",
    re.IGNORECASE,
)


def _again(label: Label, text: str, place: int) -> Iterator[Span]:
    """More values of what was announced once."""
    for link in _AGAIN.finditer(text, place, place + 160):
        if label.kind in WORDED:
            start = link.end()
            found = values.quoted(text, start) or values.no_word(text, start) or values.phrase(text, start)
        else:
            found = _number(label, text, link.end())
        if found is not None:
            yield found


def _all(view: View) -> Iterator[tuple[Secret, Span]]:
    text = view.text
    for label in LABELS:
        for cue in label.cue.finditer(text):
            if harmless(label, cue, text):
                continue
            found = _behind(label, text, cue.end()) or _before(label, text, cue.start())
            if found is not None:
                yield _named(label.kind, text, found), found
            for more in _again(label, text, cue.end()):
                yield label.kind, more
    for cue in CODE.finditer(text):
        found = None if not is_plain_code(cue) else _behind(PLAIN_CODE, text, cue.end())
        found = found or (_before(PLAIN_CODE, text, cue.start()) if is_plain_code(cue) else None)
        if found is not None:
            yield "one-time code", found


def _behind(label: Label, text: str, place: int) -> Span | None:
    """The value behind a cue that ends at `place`."""
    end = min(len(text), place + 160)
    if label.kind in WORDED:
        return _words_behind(label, text, place, end)
    starts = [found.end() for found in (_LINK.match(text, place, end),) if found]
    if label.near and (near := _NEAR.match(text, place, end)):
        starts.append(near.end())
    for start in starts:
        found = _number(label, text, start)
        if found is not None:
            return found
    return None


def _number(label: Label, text: str, start: int) -> Span | None:
    """The value of `label` that begins at `start`, where it is no ordinary words."""
    if _TIMES_BEFORE.search(text[max(0, start - 14) : start]):
        return None
    quoted = values.quoted(text, start)
    if quoted is not None and any(c.isdecimal() for c in text[slice(*quoted)]):
        return quoted
    found: Span | None
    match label.kind:
        case "API key":
            found = quoted or values.token(text, start)
        case "ID number":
            found = values.document(text, start, label.least)
        case _:
            found = values.digits(text, start, label.least, label.most) or _lettered(label, text, start)
    return found


def _lettered(label: Label, text: str, start: int) -> Span | None:
    """A code or an account with letters in it."""
    if label.kind == "account number":
        return values.document(text, start, 8)
    if label.kind == "one-time code" and label is not PLAIN_CODE:
        return values.code(text, start, label.least, label.most)
    odd = values.no_word(text, start) if label.kind == "PIN" else None
    return odd if odd is not None and any(c.isdecimal() for c in text[slice(*odd)]) else None


def _words_behind(label: Label, text: str, place: int, end: int) -> Span | None:
    start = next((f.end() for f in (_WORD_LINK.match(text, place, end),) if f), None)
    strict, most = True, 6
    if label.kind == "recovery phrase" or (label.kind == "password" and "phrase" in text[place - 6 : place]):
        strict, most = False, 24
    if start is None:
        near = _NEAR.match(text, place, end)
        at = near.end() if near else place
        found = values.quoted(text, at) or values.no_word(text, at) or values.digits(text, at, 3, 64)
        return found or _dictated(text, at) or _chosen(text, place, at)
    found = values.quoted(text, start) or values.digits(text, start, 3, 64)
    plain = values.phrase(text, start, most=most, strict=strict)
    if not strict and plain is not None and len(text[slice(*plain)].split()) < 3:
        plain = values.phrase(text, start, most=most)
    return _longer(found or values.no_word(text, start), plain)


_DICTATED_NOT = re.compile(
    any_of(_WORDS["dictated not"]) + END,
    re.IGNORECASE,
)


_FOR_WHAT = re.compile(r"(?:for|to)\s+(?:(?:the|my|our|this)\s+)?[\w-]+\s+", re.IGNORECASE)


def _dictated(text: str, place: int) -> Span | None:
    """Words right after a cue that end in a number: "wifi password bluebird seven"."""
    whose = _FOR_WHAT.match(text, place)
    place = whose.end() if whose else place
    if _DICTATED_NOT.match(text, place):
        return None
    found = values.phrase(text, place, most=3)
    if found is None:
        return None
    last = text[slice(*found)].rsplit(maxsplit=1)[-1].lower()
    return (
        found
        if len(text[slice(*found)].split()) > 1 and (last in values.SPELLED or last.isdecimal())
        else None
    )


_CHOOSES = re.compile(
    r"\b(?:make|making|use|using|choose|try|(?:log|sign)(?:ged|ging)?\s*in\s+with|in\s+with)\s+(?:the|my|a|this)\s+"
    r"(?:new\s+)?(?:[\w-]+\s+)?$",
    re.IGNORECASE,
)


def _chosen(text: str, cue_end: int, place: int) -> Span | None:
    """Words right after a cue in "make the password purple rain"."""
    begin = text.rfind(" ", 0, max(0, cue_end - 6)) + 1
    if not _CHOOSES.search(text[max(0, begin - 40) : begin]) or _DICTATED_NOT.match(text, place):
        return None
    return values.phrase(text, place, most=4)


def _longer(one: Span | None, other: Span | None) -> Span | None:
    if one is None or other is None:
        return one or other
    return one[0], max(one[1], other[1])


# -- "5173 is my pin", "bluebird seven is the password", "use 481902 as your code"

_IT_IS = r"(?:that's|thats|that\s+is|it's|its|it\s+is|which\s+is|is|was)"
_BACK_LINK = re.compile(
    rf"(?:(?:\s+[A-Za-z']+){{0,6}}?\s*[,.;-]\s*(?={_IT_IS}\b))?"
    rf"(?:\s+(?:on|for|to|from|of|at|in|over)\b(?:\s+[A-Za-z']+){{0,5}}?(?=\s+{_IT_IS}\b))?"
    rf"\s*,?\s*(?:(?:{_IT_IS}|'s|as|would\s+be|should\s+be|for|being|\()\s*)?"
    r"(?:(?:my|the|your|our|his|her|their|a|this|that)\s+)?"
    r"(?:(?!year|day|time|first|order|phone)[A-Za-z]+[\s-]+){0,3}",
    re.IGNORECASE,
)
_BACK_VERB = re.compile(rf"(?:\b{_IT_IS}(?!\w)|'s\b|\b(?:as|being)\b)", re.IGNORECASE)
_BACK_LEAD = re.compile(r"\b(?:it's|its|it\s+is|got|use|try|enter)\s+$", re.IGNORECASE)
_BACK_NUMBER = re.compile(r"[#*]?[A-Za-z]{0,3}-?[0-9][0-9A-Za-z]*(?:[ -][0-9A-Za-z]*[0-9][0-9A-Za-z]*)*[#*]?")


def _before(label: Label, text: str, place: int) -> Span | None:
    """The value in front of a cue that begins at `place`."""
    begin = max(0, place - 90)
    head = text[begin:place]
    if label.kind in WORDED:
        worded = _words_before(head)
        if worded is not None:
            return begin + worded[0], begin + worded[1]
        if odd := _ODD_BEFORE.search(head):
            return values.no_word(text, begin + odd.start(1))
    numbers = list(_BACK_NUMBER.finditer(head))
    if not numbers:
        return None
    last = numbers[-1]
    between, led = head[last.end() :], _BACK_LEAD.search(head, 0, last.start())
    if not _BACK_LINK.fullmatch(between) or not (led or _BACK_VERB.search(between)):
        return None
    start = begin + last.start()
    if _TIMES_BEFORE.search(text[max(0, start - 14) : start]):
        return None
    return _number_before(label, text, start)


def _number_before(label: Label, text: str, start: int) -> Span | None:
    if label.kind in WORDED:
        return values.no_word(text, start) or values.digits(text, start, 3, 64)
    if label.kind == "ID number":
        return values.document(text, start, label.least)
    read = values.code if label.kind in {"one-time code", "PIN"} else values.digits
    return read(text, start, max(label.least, 3), label.most)


_WORDS_BEFORE = re.compile(
    r"(?:^|[.,;:!?]\s*|\b(?:so|and|okay|ok|yeah|yes|um|uh|it's|its|use|put|try|well|think|believe)\s+)"
    r"(?P<value>(?:[^\s.,;:!?]+\s+){0,5}?[^\s.,;:!?]+)\s*,?\s+(?P<verb>is\s+|was\s+|that's\s+|thats\s+|as\s+|)"
    r"(?:my|the|our|his|her|their|your)\s+(?:[a-z0-9'-]+\s+){0,3}$",
    re.IGNORECASE,
)
_ODD_BEFORE = re.compile(
    r"(?<!\S)(\S{3,64})\s+(?:is|was|as)\s+(?:my|the|our|his|her|their|your)\s+(?:[a-z0-9'-]+\s+){0,3}$",
    re.IGNORECASE,
)
_LEADS_UP = re.compile(
    r"\b(?:yeah|so|okay|ok|um|uh|it's|its|it\s+is|yes|and|well|use|used|using|set|put|chose|picked|pick|with|have|try|should\s+be|would\s+be|must\s+be)\s+",
    re.IGNORECASE,
)
_NO_VALUE = frozenset(_WORDS["no value"].split())


def _words_before(head: str) -> Span | None:
    found = _WORDS_BEFORE.search(head)
    if found is None:
        return None
    start, led = found.start("value"), bool(_BACK_LEAD.search(head, 0, found.start("value")))
    for lead in _LEADS_UP.finditer(head, start, found.end("value")):  # what leads up to it is no part of it
        start, led = lead.end(), led or lead[0].lower().startswith(("it", "use"))
    if not found["verb"] and not led:
        return None
    value = head[start : found.end("value")].strip().lower().split()
    if not value or len(value) > 4 or _NO_VALUE & set(value) or values.phrase(" ".join(value), 0) is None:
        return None
    if any(word in STOP and word not in values.SPELLED for word in value):
        return None
    return start, found.end("value")


def _named(kind: Secret, text: str, span: Span) -> Secret:
    """A code is called by how long it is where the cue fits two."""
    if kind == "security code" and sum(c.isdecimal() for c in text[slice(*span)]) > 4:
        return "one-time code"
    return kind
