"""Word lists: which words of a spoken English sentence cannot be a name, and which almost always are one.

Lists, not rules: what they are used for is written where they are used. Everything is folded (lower case, no
accents, straight apostrophes). Where a word is both ("will", "grace", "hunter"), the stricter list leaves it out
and `AMBIGUOUS` holds it, so that a frame that admits only names ("my name is …") may still take it.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS: Final = _words(
    """
    i i'm i've i'd i'll we we're we've we'd we'll you you're you've you'd you'll he he's he'd he'll she she's she'd
    she'll it it's it'd it'll they they're they've they'd they'll me us him her them mine yours hers ours theirs
    myself yourself himself herself itself ourselves themselves who who's whom whose what what's which that that's
    this these those there there's here here's someone somebody anyone anybody everyone everybody no-one nobody
    something anything everything nothing one ones y'all
    """
)
DETERMINERS: Final = _words("a an the my your his her its our their some any no every each another both all either")
CONJUNCTIONS: Final = _words(
    """
    and or but so because cause cos coz since though although while whereas if unless until till than whether when
    whenever where wherever why how once plus nor yet except
    """
)
AUXILIARIES: Final = _words(
    """
    is are was were am be been being isn't aren't wasn't weren't ain't do does did don't doesn't didn't done doing
    have has had haven't hasn't hadn't having can can't could couldn't will won't would wouldn't shall should
    shouldn't may might must mustn't gonna wanna gotta let's lets ought
    """
)
PREPOSITIONS: Final = _words(
    """
    in on at for from with to of by about as into onto near around over under above below between behind beside
    after before during through across against without within along off out up down like via per outside inside
    upon among toward towards beyond despite past
    """
)
DISCOURSE: Final = _words(
    """
    yeah yes yep yup yea no nope nah ok okay alright right well now then also too just really actually basically
    honestly literally obviously definitely certainly currently originally presently probably perhaps maybe possibly
    please thanks thank sorry hi hello hey hiya bye goodbye cheers oh ooh wow anyway anyways again still already
    always never ever today tonight tomorrow yesterday later soon today's recently lately usually sometimes often
    normally generally mostly mainly only even almost very quite pretty rather somewhat fairly extremely super
    totally completely absolutely truly simply exactly instead together alone apart forever not n't much more most
    less least lot lots bit kind sort speaking calling huh hang hold wait whoa welcome apparently seriously
    personally hopefully unfortunately otherwise therefore however once twice first second third last next ago away
    back further else enough afterwards meanwhile nevertheless especially particularly slightly nearly hardly barely
    nowadays anymore someday somewhere anywhere everywhere nowhere elsewhere abroad overseas upstairs downstairs
    """
)
FUNCTION: Final = PRONOUNS | DETERMINERS | CONJUNCTIONS | AUXILIARIES | PREPOSITIONS | DISCOURSE
"""Words that carry the grammar: none begins a value, and most end one."""

NUMBERS: Final = _words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fourty fifty sixty seventy eighty ninety hundred thousand million billion
    half quarter dozen couple few several many
    twenties thirties forties fifties sixties seventies eighties nineties
    """
)
DAYS: Final = _words("monday tuesday wednesday thursday friday saturday sunday mondays tuesdays fridays sundays")
MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)

