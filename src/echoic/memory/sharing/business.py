"""Statements that look like a business's, and statements that are personal.

`looks_like_business` finds what `evidence` does not understand and an operator should still be asked
about. A "we" may be a shop: what is said of it decides. No family says "we ship worldwide"; "we open at
nine" becomes a shop's with a second sign of trade beside it. A family speaks of certain things ("the
car", "our boiler"), a business of all things of a kind ("all boilers", "bikes"). What is `personal_in` a
text nobody may overrule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from echoic.memory.sharing import person_names
from echoic.memory.sharing.person_names import (
    LISTS,
    JudgedWord,
    listed,
    listed_stems,
    phrase_stems,
    stem,
    stems,
    unknown_names,
)
from echoic.text import any_of

_ADVERBS = """also only always usually currently generally normally now just proudly still never not do will
    can all both happily gladly typically fully even regularly"""
_STRONG_VERBS = LISTS["strong verbs"]
"""What a family hardly does, whatever the object."""
_SOFT_VERBS = LISTS["soft verbs"]
"""What families do as well."""
_COMPANY_TRAITS = LISTS["company traits"]
_HAVING = LISTS["having"]
_ORGANISATION = LISTS["organisation"]
"""What a business calls its own, and a family hardly, or not with these verbs behind it."""
_OF_BUSINESS = LISTS["of business"]
_YOU_MAY = """return exchange cancel order pay collect pick_up park reschedule upgrade rent hire track borrow
    renew try book reserve pre-order"""
_LASTING_VERBS = LISTS["lasting verbs"]
_SIGNS = (
    any_of(LISTS["signs"])
    + r"|(?:[$\u20ac\u00a3] ?[0-9][0-9.,]*|[0-9][0-9.,]* ?(?:[$\u20ac\u00a3]|dollars|euros|pounds|cents)"
    r"|(?:[a-z]+teen|[a-z]+ty|ten|twelve|hundred) (?:dollars|euros|pounds))"
    r" (?:a|an|per|each|for) (?:hour|day|night|week|month|year|person|head|guest|kilo|item|ticket|session)"
    r"|(?:[0-9]+|ten|twenty|fifty) ?(?:%|percent)"
    r"|[0-9]{1,2}(?::[0-9]{2})?(?: [ap]m)? (?:to|until|-) [0-9]{1,2}(?::[0-9]{2})?(?: [ap]m)?"
)
"""Signs of trade; each is weak alone. A bare amount is none: it may be somebody's bill."""
_SORTS = LISTS["sorts"]
"""What a business has many sorts of."""
_TRADES = (
    listed_stems(
        "trade_places",
        "trade_open",
        "trade_served",
        "trade_begun",
        "trade_goods",
        "trade_services",
        "trade_events",
        "trade_ruled",
        "trade_devices",
        "trades",
    )
) - stems("phone child children kid infant bag bike room ticket bed box people everyone anyone group age")
_OF_ONE = stems(
    "appointment order booking ticket lesson session plan bill reservation parcel delivery claim visit"
    " treatment"
)
"""What "every" and "any" may stand before in somebody's own affairs."""
_MASS = listed_stems("mass")
_WHERE_ONE_IS_SERVED = listed_stems("trade_places") - stems(
    "cleaner claim parking garage kitchen bathroom toilet garden park box ticket machine locker shelf"
    " stop bed key"
) | listed_stems("where one is served")
_KEY_OF_BUSINESS = listed_stems("key of business") - stems("general info access process")
"""What a key has that names a fact about a business."""

