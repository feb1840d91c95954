"""Word lists: which words of a spoken English sentence belong to its grammar, and which cannot be a name.

Lists, not rules: what they are used for is written where they are used. Everything is folded (lower case, no
accents, straight apostrophes). What is a name as well ("will", "grace", "hunter") is in `gazetteer`.
"""

from __future__ import annotations

from typing import Final

from echoic.memory.listening.gazetteer import AMBIGUOUS, FIRMS, GIVEN


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS: Final = _words(
    """
    anybody anyone anything everybody everyone everything he he'd he'll he's her here here's hers herself him
    himself i i'd i'll i'm i've it it'd it'll it's itself me mine myself no-one nobody none nothing one ones
    ours ourselves she she'd she'll she's somebody someone something that that's theirs them themselves there
    there's these they they'd they'll they're they've this those us we we'd we'll we're we've what what's
    which who who's whom whose y'all you you'd you'll you're you've yours yourself
    """
)
DETERMINERS: Final = _words(
    "a an the my your his her its our their some any no every each another both all either"
)
CONJUNCTIONS: Final = _words(
    """
    although and because but cause cos coz except how if nor once or plus since so than though till unless
    until when whenever where whereas wherever whether while why yet
    """
)
AUXILIARIES: Final = _words(
    """
    ain't am are aren't be been being can can't could couldn't did didn't do does doesn't doing don't done
    gonna gotta had hadn't has hasn't have haven't having is isn't let's lets may might must mustn't ought
    shall should shouldn't wanna was wasn't were weren't will won't would wouldn't
    """
)
PREPOSITIONS: Final = _words(
    """
    about above across after against along among around as at before behind below beside between beyond by
    despite down during for from in inside into like near of off on onto out outside over past per through to
    toward towards under up upon via with within without
    """
)
DISCOURSE: Final = _words(
    """
    abroad absolutely actually afterwards again ago almost alone already alright also always anymore anytime
    anyway anyways anywhere apart apparently away back barely basically bit bye calling certainly cheers
    completely currently definitely downstairs else elsewhere enough especially even ever everywhere exactly
    extremely fairly first forever further generally goodbye hang hardly hello hey hi hiya hold honestly
    hopefully however huh instead just kind last lately later least less literally lot lots mainly maybe
    meanwhile more most mostly much n't nah nearly never nevertheless next no nope normally not now nowadays
    nowhere obviously often oh ok okay once only ooh originally otherwise overseas particularly perhaps
    personally please possibly presently pretty probably quite rather really recently right second seriously
    simply slightly someday sometime sometimes somewhat somewhere soon sorry sort speaking still super thank
    thanks then therefore third today today's together tomorrow tonight too totally truly twice unfortunately
    upstairs usually very wait welcome well whoa wow yea yeah yep yes yesterday yup
    """
)
FUNCTION: Final = PRONOUNS | DETERMINERS | CONJUNCTIONS | AUXILIARIES | PREPOSITIONS | DISCOURSE
"""Words that carry the grammar: none begins a value, and most end one."""

NUMBERS: Final = _words(
    """
    billion couple dozen eight eighteen eighties eighty eleven few fifteen fifties fifty five forties forty
    four fourteen fourty half hundred many million nine nineteen nineties ninety one quarter seven seventeen
    seventies seventy several six sixteen sixties sixty ten thirteen thirties thirty thousand three twelve
    twenties twenty two zero
    """
)
DAYS: Final = _words(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays fridays sundays"
)
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

