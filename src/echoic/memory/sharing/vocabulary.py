"""The English words of trade: what a fact about a business is said with. A word missing here may be
somebody's name.

Lists only, by theme; `wording` compares stems, so that "opens" and "opening" need not both stand here.
What speaks of a person is listed as well, since it must be known to be refused for the right reason.
"""

from __future__ import annotations

FUNCTION = """
    a about above across after again against ago all almost alone along already also although always am
    among an and another any anybody anyone anything anytime anywhere are around as at away back be
    because been before behind being below beside besides between beyond both but by can cannot could day
    did do does doing done down downstairs due during each earlier early either else enough etc even ever
    every everybody everyone everything everywhere except few fewer for from front full further had half
    has have having here hers how however if in indoors inside instead into is it its itself just last
    late later latest least less like many may maybe might more most much must near nearby nearest nearly
    neither never next no nobody non none nor not nothing now nowhere of off often on once one only onto
    opposite or other others otherwise ought out outdoors outside over own past per perhaps plus quite
    rather really right same several shall should since so some somebody someone something sometimes
    somewhere soon still such than that the then there therefore these this those though through
    throughout till to together too toward towards twice under unless unlike until up upon upstairs
    usually various versus very via was well were what whatever when whenever where wherever whether which
    while who whoever whole whose why will with within without would yes yet pm a.m p.m o'clock ok okay
"""
NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    million dozen half quarter third double triple single pair first second fourth fifth sixth seventh
    eighth ninth tenth eleventh twelfth couple number amount percent per cent minimum maximum total
    average extra additional free half-price
"""
TIME = """
    monday tuesday wednesday thursday friday saturday sunday mondays mon tue tues wed thu thurs fri sat
    sun january february march april may june july august september october november december jan feb mar
    apr jun jul aug sep sept oct nov dec spring summer autumn fall winter season seasonal year yearly
    annual month monthly week weekly weekday weekend day daily nightly hourly hour minute second morning
    afternoon evening night noon midnight midday dawn dusk sunset sunrise today tonight tomorrow yesterday
    holiday public bank national christmas easter eve thanksgiving halloween new ramadan passover hanukkah
    diwali labor memorial independence calendar schedule time period date deadline until clock round start
    end begin finish opening closing continuous break advance notice prior business working overnight long
    short quick fast slow temporarily permanently year-round
"""
PLACES = """
    store shop boutique outlet supermarket grocery market mall center centre plaza restaurant cafe
    coffeehouse diner bistro brasserie bar pub tavern brewery winery bakery deli kitchen canteen cafeteria
    food court truck stand kiosk booth hotel motel hostel inn resort lodge lobby reception desk front
    office branch headquarters building tower facility site location premises campus gym pool sauna spa
    salon barbershop studio clinic hospital pharmacy dentist laboratory lab ward surgery practice bank atm
    post library museum gallery theater theatre cinema opera stadium arena park playground zoo aquarium
    garden beach pier harbor marina airport terminal gate station platform stop garage parking lot
    entrance exit door gateway hall hallway corridor lounge terrace patio rooftop balcony courtyard
    basement cellar attic floor ground level wing section area zone room restroom bathroom toilet washroom
    shower locker elevator lift escalator stairs staircase ramp counter checkout register window aisle
    shelf department warehouse depot factory workshop showroom school college university classroom
    auditorium conference meeting ballroom chapel church mosque synagogue temple laundry laundromat
    cloakroom coatroom box playroom nursery street road avenue corner square block downtown city town
    village neighborhood district county state country region north south east west left right middle side
    top bottom main central local nationwide worldwide online website app page drive-through drive-thru
    curbside pickup dropoff shuttle bus train tram metro subway taxi ferry bike rack charger charging
    company business brand firm agency hotline helpline line support service services team staff
    management gift bookstore optician dry-cleaner dry cleaner cleaners nail florist butcher fishmonger
    greengrocer jeweler jeweller hardware furniture electronics rental dealership gasoline petrol gas fuel
    pump carwash wash campsite campground trail cabin chalet villa suite dormitory penthouse vending
    machine fountain