_SHORT: Final = (
    (re.compile(r"\b(we|you|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(we|you|they)'ve\b"), r"\1 have"),
    (re.compile(r"\b(we|you|they)'ll\b"), r"\1 will"),
    (re.compile(r"\b(there|that|it|what)'s\b"), r"\1 is"),
    (re.compile(r"\bcan't\b"), "can not"),
    (re.compile(r"\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(do|does|are|is|have|has|must)n't\b"), r"\1 not"),
)
_SINGULAR: Final = listed("singular")
_GROUP: Final = re.compile(
    r"\b(?:customers|clients|guests|visitors|members|passengers|patients|students|tenants|subscribers"
    r"|drivers|couriers|mechanics|technicians|instructors|teachers|groups|orders|items|products|anyone"
    r"|everyone|people|children|adults|branches|shops|stores)\b|^all [a-z]+s\b"
    r"|^(?:new|existing|registered) (?:members|customers|clients|patients|students|users)\b"
)
_ADV: Final = rf"(?: {any_of(_ADVERBS)})*"
_CERTAIN: Final = any_of("the our my his her their your this that those these him it")
_NOT_THERE: Final = (
    r"(?:our|my|his|her|their|your|this|that|these|those|him|it|the (?!ground|first|second|third|top|main"
    r"|high|corner|city|town|cent|old|same|full|north|south|east|west|edge))"
)
_SIGN: Final = re.compile(rf"(?<!\S)(?:{_SIGNS})(?!\S)")
_NUMBER: Final = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half)"
_DAYS: Final = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_OPENED: Final = (
    rf"(?: (?:at|from|until|till|between|by) (?:[0-9]|(?:{_NUMBER}|noon|midnight)\b)| [0-9]"
    rf"| (?:on |over |at )?(?:{_DAYS}s|weekdays|weekends|(?:bank |public )?holidays|christmas|easter)\b"
    rf"| (?:from )?{_DAYS} (?:to|through|until|-)| (?:every|each) [a-z]+| daily\b| late\b| early\b| all year"
    r"| year-round| around the clock| to the public| for (?:breakfast|brunch|lunch|dinner)"
    r"| (?:seven|six|five|7|6|5) days| twenty-four| in (?:winter|summer|january|august))"
)
# "our florists": several people of one trade, who are hardly a family's.
_PROFESSION: Final = (
    r"(?!(?:neighbou?rs|babysitters|gardeners|cleaners|builders|teachers|tenants|lodgers|visitors"
    r"|letters|dinners"
    r"|papers|numbers|members|fathers|mothers|sisters|brothers|daughters|toddlers|grand[a-z]+|step[a-z]+"
    r"|parents"
    r"|elders|lovers|managers|doctors|tumou?rs|flowers|computers|orders)\b)[a-z]{3,}(?:ists|ers|ors|ians"
    r"|ants)"
)
_LOT: Final = (
    r"(?:walk-ins|reservations|bookings|appointments|deposits?|a deposit|cash|cards?|contactless|commissions"
    r"|new (?:patients|clients|customers|pupils|students)|part-exchange|group bookings|special orders|cheques"
    r"|gift cards|vouchers|coupons|returns|refunds|repairs|alterations|deliveries|takeaway|take-away|takeout"
    r"|exchanges|home visits|home delivery|click and collect|emergency callouts|callouts|dogs|pets|walkers"
    r"|minimum order|school groups|large groups|groups|international orders|gift wrapping|custom orders)\b"
)
_STRONG: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # "we offer …", but not "we sell our house", "we accept that"
        (
            rf"\bwe(?={_ADV} {any_of(_STRONG_VERBS)}(?! (?:{_CERTAIN}|up|out|on|off|in"
            r"|(?:[a-z]+ )?(?:calls?|visitors|apologies|help|advice|gifts|prayers|condolences|thanks))\b))"
        ),
        (
            rf"\bwe(?={_ADV} (?:ship|deliver)(?: [a-z-]+){{0,3}} (?:worldwide|nationwide|internationally"
            rf"|abroad"
            r"|overseas|everywhere|anywhere|free|within|same-day|next-day|to (?:all|any|most|every|over|more)"
            r"|(?:in|within) [0-9a-z]+(?: to [0-9a-z]+)? (?:business |working )?(?:days|hours)|daily|every"
            rf"|on (?:{_DAYS}s|weekdays|weekends|public holidays|bank holidays)))"
        ),
        (
            rf"\bwe(?={_ADV} charge (?:[a-z]+ ){{0,3}}(?:[$\u20ac\u00a3]|[0-9]|no|nothing|extra|for"
            rf" (?:delivery|shipping|returns|parking|wifi|children)))"
        ),
        rf"\bwe(?= (?:are|stay|remain){_ADV} (?:open|closed){_OPENED})",
        rf"\bwe(?={_ADV} (?:open|close){_OPENED})",
        rf"\bwe(?= are{_ADV} (?:an? )?(?:[a-z-]+ ){{0,3}}{any_of(_COMPANY_TRAITS)}(?!\S))",
        (
            rf"\bwe(?= have{_ADV} (?:(?:[a-z0-9-]+ ){{0,3}}{any_of(_HAVING)}(?!\S)"
            r"|been (?:in business|open|trading) (?:since|for)\b))"
        ),
        rf"\bwe(?={_ADV} (?:take|do|require|allow|welcome|need){_ADV} {_LOT})",
        r"\bwe(?= (?:match|beat) (?:[a-z']+ )?(?:price|competitor|quote))",
        (
            rf"\bour(?= (?:[a-z0-9'-]+ ){{0,2}}?(?:{any_of(_ORGANISATION)}|{_PROFESSION})(?: (?:to|from|in"
            rf"|for|of) [a-z]+)?{_ADV} {any_of(_OF_BUSINESS)}"
            rf"(?! (?:{_NOT_THERE}|not|late|broken|ready|gone|wrong|on leave)\b)(?!\S))"
        ),
        (
            r"\bour(?= (?:website|app|webshop|online shop|shops|stores|branches|showrooms|helpline|hotline"
            r"|portal)"
            r"\b(?! (?:is|are|was|were|has|have|had)\b))"
        ),
        r"\bour(?= (?:[a-z-]+ )?(?:opening|business|visiting|trading) hours\b)",
        rf"(?<=\ball )our(?= (?:[a-z-]+ ){{0,2}}{any_of(_SORTS)}(?!\S))",
    )
)
_SOFT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bwe(?={_ADV} {any_of(_SOFT_VERBS)}(?! (?:{_CERTAIN}|a|an|at|in)\b))",
        r"\bwe(?= pay (?:the|return|all) (?:postage|shipping|return))",
        (
            r"\bwe(?= have (?:free )?(?:customer )?(?:parking|wifi|lockers|showers|toilets|tables|seats"
            r"|rooms)\b)"
        ),
        (
            rf"\byou(?= (?:can|may){_ADV} {any_of(_YOU_MAY)}(?! (?:the|our|my|his|her|their|this|that|these"
            rf"|those|him|it|me|us|tomorrow|tonight)\b))"
        ),
        (
            r"\byour(?= (?:first|next|new|whole|entire)? ?(?:month|order|purchase|visit|class|lesson"
            r"|trial|money"
            r"|membership) (?:is (?:free|half)|ships|comes with|must|can|counts|qualifies|earns|back)\b)"
        ),
        r"(?<=\bcall )us\b|(?<=\bcontact )us\b|(?<=\bemail )us\b|(?<=\bwith )us\b|(?<=\bfrom )us\b",
    )
)
_HOMELY: Final = re.compile(
    r"organic|vegan|vegetarian|renewable|online|daily|weekdays|weekends|students|adults|children|cards?|cash"
    r"|members|free|native|saturdays|sundays|mondays|monday to friday|[0-9:]+ (?:to|until|-) [0-9:]+"
    r"|elevator|employees|locations|windows|entrance|exit"
)
_AT_HOME: Final = re.compile(
    r"\b(?:home|fridge|freezer|drawer|cupboard|garden|basement|attic|cellar|sofa|wedding guests|landlord|flat"
    r"|in the car|to the car|school fair|the school|the church|the office|at work|sleep|viewing|come"
    r" (?:and|round|over)"
    r"|on holiday|the move|for two(?! (?:hours|days|weeks|adults))|marathons|cart)\b"
)
_PRONOUN: Final = re.compile(r"\b(?:we|we'd|us|our|you|you'd|your|they|their|them|who|it's)\b")
_ONCE: Final = re.compile(
    r"\b(?:on|this|next) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b(?! (?:to|through|and|-|until|evenings"
    r"|mornings|afternoons|nights))"
)
_THEIR_OWN: Final = re.compile(
    r"\byour (?:[a-z]+ ){0,2}(?:order|parcel|package|appointment|booking|reservation|delivery|table|room|car"
    r"|prescription|account|refund|flight|ticket)\b"
)
# Past, and still so: a business was founded and has been trading since.
_LASTING_PAST: Final = re.compile(
    r"\b(?:was|were)(?= (?:founded|established|incorporated|built|created|named|awarded|launched|set up)\b)"
)
_FOUNDED: Final = re.compile(
    r"^(?:[a-z0-9&.-]+ ){1,4}(?:was|were) (?:founded|established|incorporated|set up|launched)\b"
    r"|^(?:[a-z0-9&.-]+ ){1,4}is (?:headquartered|an? (?:[a-z-]+ ){0,3}"
    r"(?:company|agency|firm|retailer|manufacturer|brand|chain|charity|supplier)\b)"
    r"|^(?:founded|established|trading) (?:in|since)\b"
)
_TERSE: Final = re.compile(
    r"(?:only |all major )?(?:cash|cards?|visa|contactless)\b|free (?:returns|shipping|delivery|parking"
    r"|wifi|entry"
    r"|exchanges|samples|consultations?|repairs|installation|admission)\b"
    r"|(?:family-run|family-owned|independent|award-winning|certified|licensed) [a-z -]{0,40}"
    r"(?:store|shop|bakery|restaurant|hotel|agency|company|firm|clinic|salon|studio|garage|brewery|cafe)\b"
    rf"|(?:open|closed){_OPENED}"
)
_OFFERED_AS: Final = re.compile(
    r"the (?:basic|pro|standard|premium|family|starter|free|monthly|annual|business|deluxe|economy|plus)"
    r" (?:plan|package|membership|tier|subscription|version|edition|ticket|room|course)s? "
    r"|the (?:[a-z]+ ){1,2}[0-9]+[a-z]? (?:has|comes|weighs|supports|runs|lasts|includes|costs|charges"
    r"|fits|works) "
)
_SERVICE: Final = re.compile(
    r"(?:the )?(?:free |annual |monthly |family |day |season |gift |group |online |[0-9]+-day )?"
    rf"{any_of(LISTS['services'])} "
    r"(?:(?:can|may|must|will|do|does)(?: not)? )?"
    rf"(?:{any_of(LISTS['lasting verbs'])}|{any_of(LISTS['service verbs'])})"
    rf"(?! (?:{_NOT_THERE}|not|late|broken|ready|gone|wrong)\b)(?!\S)"
)
"""What only a business has: a trial, a warranty, a helpline."""
_WORKING_DAYS: Final = re.compile(
    rf"(?:within|in|takes?|after) (?:[0-9]+|{_NUMBER})(?: to (?:[0-9]+|{_NUMBER}))?"
    r" (?:working|business) (?:days?|hours?)\b"
)
_RULE: Final = re.compile(
    rf"(?!.*\b{_DAYS}|.* at the )"  # "visits are allowed on Sundays at the prison"
    r"(?:(?!the |our |my )(?:[a-z-]+ ){0,2}[a-z-]+s (?:are|must|may|can)"
    r"|no (?:[a-z-]+ ){1,2}(?:is|are))(?: not| also| only| always| never)? "
    r"(?:allowed|required|needed|included|permitted|accepted|refundable|transferable|be (?:booked|worn|shown"
    r"|presented|exchanged|returned|cancelled|kept on|on a lead|accompanied))\b"
)
"""What holds of all things of a kind: "bicycles are allowed", "no reservation is needed"."""
_THERE: Final = re.compile(r"there (?:is|are) ")
_HAS: Final = re.compile(
    rf"(?:has|have|sells?|offers?|serves?|stocks?|accepts?|provides?|takes) (?!(?:{_CERTAIN}|no|lost"
    rf"|been|a new)\b)"
)
_BREAK: Final = re.compile(
    r" (?:[,.;:]|for|in|on|at|behind|next|with|from|to|near|outside|between|every|after)\b| [,.;:]"
)
_OF: Final = re.compile(r" (?:of|to|for|in|on|at|with|from|over|under|between|near|behind|within|without) ")
_DETERMINED: Final = re.compile(r"^(?:the|a|an|all|every|each|any|no|most) ")
_VERB: Final = re.compile(rf"(?<!\S)(?:{any_of(_LASTING_VERBS)})(?!\S)")
_REACH: Final = frozenset(
    "call contact email text write message phone visit ask check book bring pay".split()
)
_ORDERED: Final = frozenset("tell remind ignore always never deliver ship leave note remember".split())
_OFFERED: Final = re.compile(
    r"\b(?:we|our [a-z ]+|the [a-z]+|clinic|pharmacy|vets|dentists|doctors)(?: \w+)? (?:treat|fill|fills"
    r"|offer"
    r"|offers|provide|provides|deliver|delivers|stock|stocks|sell|sells|accept|accepts|cover|covers|insure"
    r"|refill|refills|dispense|dispenses)\b"
)
_MANY_OF_HEALTH: Final = frozenset(
    "prescriptions injuries migraines surgeries medications therapists".split()
)
_HAPPENINGS: Final = re.compile(
    r"\b(?:weddings|funerals|anniversaries|engagements|honeymoons|divorces|twins|partners"
    r"|(?:wedding|anniversary|engagement|bridal|honeymoon|divorce|funeral|twin)"
    r" (?:cakes?|rings?|dresses|flowers|parties|suites?|packages?|law|services|rooms?|photos|photography))\b"
)


