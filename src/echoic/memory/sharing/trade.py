"""What a business has: places, services, goods, dishes, events. Sets of stems for `evidence`; lists only.

Nouns that are as often somebody's own (a plan, a shift, a job, a fine) are left out or stand where only the
business can have them.
"""

from __future__ import annotations

from echoic.memory.sharing.wording import stems

PLACES = stems(
    """store shop boutique outlet supermarket grocery market mall center centre plaza restaurant cafe
    coffeehouse diner bistro brasserie bar pub tavern brewery winery bakery deli kitchen canteen cafeteria
    court kiosk booth hotel motel hostel inn resort cleaner claim lodge lobby reception desk office branch
    headquarters facility campus gym pool sauna spa salon barbershop studio clinic hospital pharmacy
    laboratory lab ward bank atm library museum gallery theater theatre cinema opera stadium arena zoo
    aquarium beach pier airport terminal gate station platform garage parking lot entrance exit lounge
    terrace patio rooftop courtyard restroom bathroom toilet locker elevator escalator stair stand counter
    checkout register department warehouse showroom laundry cloakroom playground hotline helpline support
    rental dealership buffet shuttle box chapel church garden park vending shower water fountain exhibit
    exhibition machine shelf aisle campground campsite site nursery hall auditorium stop track rink"""
)
OPEN = PLACES | stems("line service hotline tour")
"""What is open or closed."""
SERVED = stems(
    """service line breakfast brunch lunch dinner buffet delivery pickup menu cocktail drink tea coffee
    meal takeout takeaway room"""
)
"""What is served or available at its hours."""
BEGUN = stems("check-in check-out checkin checkout entry admission boarding")
"""What begins and ends at its hours, whoever comes."""

GOODS = stems(
    """product item model version edition battery cable charger adapter screen display monitor keyboard
    mouse printer scanner camera phone smartphone tablet laptop computer server router modem speaker
    headphone television tv radio console bag backpack suitcase umbrella watch shirt t-shirt trouser jean
    dress skirt jacket coat sweater shoe boot sandal sneaker towel robe bed sofa chair table lamp oven
    microwave fridge refrigerator freezer dishwasher toaster kettle blender mixer vacuum heater fan
    machine engine vehicle van bike bicycle scooter helmet tire drill saw shampoo mattress desk room suite
    plan package bundle membership app software ticket warranty set kit case device size color colour lens
    tool sunscreen lotion tent cabin bulb pass subscription"""
)
FOOD = stems(
    """menu dish special soup salad starter appetizer dessert entree pizza pasta spaghetti lasagna noodle
    rice risotto bread bagel croissant muffin cake pie tart cookie sandwich burger cheeseburger hamburger
    wrap taco burrito curry stew steak chicken fish salmon tuna shrimp seafood egg omelette cheese sauce
    fries chip coffee espresso cappuccino latte tea juice lemonade beer wine cocktail buffet platter combo
    smoothie pancake waffle sushi ramen falafel hummus kebab option drink beverage beef pork lamb tofu
    vegetable meal margherita tiramisu"""
)
MEALS = stems("breakfast brunch lunch dinner supper")
SERVICES = stems(
    """delivery shipping installation repair cleaning wifi wi-fi internet admission entry tour class
    lesson course haircut massage manicure pedicure facial valet storage transfer upgrade replacement
    assembly wash copy print rental shuttle locker change parking cancellation return checkout checkin
    check-in check-out alteration wrap wrapping"""
)
PRICED = (
    GOODS | FOOD | MEALS | SERVICES | stems("concert show performance workshop seminar exhibition tasting")
)
EVENTS = stems(
    """concert show performance tour workshop class seminar lecture exhibition screening festival fair
    market sale karaoke trivia quiz bingo tasting"""
)
RULED = stems(
    """policy return refund exchange cancellation reservation smoking pet dog code deposit id
    identification document passport payment cash card check guest visitor child children customer member
    patient passenger adult student senior minor kid infant ticket voucher coupon discount warranty
    guarantee delivery shipping order appointment booking bookings parking entry admission photography
    camera food drink alcohol baggage luggage liquid bag age shoe towel checkout check-in check-out
    service animal stroller bike bicycle item product purchase sale membership wheelchair group noise
    music helmet mask subscription arrival swimwear rental receipt everyone anyone software people"""
)
"""What rules are about."""
DEVICES = stems(
    """router modem machine device printer scanner screen display button switch key card ticket gate door
    elevator lift washer dryer dishwasher oven microwave thermostat heater conditioner conditioning remote
    lamp light alarm sensor battery filter cable plug charger kiosk form app page website menu code phone
    lock locker room wifi wi-fi network tank tray hose valve lid cartridge safe toaster refund return item
    product luggage pump meter parking bike scooter booking reservation subscription order table"""
)
"""What something is done with or about, step by step."""
REACHED = stems(
    """phone telephone number line hotline helpline email e-mail address fax call reach contact located
    mail switchboard"""
)
BUSINESS = PLACES | stems("team department management service agency firm housekeeping concierge sales")
"""Who is reached."""

__all__ = [
    "BEGUN",
    "BUSINESS",
    "DEVICES",
    "EVENTS",
    "FOOD",
    "GOODS",
    "MEALS",
    "OPEN",
    "PLACES",
    "PRICED",
    "REACHED",
    "RULED",
    "SERVED",
    "SERVICES",
]