"""
SERVICE = """
    breakfast brunch lunch dinner supper tea happy hour meal buffet takeaway takeout carryout delivery
    pickup catering reservation booking appointment order walk-in waitlist queue check-in checkout checkin
    check valet concierge housekeeping laundry luggage storage shuttle transfer tour guide ticket
    admission entry pass membership subscription plan package bundle offer deal discount coupon voucher
    promotion sale clearance gift card loyalty points reward refund return exchange replacement repair
    maintenance installation setup assembly cleaning inspection warranty guarantee insurance coverage
    consultation treatment therapy checkup exam screening test vaccination vaccine prescription massage
    facial manicure pedicure haircut class course lesson workshop seminar training session lecture event
    concert show performance exhibition exhibit film movie festival fair party live music band dj karaoke
    trivia quiz bingo tasting yoga pilates zumba spin swim aerobics wifi wi-fi internet network wireless
    print printing copy copying scan scanning fax photo streaming channel payment cash credit debit visa
    mastercard amex paypal cheque invoice receipt bill account deposit balance installment financing loan
    mortgage interest rate fee charge price cost tax vat tip gratuity surcharge fine penalty currency
    dollar euro pound cent penny yen shekel franc rupee usd eur gbp shipping shipment parcel courier
    express standard overnight tracking customs import export wholesale retail
"""
GOODS = """
    product item article good model version edition series size color colour style brand material fabric
    cotton wool silk leather wood wooden metal steel iron aluminum glass plastic paper cardboard rubber
    ceramic stone marble gold silver bronze battery cable charger adapter plug socket switch button key
    screen display monitor keyboard mouse printer scanner camera lens phone smartphone tablet laptop
    computer server router modem speaker headphone microphone television tv radio remote console game toy
    book magazine newspaper notebook pen pencil bag backpack suitcase wallet umbrella watch clothes
    clothing shirt t-shirt trouser pant jean dress skirt jacket coat sweater hat cap scarf glove sock shoe
    boot sandal sneaker towel robe slipper blanket pillow sheet mattress bed sofa couch chair table desk
    lamp light bulb candle mirror carpet rug curtain shelf drawer cabinet closet oven stove microwave
    fridge refrigerator freezer dishwasher toaster kettle blender mixer vacuum heater fan conditioner air
    conditioning filter machine engine motor car vehicle van truck bike bicycle scooter motorcycle helmet
    tire tyre wheel brake oil fuel gas diesel electric electricity water power solar energy tool hammer
    drill saw screwdriver screw nail paint brush glue tape ladder rope lock safe alarm detector sensor
    soap shampoo lotion cream sunscreen toothbrush toothpaste deodorant perfume makeup lipstick tissue
    diaper medicine pill vitamin bandage mask thermometer glasses frame ring necklace bracelet earring
    flower plant seed pot soil capacity memory storage gigabyte megabyte gb mb tb usb hdmi bluetooth inch
    centimeter centimetre meter metre kilometer kilometre mile foot feet yard gram kilogram kilo ounce
    pound ton liter litre milliliter gallon watt volt amp kilowatt degree celsius fahrenheit pixel
    megapixel cm mm km kg lb oz ml software hardware app application update upgrade feature function mode
    setting menu option default manual instruction guide password username login settings profile
    password-protected file folder document form pdf page link email e-mail message text sms call
    dimension width height depth length weight volume speed temperature voltage resolution quality
"""
FOOD = """
    menu dish special soup salad starter appetizer main course side dessert entree pizza pasta spaghetti
    lasagna noodle rice risotto bread toast bagel croissant muffin cake pie tart cookie biscuit pastry
    pancake waffle doughnut donut sandwich burger cheeseburger hamburger wrap taco burrito quesadilla
    nacho kebab falafel hummus sushi ramen curry stew steak beef pork lamb chicken turkey duck bacon ham
    sausage fish salmon tuna cod trout shrimp prawn lobster crab oyster mussel squid seafood egg cheese
    mozzarella parmesan cheddar butter cream milk yogurt yoghurt sauce gravy dressing mayonnaise ketchup
    mustard vinegar oil olive salt pepper spice herb garlic onion tomato potato fries chip carrot cucumber
    lettuce spinach broccoli cabbage mushroom pea bean corn avocado vegetable fruit apple banana orange
    lemon lime grape strawberry raspberry blueberry cherry peach pear plum mango pineapple melon
    watermelon coconut berry nut peanut almond walnut hazelnut cashew sesame soy tofu gluten wheat dairy
    lactose sugar honey chocolate vanilla caramel cinnamon ice sorbet gelato milkshake smoothie juice soda
    cola lemonade coffee espresso cappuccino latte americano decaf tea herbal water sparkling still tap
    beer ale lager cider wine red white rose champagne prosecco cocktail whiskey whisky vodka gin rum
    tequila liquor spirit alcohol alcoholic nonalcoholic drink beverage glass bottle cup can jug pitcher
    slice piece portion serving plate bowl basket platter combo set kids vegan vegetarian halal kosher
    organic fresh frozen homemade grilled fried baked roasted roast smoked steamed boiled raw spicy mild
    hot cold sweet sour salty crispy creamy seasonal gluten-free dairy-free sugar-free nut-free
    lactose-free allergen ingredient recipe calorie topping filling flavor flavour taste refill crust
    dough margherita pepperoni carbonara tiramisu caesar greek italian french mexican chinese japanese
    thai indian turkish lebanese spanish german american british english korean vietnamese mediterranean
    european asian african continental
