"""The classes of secrets, and the words that announce each: "PIN", "the code you sent me", "sort code"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from echoic.text import END, START, any_of, word_lists

_LISTS = word_lists("echoic.secrets")

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


_DOORS = any_of(_LISTS["doors"])
_HARMLESS_CODE = any_of(_LISTS["harmless code"])
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