FIELDS: Final = frozenset(
    """
    tech technology it finance banking marketing sales education healthcare retail hospitality construction
    insurance advertising publishing journalism engineering manufacturing logistics telecoms agriculture
    farming law accounting consulting government hr biotech pharma aerospace fintech media television film
    fashion tourism transport transportation childcare cybersecurity
    """.split()
)
"""Lines of business."""
ADJECTIVES: Final = _words(
    """
    able absent active addicted adult afraid aged aggressive agnostic agoraphobic alert alive allergic allergy
    amazing ambidextrous ambitious american ancient angry annoying anonymous anxious artistic asexual ashamed
    asian asleep aspiring athletic available average awake aware awesome awful awkward bad bald barefoot
    beautiful best better bi big bilingual bipolar bisexual bitter black blank bleak blessed blind blond
    blonde blue blunt bold boring bossy bound brand brave brief bright brilliant broke broken brown bummed
    burnt busy buzzed calm capable careful careless casual catholic cautious celiac central certain cheap
    cheerful chill chronic chubby chuffed claustrophobic clean clear clever close clueless clumsy coeliac cold
    color-blind colorblind comfortable comfy commercial common complete complex concise confident conscious
    conservative considerate constant content cool correct cozy crabby cranky crazy creative critical crucial
    curious current curvy cute cynical daft daily damp dandy dangerous daring dark dead deaf dear deep
    delicate delicious democrat dense dependent desperate devout diabetic different difficult digital direct
    dirty disabled distant dizzy double doubtful down dreadful drunk dry due dull dumb dyslexic eager early
    eastern easy easygoing ecstatic educated elderly electric electrical eligible emotional empty energetic
    english enormous entire envious epileptic equal essential ethical evil exact excellent exempt expensive
    expert extra extrovert fabulous fair faithful false familiar famished famous fantastic fast fat fatal
    favorite favourite fearful federal feminine feminist fertile fierce filthy final fine firm fit flat
    flexible fluent fond foolish foreign formal former fortunate foul fragile free french frequent fresh
    friendly frozen frustrating full full-time fun funny furious future fuzzy gay general generous gentle
    genuine german giant glad gloomy gluten-free golden good gorgeous graceful grand grateful great greedy
    greek green grey groovy gross grown grumpy guilty gutted hairy halal half handsome handy hangry happy hard
    harmless harsh healthy heartbroken heavy hefty helpful helpless hesitant high hilarious hip holy homeless
    homesick honest hooked hopeful hopeless horrible hot huge human humble hungover hungry hurt hyper
    hysterical ideal idle ill immune impatient important impossible incorrect independent indian indoor
    industrial infertile inner innocent insane insecure insomniac instant intense intolerant intrigued
    introvert introverted irate irish italian itchy jealous jewish jobless jolly joyful keen keto kind
    knackered kosher lactose lame large late latest latino lazy left left-handed legal legit lesbian liable
    liberal light likely limited little live lively living local lonely long long-winded loose lost loud lousy
    low loyal lucky lukewarm mad main major male manic married massive mature mean mechanical medical medium
    mellow mental merry mesmerized messy mexican mid mild mindful minimal minor minus miserable missing mixed
    mobile modest monolingual moody moot moral more muslim mute mutual nasty native natural naughty nauseous
    near neat needy negative nervous neurotic neutral new nice noisy normal northern nosy numb nuts obese
    obsessive obvious odd official offline old olde older oldest onboard online only open optimistic orange
    ordinary organic orthodox other outdoor outgoing outraged outta overdue overjoyed overweight overwhelmed
    own pale panicky paranoid parched part-time partial passionate passive past patient peaceful peachy
    peckish perfect perky permanent personal pescatarian pessimistic petite phenomenal picky pink plain
    playful pleasant plump polite poor popular posh positive possible potential powerful precious precise
    pregnant prepaid present previous primary prior private pro productive professional pronounced proper
    proud psyched public punctual pure purple puzzled quick quiet random rare raw ready real realistic
    reasonable recent red regular relaxed relevant reliable religious reluctant remote republican residential
    responsible restless retired rich ridiculous right right-handed righteous ripe robust romantic rough round
    royal rubbish rude rural rusty sad safe same sane sarcastic satisfied scarce scared secure self-employed
    selfish senior sensible sensitive separate serious severe sexy shaky shallow sharp shocked shook short shy
    sick sickly silent silly similar simple sincere single skeptical sketchy skinny skint sleepless sleepy
    slim slow sly small smart smooth sober social soft sole solid solo sore sorry sound sour southern spanish
    spare special specific speechless spicy spiritual spontaneous square stable stale standard steady steep
    stiff still stoked straight strange strict strong stubborn stuck studious stupid stylish subtle successful
    sudden sufficient suitable sunburnt superb supportive sure surprised suspicious swamped sweaty sweet swell
    swift sympathetic talented talkative tall tame tardy tasty teary tech temporary tender tense terrible
    terrific thankful thick thin thirsty thorough thoughtful thrifty tidy tight tiny tipsy tired toast
    tolerant torn total tough toxic trans trendy tricky trilingual trim trivial true trustworthy typical ugly
    ultimate unable unavailable unaware uncertain uncomfortable undecided under uneasy unemployed unfair unfit
    unhappy unhealthy unique unlikely unlucky unpleasant unreal unsure unwell upbeat upper upset upside urban
    urgent used useful useless usual vacant vague vain valid vast vegan vegetarian veggie vertical vexed
    vibrant vicious violent virtual visible vital vivid void vulnerable warm wary wasted weak wealthy weary
    weird western wet whole wicked wide wild willing wiped wise witty wonderful worried worse worst worthy
    wrong yellow young younger youngest yummy zany zealous
    """
)
NOUNS: Final = _words(
    """
    accident account accounting act action activity actor address admin adolescent adult advice afternoon age
    agent air airport album alcohol alien amount angle animal answer apartment app apple application
    appointment aquarius area aries arm army art article asap assistant attention aunt author awhile baby
    background bag balance ball band bank banker bar barn base bat batgirl bathroom batman batteries beach
    bear beard beat bed beer beginner beginning belief believer bike bill bills bird birth birthday block
    board boat body book booking books boss bot bottle bottom box boy boyfriend brain bread break breakfast
    breath bridge brother brothers brunch building bunch bus business butter button buyer cab cabin cafe cake
    call caller camera camp cancer capricorn car card cards care career case cash cat category cats cause
    ceiling cell cent center century ceo chair champion chance change channel chaos chapter charge cheese
    chicken child childhood children chocolate choice church circle city class client clothes cloud club coat
    code coffee colleague college color colour comfort command comment company complaint computer computers
    concern condition confirmation connection consumer contact contract control conversation cook cookie copy
    corner correction cost country countryside county course court cousin cover cow creature credit crew crime
    crowd cup customer cycle dad daddy dairy damage dance data database date daughter dawn day days deal
    dealer death debt decision degree delivery denial department deposit depth desk despair detail details
    device diet difference dinner director dirt discount dish dislike display distance district doctor
    document dog dogs dollar dollars door doubt dream dress drink drive driver drug dusk dust duty ear ears
    earth echo ecstasy edge effect effort egg eggs email emergency employee employer end enemy energy engine
    engineering entry error estate evening event evidence ex example exchange exercise expert extension eye
    eyes face fact failure faith family fan farm fashion fate father fault favor favour fear fee feedback
    feeling feet female field fight file film finance finger fire fish flat flight floor flow flower focus
    folks food fool foot force form fortune freak freedom freelance friend friends front fruit fuel fulltime
    function furnishing future game garage garden gas gate gay gemini gender genius gentleman ghost giant gift
    girl girlfriend glass glove goal god gold golf government grade grandma grandpa grass ground group growth
    guard guess guest guide guitar gum gun guy gym hair halfway hall hand hands harmony hat hate head health
    heart heat heaven heel height hell help hero highway hill history hit hobby hole holiday home homes honey
    honor hope horror horse hospital host hotel hour hours house household houses hr human humor husband hut
    ice idea idiot illness image impact income increase industry info information insurance interest internet
    interview invoice island issue item jail jeans jerk jesus job jobs joke journey joy juice jury keeper key
    kid kidney kids killer kind king kitchen knee knowledge lab laboratory lack lady land lane language laptop
    laugh law lawn lawyer layer leader leather leg legend legs leisure length leo lesson letter level libra
    library license lie life lifetime light limbo limit line link lip list listener lock log look loop lord
    loser loss love lover luck lunch luxury machine magic mail maker male man management manager map mark
    market marketing marriage mass master match mate matter meal meaning meat media meeting member memory men
    mess message metal metaphor method mia midday middle midnight mile miles military milk millionaire mind
    mine minute minutes mirror misery mistake mode model mom moment momentum mommy money monster month months
    mood moon morning mortal mortgage mother motion motor mountain mountains mouse mouth move movie mud mum
    music name names nation nature neck need needle neighbor neighborhood neighbour nerd nerve net network
    news night nightmare noise noon north nose note notice number object ocean offer office ogre oil operation
    operator opinion option order outfit outside oven owner pack package page pain painting pair pajamas
    palace pan panic pants paper papers paradise parent parents park parking part partner parts party pass
    passenger passion passport password patience pattern pay payment peace people percent perfectionist period
    permission person pet phone photo pickup picture pie piece pilot pin pirate pisces pizza place places plan
    plane plans plant plate player pleasure pocket poem point police policy pool position post pound pounds
    poverty power practice prayer president pressure price pride prince princess print priority prison privacy
    private prize problem process product profile program progress project promise proof property purchase
    purpose quality queen question questions queue quiet quote rabbit race radio rage rain range rate ray
    reader reality reason receipt record referral refund registration relation relationship religion renewal
    rent repair reply report request rescue reservation respect response rest restaurant result retirement
    return reward ride ring risk road robot rock role roll roof room rooms root rope rose round route routine
    row rule rush sagittarius salad salary sale sales salt sand scene schedule school science score scorpio
    screen sea season seat second secret section security self sense sentence series service session set
    setting sex shade shame shape share sheet shelf shift ship shirt shock shoe shoes shop shopping shot
    shoulder show shower sibling sick side sign signal signature silence sin singer sink sir sister sisters
    site situation size skill skin sky sleep slot snack snow society solution son song sons soul sound soup
    source south space speaker spectrum speech speed spider spiderman spirit spoon sport sports spot spouse
    spring staff stage stairs star start state statement station status step stock stomach stone stop store
    storm story stranger street stress strike student studio study stuff style subject success sugar suit
    summer sun superman supper supply support surface surgery surprise survey survivor sweater sweatpants
    swimmer system table tale talent talk task taste taurus tax taxi tea teacher team teenager teens telephone
    temper term terror test text thing things thought thoughts thousand thousands throat ticket tie time times
    title toilet tone tool tooth top topic total touch tour tourist tower town toy track trade traffic trailer
    train transfer transit transport trauma travel treat treatment tree trial trick trip trouble truck trust
    truth tube turn tv twin twins type tyre uncle uniform unit universe university update user vacation value
    van vehicle version victim video view village virgin virgo visit visitor voice volume vote wage walk wall
    war waste watch water wave way weakness wealth weather wedding week weekend weekends weeks weight west
    wheel wife willing wind window wine winner winter wish witch witness woman women wonder wood word words
    work worker working works world worry worth wreck writer writing year years yesterday youth zone
    """
)
VERBS: Final = _words(
    """
    accept add admit agree aim allow apologize appear apply appreciate arrive ask assume ate avoid became
    become began begin believe belong bet blame book born borrow bought break bring brought build buy called
    came cancel cancelled care carry catch caught change check choose chose clean close come comes complain
    confirm consider continue cook cost count cover cry cut dance decide decided deserve die died dream drew
    drink drive drop drove eat end enjoy enter exist expect explain fall feel fell felt figure fill find
    finish fit fix fly follow forget forgive forgot forward found gave get gets give given go goes going gone
    got gotten grab grew guess had happen hate hear heard help hide hit hope hurt ignore imagine include
    intend join jump keep kept kick kill knew know known knows laugh lead learn leave left lend lie like
    listen live lived lives look looking lose lost love loves made make makes manage mean meant meet mention
    met mind miss missed move moved must need needed needs notice offer order owe own owns passed pay pick
    plan play point prefer prepare press pretend promise prove pull push put quit ran reach read realize
    receive recognize recommend refer refuse relate relax rely remain remember remind remove rent repeat
    replace reply report request require return ride ring rise run runs said sang sat save saw say says search
    see seek seem seems seen sell send sent set share shop shot show shut sing sit sleep slept smell smoke
    sold solve sound speak speaks spell spelled spelt spend spent spoke stand start stay stayed stays stop
    struggle study suffer suggest suit support suppose swear swim take taken takes talk taste taught tell tend
    thank think thought threw throw told took touch travel treat tried try turn understand understood use
    visit wait wake walk want wants warn wash watch wear went win wish woke won wonder work worked works worry
    write wrote yell
    """
)
DEMONYMS: Final = _words(
    """
    african american arab argentine argentinian armenian asian atheist aussie australian austrian bangladeshi
    belgian black brazilian brit british buddhist bulgarian cambodian canadian caribbean catholic caucasian
    chilean chinese christian colombian croatian cuban cypriot czech danish dutch egyptian english estonian
    ethiopian european filipina filipino finnish french georgian german ghanaian greek haitian hindu hispanic
    hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese jew jewish
    jordanian kenyan kiwi korean kurdish latina latino latvian lebanese lithuanian malaysian maltese mexican
    mormon moroccan muslim nepali nigerian norwegian pakistani palestinian persian peruvian polish portuguese
    protestant puerto rican romanian russian saudi scot scots scottish serbian sikh slovak slovenian somali
    spanish sudanese swedish swiss syrian taiwanese texan thai tunisian turkish ugandan ukrainian venezuelan
    vietnamese welsh yemeni zimbabwean
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
COMMON: Final = (
    FUNCTION | FIRMS | NUMBERS | DAYS | frozenset(MONTHS) | ADJECTIVES | NOUNS | VERBS | DEMONYMS
) - (AMBIGUOUS | GIVEN)
"""English words that are neither names nor places by themselves."""


def wordlike(low: str) -> bool:
    """Whether a folded word is English, as far as the lists and its ending tell, and not a known name."""
    if low in GIVEN or low in AMBIGUOUS:
        return False
    if low in COMMON or low.endswith(WORDLIKE_ENDINGS):
        return True
    singular = (
        low.removesuffix("es") if low.endswith(("shes", "ches", "sses", "xes")) else low.removesuffix("s")
    )
    return (singular != low and singular in COMMON) or ("-" in low and set(low.split("-")) <= COMMON)


__all__ = [
    "ADJECTIVES",
    "AUXILIARIES",
    "COMMON",
    "CONJUNCTIONS",
    "DAYS",
    "DEMONYMS",
    "DETERMINERS",
    "DISCOURSE",
    "FIELDS",
    "FUNCTION",
    "MONTHS",
    "NOUNS",
    "NUMBERS",
    "PREPOSITIONS",
    "PRONOUNS",
    "VERBS",
    "wordlike",
]