"""
QUALITIES = """
    open closed available unavailable free paid included excluded required optional mandatory allowed
    permitted prohibited forbidden accepted refused valid invalid expired refundable nonrefundable
    non-refundable returnable exchangeable transferable complimentary accessible wheelchair disabled
    adapted heated cooled indoor outdoor covered private public reserved shared large medium small big
    little tiny huge tall high low wide narrow deep shallow thick thin heavy light long short new old used
    refurbished modern classic original standard basic premium deluxe luxury economy cheap expensive
    affordable reduced regular normal special limited exclusive popular busy quiet clean dirty dry wet
    safe dangerous easy difficult simple complex automatic manual digital electronic wireless portable
    waterproof water-resistant rechargeable recyclable reusable disposable adjustable foldable removable
    washable machine-washable durable flexible compatible incompatible red orange yellow green blue purple
    pink brown black white gray grey beige dark bright clear transparent round flat smart casual formal
    strict eligible responsible official legal certified licensed professional experienced friendly best
    better good great nice main primary secondary final current former previous following different
    similar separate entire maximum minimum nonsmoking non-smoking smoke-free pet-friendly family-friendly
    child-friendly unlimited instant in-store in-house on-site onsite self-service all-inclusive all-day
    same-day next-day two-way one-way round-trip guided unguided advance live weekly contactless cashless
    wooden inflatable multilingual bilingual empty full stock sold downloadable printable online offline
    anonymous confidential necessary possible impossible subject approximately approximate roughly exactly
"""
VERBS = """
    open close start end begin finish run last operate serve offer provide sell rent cost charge price pay
    accept take give get include exclude contain feature come go arrive depart leave stay keep hold carry
    bring wear use allow permit prohibit forbid ban require need must apply expire renew cancel change
    modify book reserve order deliver ship send receive return exchange refund replace repair fix clean
    wash dry cook bake grill make prepare mix add remove put place set turn press push pull click tap
    swipe scroll scan insert connect disconnect plug unplug recharge restart reboot reset install
    uninstall update upgrade download upload save delete print copy paste log sign register enter exit
    fill submit select choose pick show present check verify confirm contact call dial visit walk drive
    park ride follow cross pass climb find locate look see read write wait queue stand sit lie move lift
    drop load unload pack unpack wrap label measure weigh cut fold attach detach fasten tighten loosen
    lock unlock seal shake stir pour heat cool freeze thaw defrost store refrigerate protect cover avoid
    prevent ensure help assist support handle process manage train teach learn work function fit match
    suit supply stock list display exhibit host organize happen occur participate attend join win earn
    collect redeem spend double extend depend vary differ range reach exceed produce manufacture build
    design create found establish situate base face overlook lead speak say understand smoke drink eat
    sleep swim play dance sing light burn touch feed photograph film record vape dive empty refill rinse
    soak scrub polish sharpen lubricate inflate deflate adjust align calibrate troubleshoot appear flash
    blink beep ring sound stop resume continue pause complete fail count limit restrict split divide share
    combine guarantee waive deduct bill invoice