def personal_in(words: Sequence[JudgedWord]) -> str | None:
    """Why `words` are personal whatever a classifier thinks; None where they are not.

    Less strict than `about_a_person`, which also keeps what is only doubtful: what passes here is not
    shared without a classifier or an operator.
    """
    text = _plain(words)
    texts = text.split()
    if not texts:
        return "doubt"
    if not _SINGULAR.isdisjoint(texts):
        return "person"
    explained = _explained(text)
    if _PRONOUN.search(text) and _AT_HOME.search(text):
        return "person"
    if _PRONOUN.search(explained) or (_THEIR_OWN.search(text) and _ONCE.search(text)):
        return "person"
    return _of_somebody(text, explained) or ("name" if unknown_names(words, _is_company(text)) else None)


def looks_like_business(words: Sequence[JudgedWord], subject: Sequence[JudgedWord]) -> bool:
    """Whether `words`, under a key whose words are `subject`, look like a fact about a business.

    Asked of what is not `personal_in`.
    """
    text = _plain(words)
    if _ONCE.search(text) or _AT_HOME.search(text):
        return False
    if _is_company(text) or _serves(text) or any(frame.search(text) for frame in _STRONG):
        return True
    if any(frame.search(text) for frame in _SOFT):
        return _is_signed(text)
    if _GROUP.match(text):
        return len(set(_SIGN.findall(text)) | set(_GROUP.findall(text))) > 1
    keyed = bool(phrase_stems(subject) & _KEY_OF_BUSINESS)
    if _TERSE.match(text) or _OFFERED_AS.match(text):
        return keyed or _SIGN.search(text) is not None
    head, rest = _head(text)
    of_place = head and _HAS.match(rest) is not None and _DETERMINED.match(text) is not None
    return of_place or (head and (keyed or _SIGN.search(rest) is not None or _GROUP.search(rest) is not None))