ADJECTIVES: Final = _words(
    """
    able absent active addicted adult afraid aged aggressive agnostic alert alive allergic allergy amazing ambitious
    american ancient angry annoying anonymous anxious artistic ashamed asian asleep aspiring athletic available
    average awake aware awesome awful awkward bad bald barefoot beautiful best better bi big bilingual bipolar bisexual
    bitter black blank bleak blessed blind blond blonde blue blunt bold boring bossy bound brand brave brief bright
    brilliant broke broken brown burnt busy calm capable careful careless casual catholic cautious celiac central
    certain cheap cheerful chill chronic chubby clean clear clever close clueless clumsy coeliac cold colorblind
    comfortable comfy common complete complex concise confident conscious conservative considerate constant content cool
    correct cozy crabby cranky crazy creative critical crucial curious current curvy cute cynical daft daily damp
    dangerous daring dark dead deaf dear deep delicate delicious democrat dense dependent desperate devout diabetic
    different difficult digital direct dirty disabled distant dizzy double doubtful down dreadful drunk dry due dull dumb
    dyslexic eager early easy easygoing ecstatic educated elderly electric eligible emotional empty energetic english
    enormous entire envious epileptic equal essential ethical evil exact excellent exempt expensive expert extra
    extrovert fabulous fair faithful false familiar famous fantastic fast fat fatal favorite favourite fearful federal
    feminine feminist fertile fierce filthy final fine firm fit flat flexible fluent fond foolish foreign former formal
    fortunate foul fragile free french frequent fresh friendly frozen frustrating full fun funny furious future fuzzy
    gay general generous gentle genuine german giant glad gloomy gluten-free golden good gorgeous graceful grand grateful
    great greedy greek green grey gross grown grumpy guilty gutted hairy halal half handsome handy hangry happy hard
    harmless harsh healthy heartbroken heavy hefty helpful helpless hesitant high hilarious hip holy homeless homesick
    honest hopeful hopeless horrible hot huge human humble hungover hungry hurt hyper hysterical ideal idle ill immune
    impatient important impossible incorrect independent indian indoor infertile inner innocent insane insecure
    instant intense intolerant intrigued introvert introverted irate irish italian itchy jealous jewish jobless jolly
    joyful keen keto kind knackered kosher lactose lame large late latest latino lazy left legal legit lesbian liable
    liberal light likely limited little live lively living local lonely long loose lost loud lousy low loyal lucky lukewarm
    mad main major male manic married massive mature mean medical medium mellow mental merry mesmerized messy mexican
    mid mild mindful minimal minor minus miserable missing mixed mobile modest moody moot moral more muslim mute mutual nasty
    native natural naughty nauseous near neat needy negative nervous neurotic neutral new nice noisy normal nosy nuts
    numb obese obsessive obvious odd official old older oldest olde only onboard online open optimistic orange ordinary
    organic orthodox other outdoor outgoing outraged overdue overjoyed overwhelmed overweight own pale panicky paranoid
    partial passionate passive past patient peaceful peckish perfect perky permanent personal pessimistic petite phenomenal picky
    pink plain playful pleasant plump polite poor popular posh positive possible potential powerful precious precise
    pregnant prepaid present previous primary prior private pro productive professional pronounced proper proud psyched public punctual pure
    purple puzzled quick quiet random rare raw ready real realistic reasonable recent red regular relaxed relevant reliable
    religious reluctant remote republican responsible restless retired rich ridiculous right righteous ripe robust romantic
    rough round royal rubbish rude rural rusty sad safe same sane sarcastic satisfied scared scarce secure selfish senior
    sensible sensitive separate serious severe sexy shaky shallow sharp shocked shook short shy sick sickly silent
    silly similar simple sincere single sketchy skeptical skint skinny sleepless sleepy slim slow sly small smart smooth sober
    social soft sole solid solo sore sorry sound sour spanish spare special specific speechless spicy spiritual spontaneous
    square stable stale standard steady steep stiff still straight strange strict strong stubborn stuck studious stupid stylish
    subtle successful sudden sufficient suitable sunburnt superb supportive sure surprised suspicious sweaty sweet swell
    swift sympathetic talented talkative tall tame tardy tasty teary tech temporary tender tense terrible terrific thankful
    thick thin thirsty thorough thoughtful thrifty tidy tight tiny tipsy tired tolerant torn total tough toxic trans trendy
    tricky trilingual trim trivial true trustworthy typical ugly ultimate unable unaware uncertain uncomfortable undecided
    under unemployed uneasy unfair unfit unhappy unhealthy unique unlikely unlucky unpleasant unreal unsure unwell
    upbeat upper upset urban urgent used useful useless usual vacant vague vain valid vast vegan vegetarian veggie
    vertical vexed vibrant vicious violent virtual visible vital vivid void vulnerable warm wary wasted weak wealthy weary
    weird wet whole wicked wide wild willing wiped wise witty wonderful worried worse worst worthy wrong yellow young
    younger youngest yummy zany zealous pescatarian agoraphobic asexual claustrophobic insomniac monolingual parched
    famished peachy groovy dandy swamped buzzed bummed stoked chuffed hooked toast unavailable ambidextrous left-handed
    eastern western northern southern typical mechanical electrical residential commercial industrial
    right-handed color-blind part-time full-time self-employed long-winded upside offline outta
    """
)
NOUNS: Final = _words(
    """
    accident account accounting act action activity actor address admin adult advice afternoon age agent air airport
    album alcohol alien amount angle animal answer apartment app apple application appointment area arm army art article
    assistant attention aunt author baby background bag balance ball band bank banker bar barn base bat batman bathroom
    beach bear beard beat bed beer beginner beginning belief believer bike bill bills bird birth birthday block
    board boat body book booking books boss bot bottle bottom box boy boyfriend brain bread break breakfast breath bridge
    brother brothers brunch building bunch bus business butter button buyer cab cabin cafe cake call caller camera camp
    cancer car card cards care career case cash cat category cats cause ceiling cell cent center century ceo chair champion
    chance change chaos chapter charge cheese chicken child childhood children chocolate choice church circle city class
    client clothes cloud club coat code coffee colleague college color colour comfort command comment company complaint
    computer concern condition confirmation connection consumer contact contract control conversation cook cookie copy
    corner correction cost country countryside county course court cousin cow cover creature credit crew crime crowd cup customer cycle
    dad daddy dairy damage dance data database date daughter day days deal dealer death debt decision degree delivery denial
    department deposit depth desk despair detail details device diet difference dinner director dirt discount dish dislike display
    distance district doctor document dog dogs dollar dollars door doubt dream dress drink drive driver drug dust duty
    ear ears earth echo ecstasy edge effect effort egg eggs email emergency employee employer end enemy energy engine entry error
    estate evening event evidence ex example exchange exercise expert extension eye eyes face fact failure faith family fan
    farm fashion fate father fault favor favour fear fee feedback feeling feet female field fight file film finance
    finger fire fish flat flight floor flow flower focus folks food fool foot force form fortune freak freedom friend friends
    front fruit fuel function future game garage garden gas gate gay gender genius gentleman ghost giant gift girl girlfriend
    glass glove goal god gold golf government grade grandma grandpa grass ground group growth guard guess guest guide guitar gum gun guy
    gym hair hall hand hands harmony hat hate head health heart heat heaven heel height hell help hero highway hill
    history hit hobby hole holiday home homes honey honor hope horror horse hospital host hotel hour hours house household houses hr
    human humor husband hut ice idea idiot illness image impact income increase industry info information insurance
    interest internet interview invoice island issue item jail jeans jerk job jobs joke journey joy juice jury keeper key kid kids
    kidney killer kind king kitchen knee knowledge lab lack lady land lane language laptop laugh law lawn lawyer layer
    leader leather leg legs legend leisure length lesson letter level library license lie life lifetime light limbo limit line link lip list
    listener lock log look loop lord loser loss love lover luck lunch luxury machine magic mail maker male man management manager
    map mark market marketing marriage mass master match mate matter meal meaning meat media meeting member memory men mess
    message metal metaphor method middle mile miles military milk millionaire mind mine minute minutes mirror misery mistake mode model mom
    moment momentum mommy money monster month months mood moon morning mortal mortgage mother motion mountain mountains mouse mouth move movie
    mud mum music name names nation nature neck need needle neighbor neighbour neighborhood nerd nerve net network news night
    nightmare noise noon north nose note notice number object ocean offer office ogre oil operation operator opinion option order
    outfit outside oven owner pack package page pain painting pair pajamas palace pan panic pants paper papers paradise parent parents
    park parking part partner parts party pass passenger passion passport password patience pattern pay payment peace people
    percent perfectionist period permission person pet phone photo pickup picture pie piece pilot pin pirate pizza place places plan plane
    plans plant plate player pleasure pocket poem point police policy pool position post poverty pound pounds power practice prayer
    president pressure price pride prince princess print priority prison privacy private prize problem process product profile program progress project
    promise proof property purchase purpose quality queen question questions queue quiet quote rabbit race radio rage rain
    range rate ray reader reality reason receipt record referral refund registration relation relationship religion renewal rent repair reply report request
    rescue reservation respect response rest restaurant result retirement return reward ride ring risk road robot rock role roll
    roof room rooms root rope rose round route routine row rule rush sale sales salad salary salt sand scene schedule school
    science score screen sea season seat second secret section security self sense sentence series service session set setting
    sex shade shame shape share sheet shelf shift ship shirt shock shoe shoes shop shopping shot shoulder show shower sibling sick
    side sign signal signature silence sin singer sink sir sister sisters site situation size skill skin sky sleep slot snack
    snow society solution son song sons soul sound soup source south space speaker spectrum speech speed spider spirit spoon
    sport sports spot spouse spring staff stage stairs star start state statement station status step stock stomach stone stop
    store storm story stranger street stress strike student studio study stuff style subject success sugar suit summer sun
    supper supply support surface surgery surprise survey survivor sweatpants sweater system table tale talent talk task taste tax taxi tea
    teacher team teenager teens telephone temper term terror test text thing things thought thoughts thousands throat ticket tie time times title toilet
    tone tool tooth top topic total touch tour tourist tower town toy track trade traffic trailer train transfer transit transport
    trauma travel treat treatment tree trial trick trip trouble truck trust truth tube turn tv twin twins type tyre uncle
    uniform unit universe university update user vacation value van vehicle version victim video view village virgin virgo visit visitor
    voice volume vote wage walk wall war waste watch water wave way weakness wealth weather wedding week weekend weekends
    weeks weight west wheel wife willing wind window wine winner winter wish witch witness woman women wonder wood word words work
    worker working works world worry worth wreck writer writing year years yesterday youth zone batgirl spiderman superman
    leo libra scorpio capricorn aquarius pisces aries taurus gemini sagittarius human jesus mia batteries
    channel laboratory engineering furnishing computer computers adolescent swimmer asap
    awhile midnight midday dawn dusk thousand halfway fulltime freelance
    """
)
VERBS: Final = _words(
    """
    accept add admit agree aim allow apologize appear apply appreciate arrive ask assume ate avoid became become
    began begin believe belong bet blame book born borrow bought break bring brought build buy called came cancel
    cancelled care carry catch caught change check choose chose clean close come comes complain confirm consider
    continue cook cost count cover cry cut dance decide decided deserve die died dream drew drink drive drop drove
    eat end enjoy enter exist expect explain fall feel fell felt figure fill find finish fit fix fly follow forget
    forgot forgive forward found gave get gets give given go goes going gone got gotten grab grew guess had happen hate
    hear heard help hide hit hope hurt ignore imagine include intend join jump keep kept kick kill knew know knows known
    laugh lead learn leave left lend lie like listen live lived lives look looking lose lost love loves made make makes
    manage mean meant meet mention met mind miss missed move moved must need needs needed notice offer order owe own
    owns passed pay pick plan play point prefer prepare press pretend promise prove pull push put quit ran reach
    read realize receive recognize recommend refer refuse relate relax rely remain remember remind remove rent repeat
    replace reply report request require return ride ring rise run runs said sang sat save saw say says search see seek seem
    seems seen sell send sent set share shop shot show shut sing sit sleep slept smell smoke sold solve sound speak speaks
    spell spelled spelt spend spent spoke stand start stay stayed stays stop struggle study suffer suggest suit support suppose swear swim take takes
    taken talk taste taught tell tend thank think thought threw throw told took touch travel treat tried try turn
    understand understood use visit wait wake walk want wants warn wash watch wear went win wish woke won wonder work
    worked works worry write wrote yell
    """
)
DEMONYMS: Final = _words(
    """
    african american arab argentinian argentine armenian asian australian austrian bangladeshi belgian black brazilian
    british bulgarian cambodian canadian caribbean catholic caucasian chilean chinese christian colombian croatian cuban
    cypriot czech danish dutch egyptian english estonian ethiopian european filipino filipina finnish french georgian
    german ghanaian greek haitian hindu hispanic hungarian icelandic indian indonesian iranian iraqi irish israeli
    italian jamaican japanese jewish jordanian kenyan korean kurdish latina latino latvian lebanese lithuanian malaysian
    maltese mexican moroccan muslim nepali nigerian norwegian pakistani palestinian persian peruvian polish portuguese
    protestant puerto rican romanian russian saudi scottish serbian sikh slovak slovenian somali spanish sudanese
    swedish swiss syrian taiwanese texan thai tunisian turkish ugandan ukrainian venezuelan vietnamese welsh
    yemeni zimbabwean jew buddhist mormon atheist scot scots brit aussie kiwi
    """
)
FIRMS: Final = _words(
    """
    google apple amazon microsoft facebook meta tesla netflix spotify uber lyft intel ibm nasa walmart target costco
    starbucks verizon comcast samsung sony oracle cisco adobe paypal ebay etsy airbnb nike ikea zara boeing airbus
    ford toyota honda shell visa mastercard chase citibank barclays vodafone siemens bosch nokia ericsson philips
    """
)
"""Firms whose names are better known than any person's of that name; some are ordinary words as well."""
# In a text with capitals these are places even without one ("I live in boston", typed in haste).
PLACES: Final = _words(
    """
    afghanistan albania algeria argentina armenia australia austria bangladesh belarus belgium bolivia bosnia brazil
    bulgaria cambodia cameroon canada chile china colombia croatia cuba cyprus czechia denmark ecuador egypt england
    estonia ethiopia finland france germany ghana greece guatemala haiti honduras hungary iceland india indonesia
    iran iraq ireland israel italy jamaica japan kazakhstan kenya korea kuwait laos latvia lebanon libya
    lithuania luxembourg malaysia malta mexico moldova monaco mongolia morocco mozambique myanmar namibia nepal
    nicaragua nigeria norway oman pakistan panama paraguay peru poland portugal qatar romania russia rwanda scotland
    senegal serbia singapore slovakia slovenia somalia spain sudan sweden switzerland syria taiwan tanzania
    thailand tunisia turkey uganda ukraine uruguay uzbekistan venezuela vietnam wales yemen zambia zimbabwe
    alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois
    indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi missouri
    montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont virginia wisconsin wyoming
    ontario quebec manitoba alberta saskatchewan ontario queensland tasmania bavaria catalonia tuscany sicily
    london paris berlin madrid rome milan vienna prague warsaw budapest lisbon porto dublin amsterdam rotterdam
    brussels copenhagen stockholm oslo helsinki athens zurich geneva munich hamburg frankfurt cologne barcelona
    seville valencia naples venice florence turin lyon marseille edinburgh glasgow manchester birmingham liverpool
    leeds bristol sheffield cardiff belfast moscow kyiv kiev istanbul ankara jerusalem haifa cairo casablanca lagos
    nairobi accra johannesburg dubai riyadh doha tehran baghdad mumbai delhi bangalore chennai kolkata hyderabad
    karachi lahore dhaka bangkok hanoi jakarta manila seoul busan tokyo osaka kyoto beijing shanghai shenzhen sydney
    melbourne brisbane perth adelaide auckland wellington toronto montreal vancouver calgary ottawa boston chicago
    houston dallas austin phoenix denver seattle portland miami atlanta detroit philadelphia baltimore cleveland
    pittsburgh minneapolis nashville memphis orlando tampa sacramento oakland brooklyn manhattan queens cambridge oxford
    havana bogota lima santiago montevideo caracas quito
    """
)
# Names that are also words a speaker may say of themselves, and so prove nothing after "I'm".
AMBIGUOUS: Final = _words(
    """
    will may grace hope joy rose april june art bill frank jack mark rich rob sandy sky summer autumn violet ruby
    amber crystal melody chance hunter mason page penny sterling angel christian dean earl gene guy harmony iris ivy
    jade lane miles olive pearl ray reed river robin rusty skip victor ward wade faith grant chase drew max pat sue
    dawn cook baker carter major king prince leo mia lee case bliss sunny misty stormy sonny rocky ace buck duke
    echo siri alexa bond jay hazel ginger basil jasmine holly heather daisy lily poppy
    """
)
GIVEN: Final = _words(
    """
    aaron abby abdul abdullah abigail abraham adam adrian agnes ahmad ahmed aidan aisha akira alan albert alejandro
    alessandro alex alexander alexandra alexis alfred ali alice alicia alina alison allison amanda amelia amina amir amit
    amy ana anastasia anders andre andrea andreas andrew andrzej andy angela anika anil anita anna anne annie anthony
    antoine anton antonio anya ariana arjun arthur arturo asha ashley astrid audrey ava avi aya ayesha barbara beatrice
    bella ben benjamin bernard beth betty bianca bjorn bob bobby boris brad bradley brandon brenda brian bridget bruce
    bruno bryan caleb camila carl carla carlos carmen carol caroline catherine cathy cecilia charles charlie charlotte chen cheryl chiara
    chloe chris christina christine christopher claire clara claudia colin connor craig cynthia dan daniel daniela danny
    darren dave david deborah deepak deepika denise dennis derek diana diane diego dimitri dmitri dominic donald donna dorothy doug
    douglas dylan edith eduardo edward eileen elaine elena eli elias elijah elizabeth ella ellen elsa emily emma emmanuel enrique
    eric erica erik erin esther ethan eugene eva evan eve evelyn ezra farah fatima felix fernando fiona florence francesca
    francesco francis francisco frank fred freya gabriel gabriela gareth gary gemma geoff george georgia gerald gianni gilbert giulia
    giuseppe gloria gordon greg gregory greta guillermo gustavo hamza hana hannah hans haruto harold harriet harry hassan
    heidi heinrich helen helena henrik henry hiroshi hugo hussein ian ibrahim ida igor ingrid irina isaac isabel isabella ivan jacob
    jacqueline jake jakob jamal james jamie jan jane janet janice jason javier jean jeff jeffrey jenna jennifer jenny jeremy jerry
    jesse jessica jill jim jimmy joan joanna joao joe joel johan johanna john johnny jon jonas jonathan jordan jorge jose
    joseph josh joshua joyce juan juanita judith judy julia julian julie julio justin kamal karen karim karl karin kate katherine
    kathleen kathy katie katya kayla keith kelly ken kenji kenneth kevin khadija khalid kim kimberly kofi kristen kumar kurt kyle
    lars laura lauren laurent lena leon leonard leonardo leticia liam lin linda lisa liu liz logan lorenzo louis louise lucas lucia lucy luigi
    luis luka lukas luke lydia madison magda malik manuel marc marcel marcia marco marcos margaret maria mariam marie mario marta martha martin mary masha
    mateo matt matteo matthew maurice maya megan mei melanie melissa mercedes michael michelle miguel mikhail mikael mike mila milan miriam mohamed mohammad
    mohammed moses muhammad mustafa nadia nancy naomi natalia natalie natasha nathan neha neil nicholas nick nicola nicole nikhil nina noa noah nora
    norman oleg olga oliver olivia omar oscar otto pablo pamela paolo patricia patrick paul paula pavel pedro peggy peter petra phil philip phillip pierre
    piotr priya rachel rafael rahul raj ralph ramon raquel raul ravi raymond rebecca regina rex ricardo richard rita robert roberta roberto
    rodrigo roger ron ronald rosa rosie roy ruth ryan sabrina salma sam samantha samir samuel sanjay sara sarah sasha scott sean sebastian
    sergei sergey sergio seth shannon sharon shauna sheila shirley silvia simon simone sofia sonia sophia sophie stacy stanley stefan stella stephan
    stephanie stephen steve steven stuart susan suzanne svetlana sven sylvia takashi tamar tamara tanya tara tariq tatiana ted teresa terry
    theo theodore theresa thomas tiffany tim timothy tina tobias toby todd tom tomas tony tracy trevor tyler ursula uma valentina valeria vanessa vera
    veronica vicky victoria vikram vincent viola virginia vladimir walter wanda wayne wendy wei wilfred wilhelm william winifred xavier yael yan
    yasmin yosef yuki yusuf yvonne zach zachary zainab zoe ned jed jared kunal manning irving ming jing ling ying
    molly billy sally carly polly elly beverly kelly mildred olly
    """
)

