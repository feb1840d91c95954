"""Which fact about a business some words state. Looks only for the fact: that nobody is meant is asked
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from echoic.memory.sharing.patterns import any_of
from echoic.memory.sharing.vocabulary import FOOD, GOODS
from echoic.memory.sharing.wording import Word, phrase_stems, stem, stems


def _phrase(pattern: str) -> re.Pattern[str]:
    """`pattern` as whole words of a statement."""
    return re.compile(rf"(?<!\S)(?:{pattern})(?!\S)")


_LOW = any_of("one two three four five six seven eight nine ten eleven twelve")
_HALF = any_of(r"am pm a\.m p\.m o'clock")
_CLOCK = (
    rf"(?:[0-9]{{1,2}}(?:[:.][0-9]{{2}})?(?: {_HALF})?|{_LOW}(?: (?:thirty|fifteen|forty five|{_HALF}))*"
    r"|noon|midnight|midday|dawn|dusk|sunset|sunrise|breakfast)"
)
_DAYS = any_of(
    """(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:days?)? wed sat week(?:days?|ends?|ly)? dai?ly nightly
    every_day each_day all_day night evening morning afternoon holidays? christmas easter thanksgiving 24
    january february march april may june july august september october november december summer winter
    spring autumn year-round around_the_clock seasons? monthly annually every_hour
    (?:one|two|[0-9]+|an|half_an)_(?:hours?|minutes)_(?:before|after)"""
)
_TOWARDS = any_of("at from until till to by between before after around - : \u2013")
_WHEN = _phrase(
    rf"{_TOWARDS} {_CLOCK}"
    rf"|{_CLOCK} (?:am|pm|to|-|until)|{_DAYS}"
)
_CURRENCY = any_of("dollars? euros? pounds? cents? percent usd eur gbp shekels? yen rupees?")
_AMOUNT = (
    rf"(?:[$\u20ac\u00a3] ?[0-9][0-9.,]*|[0-9][0-9.,]* ?[$\u20ac\u00a3%]"
    rf"|(?:[0-9][0-9.,]*|hundred|thousand|[a-z]+teen|[a-z]+ty|{_LOW}) {_CURRENCY}"
    r"|free(?: of charge)?|complimentary|half price|no (?:extra |additional )?(?:charge|fee|cost))"
)
_MONEY = _phrase(_AMOUNT)
_PRICE = _phrase(
    r"(?:costs?|starts? at|sells? for|(?:is|are)(?: only| just| priced at)?|:|eat|ride|enter|per [a-z]+:?)"
    rf" {_AMOUNT}"
)
# "Students get a 10 percent discount", "a 10 percent discount is available for members"
_DISCOUNT = re.compile(
    r"(?:students|seniors|members|veterans|children|groups|guests|residents) (?:get|receive|pay)"
    rf" (?:a )?{_AMOUNT}"
    rf"|(?:a|the) {_AMOUNT} discount (?:is|for)"
)
_NAMED_PRICE = re.compile(
    r"(?:the|a|an|each) (?:\S+ ){1,4}?(?:costs?|(?:is|are) priced at|sells? for|starts? at)(?!\S)"
)
_FLOOR = any_of(
    """ground first second third fourth fifth sixth seventh eighth ninth tenth top main lower upper"""
)
_WHERE = _phrase(
    r"(?:is|are)(?: (?:also|now|right|just|not))? (?:"
    + any_of(
        """located situated next_to across_from opposite behind beside adjacent_to downstairs upstairs
        outside inside in_front_of
        (?:on|in|at|near|between|under|above|below|past)_(?:the|each|every|level|floor)
        to_the_(?:left|right) on_(?:the_)?(?:left|right)"""
    )
    + rf"|(?:on )?(?:the )?{_FLOOR} (?:floor|level)|\[ADDRESS\])"
)
_ROOMS = _phrase(
    any_of("fitting meeting changing conference dining waiting locker game treatment rest") + " rooms?"
)
_IS = any_of("is are can_be may_be must_be should_be has_to_be have_to_be")
_RULED = any_of(
    """allowed permitted prohibited forbidden banned required accepted mandatory optional refundable
    nonrefundable non-refundable included valid transferable returnable welcome refunded issued processed
    honou?red returned exchanged cancell?ed limited charged waived available reserved non-smoking
    smoke-free strictly_prohibited requested"""
)
_BANNED = any_of(
    """smoking pets refunds returns exchanges outside_food photography cash checks food dogs minimum
    drinks alcohol reservations?"""
)
_DUTY = any_of("be show pay wear check leave present bring enter use return cancel arrive")
_SPAN = any_of("days hours weeks minutes")
_POLICY = _phrase(
    rf"{_IS}(?: not| also| only)? {_RULED}|not {_RULED}|no {_BANNED}"
    rf"|only (?:allowed|accepted)|dress code is"
    rf"|(?:ships?|arrives?|are (?:shipped|delivered)) within"
    rf"|takes? (?:up to |about )?[0-9]+ (?:business |working )?{_SPAN}"
    rf"|(?:must|may not|cannot|can|may) {_DUTY}"
    r"|(?:minimum|maximum) [a-z]+ (?:is|are)|requires?|allows?|permits?"
    r"|prohibits?|accepts?|covers|does not cover|lasts|expires?"
)
_EAT = _phrase(
    any_of(
        """comes?_with served_with includes? contains? has have made_with made_from features? offers?
        serves? on_the_menu"""
    )
)
_DISHES_ARE = any_of(
    """available vegan vegetarian gluten-free dairy-free nut-free halal kosher organic homemade fresh
    spicy mild grilled fried baked roasted smoked steamed seasonal italian french spanish local"""
)
_IS_DISH = _phrase(rf"(?:is|are)(?: also| always| not)? {_DISHES_ARE}")
_SPECIAL = _phrase(r"(?:of the day|specials?) (?:is|are)(?! (?:at|on|from)(?!\S))")
_PRODUCTS_ARE = any_of(
    """available waterproof water-resistant compatible rechargeable machine-washable washable portable
    in_stock out_of_stock sold_out sold made adjustable foldable gluten-free vegan organic wireless
    discontinued"""
)
_HAS = _phrase(
    any_of(
        """comes?_(?:with|in) includes? contains? features? supports? fits weighs holds lasts measures
        made_(?:of|from|with|in) works_with runs_on charges in_stock out_of_stock sold_out"""
    )
    + rf"|(?:is|are) {_PRODUCTS_ARE}"
)
_OWNS = _phrase("has|have")
_COUNTS = frozenset("one two three four five six seven eight nine ten eleven twelve".split())
_FEATURES = stems(GOODS, FOOD) - stems("number message key password")
_HELD = _phrase(
    r"starts?|begins?|takes? place|runs?|ends?|(?:is|are) (?:held|hosted|open|every|each|on|from)"
)
_REPEATED = _phrase(
    any_of(
        """every each daily nightly weekly monthly weekends weekdays
        (?:mon|tues|wednes|thurs|fri|satur|sun)days"""
    )
)
_SURE_EVENT = _phrase(
    any_of("happy_hour live_music open_mic sale clearance_sale flea_market farmers_market story_time")
)
_STEPS = any_of(
    """press hold push turn plug unplug restart reset scan insert select choose click tap dial bring show
    fill submit open close remove place put use connect switch pull slide enter download visit take wait
    install go print sign pay call swipe type pack lift drop return"""
)
_TO_DO = re.compile(rf"(?:to|for) [^,:]{{3,80}}[,:] (?:first )?{_STEPS}(?!\S)")
_HANDLED = any_of(
    """press hold push turn plug unplug restart reset scan insert slide switch tap connect disconnect
    rinse empty refill replace clean"""
)
_STEP = re.compile(rf"{_HANDLED} (?:and hold )?(?:the|a|an|each|both)(?!\S)")
_GIFT_TRADE = _phrase(r"gift (?:wrap|wrapping|cards?|shop|boxes)")

_PLACE = stems(
    """store shop boutique outlet supermarket grocery market mall center centre plaza restaurant cafe
    coffeehouse diner bistro brasserie bar pub tavern brewery winery bakery deli kitchen canteen cafeteria
    court kiosk booth hotel motel hostel inn resort cleaner claim lodge lobby reception desk office branch
    headquarters facility campus gym pool sauna spa salon barbershop studio clinic hospital pharmacy
    laboratory lab ward bank atm library museum gallery theater theatre cinema opera stadium arena zoo
    aquarium beach pier airport terminal gate station platform garage parking lot entrance exit lounge
    terrace patio rooftop courtyard restroom bathroom toilet locker elevator escalator stair counter
    checkout register department warehouse showroom laundry cloakroom playground hotline helpline support
    rental dealership buffet shuttle box chapel church garden park company vending shower water fountain
    exhibit exhibition ticket machine shelf aisle campground campsite site nursery hall auditorium stop"""
)
_HOURS_OF = _PLACE | stems(
    """hour service line breakfast brunch lunch dinner buffet check-in check-out checkin checkout delivery
    pickup menu cocktail drink tea coffee exhibition box tour"""
)
_MEAL = stems(
    """breakfast brunch lunch dinner supper tea buffet happy room delivery pickup takeout takeaway
    takeaways"""
)
_SHOP_VERBS = stems("open close serve available start end run operate hour closed opening closing last")
_MEAL_VERBS = stems("serve available hour run")
_PRICED_OF_PERSON = stems("bill budget debt loan worth donation gift bet")
_POLICIES = stems(
    """policy return refund exchange cancellation reservation smoke smoking pet dog dress code deposit id
    identification document payment cash card check guest visitor child customer member patient passenger
    adult student senior minor kid infant ticket voucher coupon discount warranty guarantee delivery
    shipping order appointment booking parking entry admission photography camera food drink alcohol
    baggage luggage liquid bag age shoe towel checkout check-in check-out service animal stroller bike
    bicycle item product purchase sale membership wheelchair group party noise music helmet mask
    subscription plan late swimwear rental receipt everyone anyone prescription minimum maximum children
    people software bookings"""
)
_PRODUCT = stems(
    """product item model version edition battery cable charger adapter screen display monitor keyboard
    mouse printer scanner camera phone smartphone tablet laptop computer server router modem speaker
    headphone television tv radio console bag backpack suitcase umbrella watch shirt t-shirt trouser jean
    dress skirt jacket coat sweater shoe boot sandal sneaker towel robe bed sofa chair table lamp oven
    microwave fridge refrigerator freezer dishwasher toaster kettle blender mixer vacuum heater fan
    machine engine car vehicle van bike bicycle scooter helmet tire drill saw shampoo mattress desk room
    suite plan package bundle membership app software ticket gift warranty set kit device size color
    colour lens tool sunscreen lotion tent cabin bulb pass subscription"""
)
_FOOD = stems(
    """menu dish special soup salad starter appetizer dessert entree pizza pasta spaghetti lasagna noodle
    rice risotto bread bagel croissant muffin cake pie tart cookie sandwich burger cheeseburger hamburger
    wrap taco burrito curry stew steak chicken fish salmon tuna shrimp seafood egg omelette cheese sauce
    fries chip coffee espresso cappuccino latte tea juice lemonade beer wine cocktail breakfast brunch
    lunch dinner buffet platter combo smoothie pancake waffle sushi ramen falafel hummus kebab option
    drink beverage beef pork lamb tofu vegetable ingredient allergen gluten meal vegan vegetarian
    margherita tiramisu"""
)
_SERVICES = stems(
    """delivery shipping installation repair cleaning wifi wi-fi internet admission entry tour class
    lesson course haircut massage manicure pedicure facial treatment checkup valet storage transfer
    upgrade replacement assembly gift wash copy print rental shuttle night hour towel locker oil change
    parking deposit fee surcharge cancellation checkout checkin check-in check-out alteration tailoring
    child children senior student adult person people wrap wrapping pass"""
)
_EVENT = stems(
    """concert show performance tour workshop class seminar lecture exhibition screening festival fair
    market sale karaoke trivia quiz bingo tasting yoga pilates zumba event"""
)
_DEVICE = stems(
    """router modem machine device printer scanner screen display button switch key card ticket gate door
    elevator lift washer dryer dishwasher oven microwave thermostat heater conditioner conditioning remote
    lamp light alarm sensor battery filter cable plug charger kiosk form app page website menu code phone
    lock locker room wifi wi-fi network tank tray hose valve lid cartridge safe toaster refund return item
    product luggage pump meter parking bike scooter booking reservation subscription order"""
)
_REACH = stems(
    """phone telephone number line hotline helpline email e-mail address fax call reach contact located
    mail switchboard"""
)
_OPENING = _PLACE | stems("hour")
_PRICED = _PRODUCT | _FOOD | _EVENT | _SERVICES
_PRICE_ITSELF = stems("price cost fee rate charge")
_POLICY_ITSELF = stems("policy")
_WORKPLACE = stems("office meeting")
_SILENT = frozenset({".", "!", '"', "(", ")"})
_BUSINESS = _PLACE | stems("team department management service agency firm housekeeping concierge sales")


@dataclass(frozen=True, slots=True)
class _Statement:
    """Words, and the key they stand under, as the rules read them."""

    text: str
    """All words in lower case, one space between."""
    stems: frozenset[str]
    """Of the words and of the key."""
    key: frozenset[str]
    """The stems of the key alone."""

    def before(self, phrase: re.Match[str]) -> frozenset[str]:
        """The stems of what `phrase` is said of: of the words before it, and of the key."""
        return self.key | {stem(word) for word in self.text[: phrase.start()].split()}

    def names(self, things: frozenset[str]) -> bool:
        """Whether one of `things`, which are stems, is named."""
        return not self.stems.isdisjoint(things)

    def has(self, phrase: re.Pattern[str]) -> bool:
        """Whether `phrase` is said."""
        return phrase.search(self.text) is not None


def fact_in(words: Sequence[Word], subject: Sequence[Word], *, contact: bool = False) -> str | None:
    """The kind of fact that `words` state, under a key whose words are `subject`; None if none.

    `contact`: whether a phone number or an address was taken out of the text; then the fact can only be how
    the business is reached.
    """
    said = _Statement(
        " ".join(word.text for word in words if word.text not in _SILENT).strip(),
        phrase_stems((*words, *subject)),
        phrase_stems(subject),
    )
    if contact:
        return "contact" if said.names(_REACH) and said.names(_BUSINESS) else None
    rules: tuple[tuple[str, Callable[[_Statement], bool]], ...] = (
        ("procedure", _is_procedure),
        ("event", _is_event),
        ("hours", _is_hours),
        ("price", _is_price),
        ("menu", _is_menu),
        ("policy", _is_policy),
        ("location", _is_location),
        ("product", _is_product),
    )
    return next((reason for reason, holds in rules if holds(said)), None)


def _is_hours(said: _Statement) -> bool:
    if not said.has(_WHEN):
        return False
    opens = said.names(_OPENING) and said.names(_SHOP_VERBS)
    return opens or (said.names(_HOURS_OF) and said.names(_MEAL_VERBS))


def _is_price(said: _Statement) -> bool:
    if not said.has(_MONEY) or (said.names(_PRICED_OF_PERSON) and not said.has(_GIFT_TRADE)):
        return False
    # "The risotto costs 14 dollars": whatever it is, an article and a price make it a thing on sale.
    if _NAMED_PRICE.match(said.text) or _DISCOUNT.match(said.text):
        return True
    if not said.key.isdisjoint(_PRICE_ITSELF):
        return not said.key.isdisjoint(_PRICED)
    price = _PRICE.search(said.text)
    return price is not None and not _PRICED.isdisjoint(said.before(price))


def _is_menu(said: _Statement) -> bool:
    if not said.names(_FOOD) or said.names(_WORKPLACE):
        return False
    if said.has(_EAT) or said.has(_SPECIAL):
        return True
    # "Dinner is at seven" is a plan; "the soup is vegan" is the menu.
    dishes = said.stems & (_FOOD - _MEAL)
    return bool(dishes and said.has(_IS_DISH))


def _is_policy(said: _Statement) -> bool:
    return said.names(_POLICIES) and (said.has(_POLICY) or said.names(_POLICY_ITSELF))


def _is_location(said: _Statement) -> bool:
    """Where a place is; "the bike is in the garage" says it of something else."""
    where = _WHERE.search(said.text)
    if where is None:
        return False
    return bool(_ROOMS.search(said.text, 0, where.start())) or not _PLACE.isdisjoint(said.before(where))


def _is_product(said: _Statement) -> bool:
    if not said.names(_PRODUCT):
        return False
    if said.has(_HAS):
        return True
    # "The tablet has a ten inch screen", but "the phone has a new number" and "a virus".
    owns = _OWNS.search(said.text)
    return owns is not None and any(
        word.isdecimal() or word in _COUNTS or stem(word) in _FEATURES
        for word in said.text[owns.end() :].split()
    )


def _is_event(said: _Statement) -> bool:
    if not said.has(_WHEN) or not said.has(_HELD):
        return False
    return said.has(_SURE_EVENT) or (said.names(_EVENT) and said.has(_REPEATED))


def _is_procedure(said: _Statement) -> bool:
    return said.names(_DEVICE) and bool(_TO_DO.match(said.text) or _STEP.match(said.text))


__all__ = ["fact_in"]