def _serves(text: str) -> bool:
    """Whether it speaks of what only a business has, or of a rule for all things of a kind."""
    return any((_SERVICE.match(text), _RULE.match(text), _WORKING_DAYS.search(text)))


def _plain(words: Sequence[JudgedWord]) -> str:
    """What is said, in lower case, one space between, without contractions."""
    text = " ".join(word.text for word in words)
    for short, long in _SHORT:
        text = short.sub(long, text)
    return text.strip(" .!")


def _explained(text: str) -> str:
    """`text` without the pronouns that can only mean a business and whoever deals with it."""
    explained = text
    for frame in _STRONG:
        explained = frame.sub("~", explained)
    sure = explained != text
    if sure or _is_signed(text):
        for frame in _SOFT:
            explained = frame.sub("~", explained)
    if explained != text:  # whoever deals with it, and it, are spoken of again
        explained = re.sub(r"\b(?:you|your)\b(?! (?:are|were|have (?:a|an|two|three)\b))", "~", explained)
        explained = re.sub(
            r"\bour(?= (?:website|app|page|online shop|webshop|stores?|shops?|branch|branches|showroom"
            r"|helpline"
            r"|hotline|portal|newsletter|menu)\b)",
            "~",
            explained,
        )
        if sure:
            explained = re.sub(r"\bus\b", "~", explained)
            explained = re.sub(
                r"\bwe(?= (?:will|do|can|pay|also|only|use|take|close|open)\b)", "~", explained
            )
    if _GROUP.search(text):
        explained = re.sub(r"\b(?:they|their|them|who)\b", "~", explained)
    return explained