"""
TRADE = """
    policy rule regulation term condition agreement contract procedure process step method requirement
    limit limitation restriction exception exemption permission authorization identification id identity
    proof document licence license permit passport code dress age height weight capacity quota allowance
    baggage carry-on liquid customer guest visitor member patient client passenger traveler traveller
    resident tenant student pupil senior adult child children kid infant baby toddler teenager minor
    person people group family couple individual employee staff worker volunteer participant attendee
    player driver rider cyclist pedestrian owner manager receptionist cashier waiter chef pharmacist nurse
    doctor technician engineer instructor trainer guard dog cat pet animal service assistance guide
    veteran military question answer request complaint feedback review rating survey information detail
    help advice tip notice announcement emergency fire police ambulance evacuation first aid safety
    security hazard risk accident damage loss theft lost found property noise music smoking alcohol drug
    weapon photography camera filming quiet hour silence example case reason cause problem issue error
    fault failure solution fix result effect benefit advantage contact address phone telephone fax email
    number hotline mailing list newsletter social media website account way route direction map distance
    access view space seat seating row table standing reserved name kind type sort category set range
    choice variety selection collection assortment quantity part piece component accessory spare world
    history art science nature culture sport football basketball tennis golf fitness language translation
    purpose design pattern shape form surface edge layer inside outside corner center line point dot mark
    sign symbol logo thing stuff bit lot plenty rest remainder majority most minimum spend cover thousand
    wheelchair stroller pram buggy crib cot highchair booster flight reservation cabin trip itinerary
    departure arrival boarding luggage visa claim jazz rock pop classical story alteration tailoring
    welcome fitting roof ceiling wall fence bridge tunnel river lake hill mountain forest coast bay dock
    pitch rink slope ski snow sand farmer flea bird fishing hiking sailing boat canoe kayak tent picnic
    barbecue campfire court lane bowling billiard dart arcade climbing trampoline skate skating roller
    surfboard snorkel wetsuit footwear uniform costume badge wristband token stamp envelope poster flyer
    brochure leaflet catalog catalogue sample bucket barrel crate sack roll stack tube stick packet sachet
    jar tin bunch loaf lemongrass chili paprika zucchini eggplant aubergine pumpkin asparagus artichoke
    radish beet celery kale quinoa oat barley rye cereal granola jam jelly marmalade honeycomb nougat
    cupcake brownie macaron eclair strudel scone bun pretzel cracker popcorn snack nachos omelet omelette
    poached scrambled duplex wired inkjet laser analog analogue stereo hybrid thermal acoustic optical
    magnetic hydraulic device syrup maple lemon wrap wrapping held holder older younger elder taller
    shorter bigger smaller larger higher lower heavier lighter faster slower cheaper earlier farther
    further booking bookings rental opener reader writer dispenser light green amber indicator led lid
    tray tank hose valve pipe drain tap nozzle knob lever handle pedal belt cord wire fuse cycle mode
    program programme signal connection cable port slot drive disk cartridge toner ink reel
"""
PERSONAL = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
    her hers herself they them their theirs themselves who whom whose someone somebody mother father mom
    mum dad mama papa parent son daughter brother sister sibling wife husband spouse partner boyfriend
    girlfriend fiance fiancee uncle aunt cousin nephew niece grandmother grandfather grandma grandpa
    granny grandson granddaughter grandchild grandparent stepmother stepfather stepson stepdaughter in-law
    relative neighbor neighbour roommate flatmate housemate colleague coworker co-worker boss friend buddy
    mate landlord widow widower orphan twin ex mr mrs ms miss mister dr prof professor sir madam lord lady
    caller man woman boy girl guy gentleman prefer preference love hate enjoy want wish hope favorite
    favourite dislike fond adore crave allergic allergy diabetes diabetic asthma pregnant pregnancy cancer
    disease illness ill sick sickness disability depressed depression anxiety medication diagnosis
    diagnosed surgery operation injury injured pain blood pressure heart attack stroke therapist
    psychiatrist addiction addicted overweight hiv epilepsy dementia migraine vegetarian vegan blind deaf
    birthday birthdate anniversary wedding engagement funeral divorce divorced married single engaged
    widowed retired unemployed salary income wage debt savings pension budget rent mortgage inheritance
    house home apartment flat bedroom religion christian muslim jewish hindu buddhist catholic atheist gay
    lesbian bisexual straight transgender live lives lived reside born grew moved
"""

