"""What a business says of itself in the first person, and signs of trade. Lists only, for `business`."""

from __future__ import annotations

from echoic.memory.sharing import trade
from echoic.memory.sharing.wording import stems
from echoic.secrets.patterns import any_of

ADVERBS = """also only always usually currently generally normally now just proudly still never not do will
    can all both happily gladly typically fully even regularly"""
STRONG_VERBS = """sell stock refund cater supply offer specialise specialize provide insure guarantee
    reimburse dispatch invoice wholesale price-match accept manufacture hire_out rent_out import export
    operate employ accommodate refurbish honour honor"""
"""What a family hardly does, whatever the object."""
SOFT_VERBS = """bake roast serve host teach train repair clean recycle plant treat translate board groom
    design build install service fix restore issue exchange replace respond reply answer
    grind engrave frame tailor certify tune sharpen weld move tow insulate rent hire_out
    print publish source test inspect review donate collect_and pick_up run_tours handle
    process refill deliver ship"""
"""What families do as well."""
COMPANY_TRAITS = """hiring recruiting licensed certified accredited registered insured cashless cash-free
    wheelchair-accessible dog-friendly family-run family-owned independent company agency firm charity
    cooperative supplier manufacturer retailer wholesaler distributor bakery brewery restaurant cafe
    studio salon clinic practice shop store hotel startup dealership workshop bookshop located"""
HAVING = """branch branches stores outlets showroom showrooms warehouses franchises vacancies menu menus
    gift_cards loyalty_programme loyalty_program step-free_access wheelchair_ramp price_list
    waiting_list customer_parking no_minimum_order"""
ORGANISATION = """store stores shop shops restaurant restaurants cafe bakery salon showroom showrooms
    warehouse warehouses branch branches headquarters hq factory company firm agency
    business website webshop online_shop customer_service customer_services service_team
    support_team support sales_team team staff employees mechanics vets lawyers couriers
    drivers technicians advisers advisors experts chefs baristas stylists dentists engineers
    instructors tutors guides consultants trainers electricians plumbers translators
    products prices rates tariffs menu menus catalogue catalog returns_policy return_policy
    refund_policy cancellation_policy privacy_policy warranty software app platform api
    customers clients helpline hotline support_line delivery_fee delivery_charge
    shipping_costs gift_cards tours workshops clinic clinics pharmacy pharmacies practice
    studio brewery winery museum gallery library kayaks
    (?:riding|driving|language|cooking|dance|music|diving|ski|surf|sailing)_school
    escape_rooms courses classes cakes bread coffee beers wines pizzas flights ferries buses
    minimum_order"""
"""What a business calls its own, and a family hardly, or not with these verbs behind it."""
OF_BUSINESS = """(?:is|are)_(?:open|closed|located|in|on|next_to|near)
    (?:is|are)_(?:available|certified|qualified|trained|licensed|made|baked)
    (?:is|are)_(?:served|free|included|organic|vegan|based|staffed)
    (?:is|are)_(?:all|fully|[0-9]+|sworn|insured|wheelchair|accessible)
    (?:is|are)_(?:per|sold|checked|cleaned|tested|insured|built)
    (?:is|are)_(?:grown|heated|taught|run|roasted|brewed|handmade)
    (?:is|are)_(?:valid|priced|printed) opens closes open close include includes start_at
    starts_at runs_on run_on runs run works_in work_in takes take offers offer hold holds
    seats seat answers answer accepts accept comes_with come_with covers cover lasts last
    costs cost has have fills fill ships ship sells sell specialise specialises specialize
    stocks delivers deliver serves serve see treat treats handles handle replies reply
    leave_every leaves leave speak speaks allows allow supports support provide provides
    prepare make advise install repair build design help arrive come_in start_from
    starts_from finish begin begins last_[0-9a-z]+"""
YOU_MAY = """return exchange cancel order pay collect pick_up park reschedule upgrade rent hire track borrow
    renew try book reserve pre-order"""
LASTING_VERBS = """is are has have can may must get gets last lasts start starts end ends leave leaves run
    runs ship ships cost costs include includes require requires allow allows take takes
    expire expires need needs apply applies cover covers contain contains support supports
    work works come comes open opens close closes sell sells offer offers accept accepts
    serve serves deliver delivers provide provides hold holds earn earns receive receives
    pay pays cannot will arrive arrives use uses specialises specializes stocks carries
    treats fills welcomes closes depart departs carry begin begins cater caters lend lends
    weigh weighs charge charges seats fits refund refunds prepare prepares make makes"""