def _is_signed(text: str) -> bool:
    """Whether it has a sign of trade that is none of a household: bread is organic at home as well."""
    given = re.search(r"\b(?:for free|is free|free of charge)\b", text)
    return given is not None or any(not _HOMELY.fullmatch(sign) for sign in _SIGN.findall(text))


def _of_somebody(text: str, explained: str) -> str | None:
    """What else makes `words` personal: somebody near, an illness, a wish, an order, an episode."""
    happening = _HAPPENINGS.sub("~", text)
    stems = frozenset(stem(one) for one in happening.split())
    if stems & person_names.RELATIONS or not person_names.TITLES.isdisjoint(text.split()):
        return "relation"
    ill = [one for one in text.split() if stem(one) in person_names.HEALTH]
    if ill and not (_OFFERED.search(text) and _MANY_OF_HEALTH.issuperset(ill)):
        return "health"
    liked = stems & person_names.PREFERENCES - {"usual"}
    if liked and not re.search(r"\b(?:who|you|if you) (?:want|wish|prefer|need|would like)\b", text):
        return "preference"
    return _of_one(text, explained)


def _of_one(text: str, explained: str) -> str | None:
    texts = text.split()
    opens = next((one for one in texts if one[0].isalpha()), "")
    for_us = explained.startswith(("call ~", "contact ~", "email ~"))
    if opens in _ORDERED or person_names.is_instruction(texts, open_to=_REACH if for_us else frozenset()):
        return "instruction"
    if person_names.is_somebody(re.sub(r"\bemploys? [0-9]+ (?:people|men|women)\b", "employs", text).split()):
        return "person"
    lasting = re.sub(r"(?<!\S)(?:~|you|to|can|and) rent(?= [a-z]+s\b| out\b)", "~ hire", explained)
    lasting = lasting.replace("~", "any")
    if person_names.is_owned(lasting.split()):
        return "belonging"
    past = _LASTING_PAST.sub("is", text.replace("no questions asked", ""))
    past = re.sub(r"\bhave been\b", "are", past)
    past = re.sub(
        r"\b(be|are|is) (?:sent|taken|paid|left|sold|bought|told|written|brought|moved)\b", r"\1 done", past
    )
    if person_names.is_episode(past.split()):
        return "episode"
    return "doubt" if "?" in texts or not person_names.DOUBTS.isdisjoint(texts) else None