EVERYDAY = """
    video corporate native reschedule rabbit birds bird horse pony fish aquarium puppy kitten grooming
    kennel cattery wool fabric cotton linen silk leather yarn sewing knitting pattern button zip tailor
    cobbler heel sole locksmith lock key safe hinge plumber plumbing boiler radiator drain gutter roof tile
    brick plaster paint painting varnish timber plywood plank gravel soil compost turf seed bulb plant tree
    shrub hedge lawn mower pruning bouquet wreath rose tulip orchid funeral wedding bridal prom tuxedo gown
    veil suit alter hem press steam stain carpet rug upholstery curtain blind cushion pillow duvet frame
    framing canvas print printing poster banner leaflet brochure flyer sticker embroidery engraving trophy
    signage laminating scanning binding photocopy passport portrait photography photographer studio drone
    editing subtitle translation interpreter transcript notary notarise conveyancing probate mediation
    tribunal employment immigration solicitor attorney paralegal accountant accounting bookkeeping payroll
    audit tax invoice vat ledger pension mortgage broker lender loan savings insurer policyholder premium
    excess claim underwriter landlord letting tenancy lease surveyor valuation freehold broadband fibre
    fiber router landline tariff electricity gas solar panel battery inverter turbine meter smart kilowatt
    renewable recycle recycling compostable biodegradable carbon neutral offset emission courier freight
    pallet parcel locker haulage customs import export wholesale wholesaler retailer supplier distributor
    manufacturer franchise dealership mechanic tyre tire brake clutch exhaust gearbox windscreen alignment
    mot servicing bodywork respray towing scooter motorbike moped caravan motorhome campervan trailer
    minibus coach limousine chauffeur taxi cab kayak canoe paddle sail sailing yacht dinghy surf surfing
    wetsuit snorkel diving lifejacket climbing bouldering harness ski snowboard skate rink bowling lane
    billiard snooker darts karaoke arcade trampoline zipline paintball laser gymnastics yoga pilates spin
    zumba boxing karate judo dance ballet salsa choir piano guitar violin drum singing tutor tutoring
    tuition homework maths physics chemistry coding robotics curriculum syllabus term semester enrolment
    enrollment certificate diploma apprentice apprenticeship seminar webinar workshop lecture keynote
    podcast newsletter blog faq forum chatbot api app software platform cloud hosting server backup uptime
    encryption linux windows mac android ios laptop desktop keyboard dentist dental dentistry hygienist
    orthodontist braces implant whitening filling crown denture optician lens contact frame varifocal
    hearing physio physiotherapy osteopath chiropractor podiatrist acupuncture massage sauna facial waxing
    threading lash brow manicure pedicure tattoo piercing barber colouring coloring highlights keratin perm
    beard shave vet veterinary neutering microchip vaccination deworming flea hay oats feed tackle bait
    gourmet artisan sourdough rye bagel pastry croissant macaron cupcake gluten dairy lactose halal kosher
    vegan vegetarian organic seasonal locally roasted roastery espresso decaf oat soy almond brewery cider
    gin whisky whiskey cocktail mocktail keg cellar sommelier butcher sausage bacon ham poultry lamb game
    fishmonger oyster lobster crab deli cheese cheesemonger honey jam chutney pickle spice herb grocer
    greengrocer crate hamper voucher loyalty stamp points raffle auction antique vintage secondhand pawn
    jewellery jewelry jeweller gemstone diamond gold silver watch clock repair restoration upcycled
    refurbished warranty guarantee spare part accessory toy puzzle comic stationery pen notebook envelope
    gift wrap balloon costume fancy magic clown marquee tent gazebo stage lighting speaker microphone dj
    band quartet orchestra archive exhibit fossil dinosaur planetarium greenhouse allotment orchard farm
    barn tractor stable riding livery pony petting alpaca beekeeping hive nursery creche childminder daycare
    nanny babysitting respite hospice carer wheelchair ramp hoist mobility cleaner cleaning ironing laundry
    dryclean window chimney sweep pest termite rodent removal storage skip clearance demolition scaffold
    scaffolding crane excavator welding joinery carpentry roofing glazing insulation labour labor damp
    survey architect draughtsman planning permit interior designer staging feng shui employer employee
    recruiter recruitment temp agency vacancy internship hiring shift rota helpdesk ticketing sandbox
    postcode postcodes doorstep kerbside click collect preorder backorder restock sku barcode till receipt
    contactless instalment installment finance interest deposit refundable surcharge gratuity tip corkage
"""
"""Words of many trades and of every day that are no names: for what an operator reads first."""

VOCABULARY = frozenset(
    word
    for theme in (FUNCTION, NUMBERS, TIME, PLACES, SERVICE, GOODS, FOOD, QUALITIES, VERBS, TRADE, PERSONAL)
    for word in theme.split()
)

__all__ = ["EVERYDAY", "VOCABULARY"]