SIGNS = (
    any_of(
        r"""free vat discounts? refunds? refundable receipts? invoices? deposits? warranty postcodes? postage
    customers clients orders purchases appointments bookings reservations walk-ins online in_store
    of_charge
    per_(?:person|hour|minute|night|month|week|day|guest|kilo|year|item|order|user|seat|head|mile)
    (?:all|most|every|any|over|more)_(?:makes|brands|models|sizes|types|kinds|orders?|plans?|major)
    included (?:business|working)_days? groups_of new_patients members corporate organic renewable
    contracts nationwide worldwide wholesale certificate native branch branches stores locations
    employees every_(?:hour|day|order|plan|table|room|morning|half_hour) available employment_law
    while_you_wait
    (?:[0-9]+|two|three|four|five|six|seven|eight|ten|twelve|twenty|thirty|forty|sixty|ninety)_(?:rooms|tables|seats|branches|stores|locations|lanes|beds|spaces|hours|minutes|weeks|months|sessions)
    (?:within|under|in)_[0-9a-z-]+(?:_to_[0-9a-z]+)?(?:_working|_business)?_(?:hours|days|minutes)
    at_least_[0-9a-z]+_(?:hours?|days?|people|guests|adults|users) up_to_[0-9a-z]+
    per_(?:euro|pound|dollar) loyalty (?:each|every)_(?:month|quarter|season|half) by_appointment cash
    card cards apple_pay google_pay contactless on_request by_appointment adults children students
    seniors under-[0-9]+s available_in_[a-z]+
    from_(?:january|february|march|april|may|june|july|august|september|october|november)_to_[a-z]+
    windows mac linux android ios discount entrance exit reception
    by_the_(?:hour|day|week|month|night|kilo|metre|meter|yard|slice|glass|dozen) monday_to_friday
    weekdays weekends daily sundays saturdays mondays bank_holidays public_holidays (?:main|front)_desk
    platforms? repairs alterations lactose-free vegan vegetarian gluten-free ground_floor first_floor
    second_floor elevator end-to-end customers'"""
    )
    + r"|(?:[$\u20ac\u00a3] ?[0-9][0-9.,]*|[0-9][0-9.,]* ?(?:[$\u20ac\u00a3]|dollars|euros|pounds|cents)"
    r"|(?:[a-z]+teen|[a-z]+ty|ten|twelve|hundred) (?:dollars|euros|pounds))"
    r" (?:a|an|per|each|for) (?:hour|day|night|week|month|year|person|head|guest|kilo|item|ticket|session)"
    r"|(?:[0-9]+|ten|twenty|fifty) ?(?:%|percent)"
    r"|[0-9]{1,2}(?::[0-9]{2})?(?: [ap]m)? (?:to|until|-) [0-9]{1,2}(?::[0-9]{2})?(?: [ap]m)?"
)
"""Signs of trade; each is weak alone. A bare amount is none: it may be somebody's bill."""
SORTS = """cakes breads loaves products items goods dishes meals pizzas wines beers coffees teas toys
    clothes_are shoes_are bikes boats rooms models treatments services courses classes lessons tours
    prices plans packages workshops garments flowers bouquets candles soaps mattresses sofas tyres parts
    repairs materials ingredients"""
"""What a business has many sorts of."""
TRADES = (
    trade.PLACES
    | trade.OPEN
    | trade.SERVED
    | trade.BEGUN
    | trade.GOODS
    | trade.SERVICES
    | trade.EVENTS
    | trade.RULED
    | trade.DEVICES
    | stems(
        """course workshop seminar webinar api support claim tariff consultation treatment repair hire quote
    estimate fee price rate charter cruise excursion trip kayak boat canoe coach minibus driver courier
    technician plan trial demo update upgrade licence license hours lesson tutor session appointment
    viewing tenancy lettings listing valuation survey inspection installation part tyre tire mot service
    haircut facial massage nail grooming boarding kennel cattery daycare nursery term tuition"""
    )
) - stems("phone child children kid infant bag bike room ticket bed box people everyone anyone group age")
OF_ONE = stems(
    "appointment order booking ticket lesson session plan bill reservation parcel delivery claim visit"
    " treatment"
)
"""What "every" and "any" may stand before in somebody's own affairs."""
MASS = stems(
    """support shipping delivery parking wifi wi-fi breakfast installation entry admission insurance
    training postage assembly maintenance collection pickup returns tuition childcare catering"""
)
WHERE_ONE_IS_SERVED = trade.PLACES - stems(
    "cleaner claim parking garage kitchen bathroom toilet garden park box ticket machine locker shelf"
    " stop bed key"
) | stems(
    "course api app software support school airline airport library hotline workshop webinar tour cruise"
    " vineyard planetarium ferry farm orchard academy institute kindergarten nursery castle palace"
    " cathedral observatory hostel depot helpdesk rental train bus shuttle canteen"
)
KEY_OF_BUSINESS = stems(
    """opening hours policy shipping delivery return returns refund refunds menu price prices pricing
    tariff fee fees rate rates company business store shop warranty support service services product
    products faq catalogue catalog payment payments discount discounts founded founding about
    headquarters branches locations parking wifi checkin checkout membership admission tickets tours
    courses claims process battery specs features availability stock deposit cancellation cancellations
    accessibility access limits api info general facility facilities amenities staff hiring jobs careers
    contact website"""
) - stems("general info access process")
"""What a key has that names a fact about a business."""

__all__ = [
    "ADVERBS",
    "COMPANY_TRAITS",
    "HAVING",
    "KEY_OF_BUSINESS",
    "LASTING_VERBS",
    "MASS",
    "OF_BUSINESS",
    "OF_ONE",
    "ORGANISATION",
    "SIGNS",
    "SOFT_VERBS",
    "SORTS",
    "STRONG_VERBS",
    "TRADES",
    "WHERE_ONE_IS_SERVED",
    "YOU_MAY",
]