def _is_company(text: str) -> bool:
    return _FOUNDED.search(text) is not None


def _head(text: str) -> tuple[bool, str]:
    """Whether a text speaks of a kind of thing of trade, and what it says of it."""
    there = _THERE.match(text)
    begins = text.find(" ") + 1 if there is None else there.end()
    found = (_BREAK if there else _VERB).search(text, begins)
    if there is None and (found is None or not begins):
        return False, text
    until = found.start() if found else len(text)
    # of "the entrance to the gallery" the entrance is spoken of
    noun = [one for one in _OF.split(text[:until])[0].split() if one[-1].isalpha()]
    if not 0 < len(noun) < 8 or stem(noun[-1]) not in _TRADES:
        return False, text
    last, rest = noun[-1], text if there else text[until:]
    if there:
        return stem(last) in _WHERE_ONE_IS_SERVED or last in {
            "parking",
            "park",
            "lift",
            "ramp",
            "toilet",
        }, rest
    if noun[0] in {"the", "a", "an"} or noun[0] in {"these", "those", "both"}:
        return stem(last) in _WHERE_ONE_IS_SERVED, rest
    if _DETERMINED.match(text):
        return stem(last) not in _OF_ONE, rest
    several = last.endswith("s") and not last.endswith("ss")
    return several or (stem(last) in _MASS and len(noun) <= 2), rest