# Endings by which an unknown word is taken for an English adjective, participle or adverb, not for a name.
WORDLIKE_ENDINGS: Final = (
    "ing",
    "ed",
    "ly",
    "ful",
    "less",
    "ous",
    "able",
    "ible",
    "ish",
    "ness",
    "tion",
    "sion",
    "ment",
    "ative",
    "ctive",
    "ional",
    "aholic",
    "phobic",
    "istic",
    "n't",
    "'ll",
    "'ve",
    "'re",
    "'d",
    "'s",
)
COMMON: Final = (FUNCTION | FIRMS | NUMBERS | DAYS | frozenset(MONTHS) | ADJECTIVES | NOUNS | VERBS | DEMONYMS) - (
    AMBIGUOUS | GIVEN
)
"""English words that are neither names nor places by themselves."""


def wordlike(low: str) -> bool:
    """Whether a folded word is an English word, as far as the lists and its ending tell, and not a known name."""
    if low in GIVEN or low in AMBIGUOUS:
        return False
    if low in COMMON or low.endswith(WORDLIKE_ENDINGS):
        return True
    singular = low.removesuffix("es") if low.endswith(("shes", "ches", "sses", "xes")) else low.removesuffix("s")
    return (singular != low and singular in COMMON) or ("-" in low and set(low.split("-")) <= COMMON)


__all__ = [
    "ADJECTIVES",
    "AMBIGUOUS",
    "AUXILIARIES",
    "COMMON",
    "CONJUNCTIONS",
    "DAYS",
    "DEMONYMS",
    "DETERMINERS",
    "DISCOURSE",
    "FIRMS",
    "FUNCTION",
    "GIVEN",
    "MONTHS",
    "NOUNS",
    "NUMBERS",
    "PLACES",
    "PREPOSITIONS",
    "PRONOUNS",
    "VERBS",
    "wordlike",
]
