"""The ordinary words lessons are said in, beyond those of trade: serving, talking, trying, tools, domains.

A lesson may use no word that is not known to be one of these; so a name that no list holds cannot pass
either. Lists, compared by stem, and endings that no name has.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english.lexicon import COMMON
from echoic.memory.sharing import vocabulary
from echoic.memory.sharing.wording import stem, stems

SERVING: Final = """
    agent assistant caller callers user users customer customers client clients guest guests person people
    somebody anyone everyone conversation conversations dialogue call calls session sessions turn turns
    question questions answer answers reply replies request requests task tasks job step steps goal goals
    topic topics subject detail details context fact facts example examples case cases issue issues problem
    problems reason reasons result results outcome outcomes success failure error errors mistake mistakes
    misunderstanding confusion doubt choice choices option options alternative alternatives suggestion
    suggestions recommendation recommendations preference preferences taste tastes interest interests
    feedback complaint complaints praise mood tone pace silence pause interruption greeting goodbye summary
    summaries list lists title titles genre genres category categories item items name names date dates
    spelling number numbers amount amounts range ranges limit limits budget default defaults field fields
"""
DOING: Final = """
    ask asks asked asking answer tell tells explain explains clarify clarifies confirm confirms repeat repeats
    rephrase summarise summarize recap read spell check verify validate compare choose pick prefer prefers
    recommend recommends suggest suggests offer offers propose narrow widen broaden filter sort rank limit
    search searches searched look lookup find finds found fetch query queries retrieve return returns retry
    retries try tries tried fail fails failed succeed succeeds work works worked help helps helped use uses
    used call called combine combines chain start starts stop stops begin end finish finishes wait waits
    continue switch change changes correct corrects fix avoid avoids prevent skip skips ignore keep keeps
    remember recall recalls mention mentions state stating agree agrees agreed decide decides accept accepts
    reject rejects refuse decline declines cancel cancels complete completes handle handles resolve resolves
    escalate transfer transfers hand note record records store save saves update updates set get gets give
    gives take takes make makes let lets need needs want wants expect expects assume assumes guess guesses
    think know knows understand understands mean means meant seem seems sound sounds feel feels like likes
    dislike enjoy enjoys love loves hate complain complains apologise apologize thank greet introduce
    interrupt interrupts listen listens hear hears heard mishear misheard speak speaks talk talks say says
    respond responds react adapt adjust adjusts match matches lead leads follow follows improve improves
    learn learns teach reduce increase save saves waste lose loses lost miss misses missing drop drops hang
    cover covers include includes contain contains show shows display group batch split merge parse format
    argue promise joke thanks invent insist rush push press order orders
"""
QUALITIES: Final = """
    best better good bad worse worst right wrong correct incorrect clear unclear vague specific exact precise
    broad broader narrow narrower short shorter long longer brief briefly quick quickly fast faster slow
    slowly slower early earlier late later first second third last next previous recent new old same
    different similar other another common rare frequent frequently often usually sometimes always never
    rarely ambiguous obvious helpful useful useless effective efficient polite patient friendly formal casual
    direct open closed empty full partial whole single multiple several few many much more most less least
    enough high low higher lower popular known unknown unsure uncertain sure certain likely unlikely possible
    impossible necessary optional required important relevant irrelevant simple simpler complex easy easier
    hard harder difficult successful unsuccessful happy unhappy satisfied dissatisfied frustrated impatient
    confused surprised loud aloud quiet out together instead rather directly explicitly politely twice once
    again ahead afterwards beforehand immediately ahead apart aside across per via about around
"""
TOPICS: Final = """
    movie movies film films series show shows action comedy drama thriller horror romance documentary
    animation fantasy mystery adventure western classic actor actress director star cast plot ending scene
    review reviews rating ratings score music song songs album band artist playlist book books author novel
    story recipe recipes ingredient ingredients meal cooking travel trip trips flight flights hotel hotels
    destination weather forecast temperature rain sunny news sport sports game games team match fitness
    exercise health language languages translation word words sentence sentences text voice audio video
    photo picture image map route traffic address location city country place places time timezone calendar
    reminder reminders appointment appointments booking bookings reservation order orders delivery payment
    refund invoice account password login website link email message messages notification phone
"""
TOOLS: Final = """
    tool tools function functions api argument arguments parameter parameters input inputs output outputs
    value values key keys field fields schema json string number boolean timeout timeouts latency cache
    database index endpoint service server client version response responses code status search lookup
    empty null none default page pages limit offset token tokens model models prompt prompts memory memories
    irritate urls iso knowledge history log logs data dataset file files document documents record records
"""

TALKING: Final = """
    pronoun mispronounce abbreviation abstract accent acknowledge acronym admit advise affirm agreement
    ambiguity analogy announce apology appreciate appreciative argue assertion assume attention attitude
    attentive audible awkward backchannel blunt callback casual chat clarification clarity coherent comment
    commitment communicate compliment comprehend comprehension concern concise conclude conclusion
    condescending confess confidence confident confirmation congratulate consent contradict conversational
    courteous courtesy criticise criticize curiosity curious defensive definition describe description
    dialect digress disagree disclose discuss discussion dispute dodge elaborate eloquent emotion
    emotional empathise empathize empathy emphasise emphasize emphasis encourage engage enthusiasm
    enthusiastic enunciate euphemism evasive exaggerate explanation expression filler fluent followup
    follow-up frustrate gratitude grammar hesitant hesitate hesitation hint honest honesty hostile humble
    humor humorous humour hurry idiom impolite inform informal inquire inquiry insult intent intention
    interject interpret intonation jargon joke judgment judgemental language lecture literal lively
    mislead misspell misspelled misunderstand monologue monotone mumble mutter narrate negotiate nuance
    objection obvious opinion overlap paraphrase passive patience patronising patronizing perceive phrase
    phrasing pitch playful pleasant pleasantry plural politeness praise preamble presume pronounce
    pronunciation proper question quotation rambling rapport reassure reassurance recite refer reference
    reflect regret reiterate relevance reluctant remark remind repetition repetitive report respect
    respectful response restate reveal rhetorical rude sarcasm sarcastic sceptical scold sensitive
    sensitivity sentiment shout silent sincere sincerity skeptical slang small-talk smile speaker speech
    stammer statement stress stutter subtle succinct summary sympathise sympathize sympathy synonym tact
    tactful tangent tease tedious tense terminology terse thoughtful tiresome translate transparent trust
    trustworthy understandable understanding unspoken unclear utterance verbal verbatim verbose vocabulary
    volume wary whisper wording worry
"""
ACTING: Final = """
    far newer abandon abort absorb accelerate accommodate accomplish accumulate accuracy accurate achieve
    acquire act adapt addition adequate adhere adjustment adopt advantage affect aim align allocate allow
    alter analyse analyze analysis anticipate anticipation apply approach appropriate approval approve
    approximate arrange arise assess assign assist assistance associate assure attach attempt attract
    authenticate authorise authorize automate automatic await aware awareness balance barrier base
    baseline benefit bias block bonus boost borrow bother boundary breach brevity build bundle burden
    bypass calculate calm capable capacity capture careful careless cause caution cautious celebrate
    challenge channel chaotic cheap choose chosen circumvent cite claim classify clean click closely clue
    coach coincide collaborate collect combination commit comparable comparison compensate compete
    competent complement complexity comply complicate complicated component compromise conceal concentrate
    concept concrete condition conduct configure conflict connect consecutive consequence consider
    consistency consistent consolidate constant constraint construct consult consume contact content
    continuity contrast contribute control convenience convenient convert convince cooperate coordinate
    cope core correction correlate costly count create creative credible crisis criteria criterion
    critical crucial cue cumbersome customise customize cut damage danger dangerous deadline deal decade
    decent dedicate deduce deep defer define degrade delay delegate deliberate deliver demand demanding
    demonstrate deny depend dependable dependent deserve design desirable desire despite destroy detect
    determine develop deviate device devote differ difference dilemma diminish disable disadvantage
    disappoint discard discourage discover discrepancy dismiss display disrupt distinct distinguish
    distract distribute disturb diverse divide double-check draft drawback drive drop-off dull duplicate
    duration dynamic eager earn ease edit effect effort elect eligible eliminate embarrass emerge
    emergency enable encounter endless enforce enhance enrich ensure entertain entire environment equal
    equivalent error-prone essential establish estimate evaluate event eventually evidence evolve examine
    exceed exception excessive exchange excite exclude exclusive execute exhaust exhaustive exist expand
    expectation expedite experience experiment expert expertise expire explicit explore expose extend
    extent external extra extract extreme face facilitate factor fair fallback false familiar fatigue
    fault favourable feasible fewer final finalise finalize firm fit flag flaw flexible flood flow focus
    force foresee foremost formula forward fraction fragment framework frequency fresh friction fulfil
    fulfill function fundamental funnel gain gap gather general generate generic genuine gently glance
    goal gradual granular grasp greatly grow guarantee guidance guide guideline habit halve handle handoff
    handover happen harm harmful harmless hasty heavily helpfulness hide hidden highlight hinder honour
    hypothesis ideal identical identify idle ignorance illustrate imagine immediate impact imply import
    imprecise impression inaccurate inappropriate incentive incident incline inconsistent inconvenience
    incomplete increase increment independent indicate indication indirect individual ineffective
    inefficient inevitable infer influence initial initiate inject insert insight insignificant inspect
    inspire install instance instant instruct instruction insufficient intact integrate intense interact
    interactive interactivity interfere intermediate internal intervene intuitive invalid invest
    investigate invite involve isolate iterate iterative judge justify lack lag latest launch layer
    lengthy lenient leverage likelihood limitation link load locate logical longer loop loose loyal
    loyalty mainstream maintain major manage mandatory manipulate manual margin matter maximise maximize
    meaningful measure measurable mechanism method methodical meticulous mild mindful minimal minimise
    minimize minor mislabel mismatch mistaken mix moderate modify momentum monitor motivate motivation
    mutual narrowing natural necessity negative neglect neutral nevertheless noise noisy nonetheless
    normal notable notice notify novel novice numerous objective oblige observe observation obstacle
    obtain occasion occasional occur odd offence omit ongoing opportunity opposite optimal optimise
    optimize optimism organise organize orient origin outdated outline outweigh overall overcome
    overestimate overload overlook overly override oversight overuse overview overwhelm overwrite pace
    paced parallel partial participate particular path pattern payoff peak penalty pending perfect perform
    performance permanent permission permit persist persistence persistent personal personalise
    personalize perspective persuade pertinent phase pick pitfall placeholder plan plausible plenty point
    positive possess postpone potential practical practise precaution precede precision predict
    predictable prefill preliminary premature prepare prerequisite presence present preserve pressure
    presume pretend prevail prevalent previously primary principle prioritise prioritize priority privacy
    private proactive probable probe procedure proceed process produce productive professional profile
    profit progress prolong prominent promising promote prompt prone proof proportion propose prospect
    protect prove provide purpose pursue qualify quality quantity quest quota random rapid rare rate
    rational reach react reaction reactive readable ready realise realistic realize reasonable reassess
    recall recency recheck recognise recognition recognize reconcile reconsider recover recovery rectify
    recur redirect redundant refine reformulate refresh regain regard regardless region regular reinforce
    reject relate relation relax release reliability reliable reliance relief rely remain remarkable
    remedy remove reopen reorder repair repeatedly replace replacement represent require rescue research
    resemble resend reserve reset resist resolution resource responsible responsive rest restart restore
    restrict restriction restructure resume retain retention rethink reuse reverse revert review revise
    revisit reward rework rid rigid rigorous rise risk risky robust role rough routine rule run safe
    safeguard sample satisfaction satisfactory satisfy scale scan scarce scattered scenario scope screen
    script scrutiny seamless secure seek segment select selection selective send sense separate sequence
    serious setback severe shallow shape share shift shortcut shorten significant signal simplify
    simultaneous situation sizeable skeleton skill slice slight slip smart smooth solid solution solve
    sooner sort span spare speculate speed spend split spontaneous spot stable stack stage stale standard
    statistic steady stick stimulate straightforward strategic strategy strength strengthen strict strong
    structure struggle stuck style subsequent substantial substitute subtract suboptimal successive sudden
    suffice sufficient suit suitable superficial superfluous superior supply support suppose surface
    surprise suspect suspend sustain switch symptom sync synchronise synchronize systematic tackle tailor
    target technical technique template temporary tempt tendency term test theme theory thorough threshold
    tidy tie tight tip tolerance tolerant tolerate trace track trade-off trait transition transparency
    treat trend trial trigger trivial trouble troubleshoot troublesome truncate truth turn-taking typical
    typo typically unable unacceptable unanswered unavailable unaware unbiased uncertainty uncommon
    uncomfortable uncover undecided underestimate underlying undermine underuse undesirable undo
    unexpected unfamiliar unfinished unfortunate uninterested unify unique universal unknown unlock
    unnecessary unpleasant unpopular unpredictable unreasonable unrelated unreliable unresolved
    unresponsive unstructured unsupported unusual unwanted upfront upgrade upsell upset urge urgency
    urgent usage useless utility vagueness valid validity valuable value vanish variable variation variety
    vary verification versatile viable view visible visual vital vivid volunteer vulnerable warn warning
    weak weakness weigh welcome whitespace widespread willing willingness wisdom withdraw wonder
    workaround workflow workload worsen worth worthwhile yield
"""
DOMAINS: Final = """
    specialist venue disclaimer runner investor accessory account adult airline album amenity analytics
    animated appetite applicant appliance application archive article artwork asset assignment assortment
    attendance attribute audience availability award baggage balance banner barcode bargain basket
    bestseller bilingual biography blockbuster bookmark bracket brand broadcast brochure browse browser
    budget-friendly bulletin business buyer cancellation cart cartoon catalogue catalog category chapter
    character chart checkpoint checklist chronological cinema classical colour color column comedic
    commerce commission commute company concert consumer contract conversion copy copyright course courier
    coverage crash credential credit critic cuisine cultural culture currency curriculum dashboard deposit
    destination diagram diet dietary digital dining director discount documentary donation download
    dramatic dubbed economy editor education electronics employment encryption entertainment episode
    equipment estimate exhibition expense export fashion fee festival fiction filename finance financial
    firmware fixture footage format franchise freight fuel funding furniture gadget gallery game gaming
    genre gift grade graph graphic hardware headline heading heatwave hero heroine historical hobby
    holiday household housing icon illustrated imagery import industry ingredient inquiry insurance
    interface interview inventory investment itinerary jacket job journal journey keyboard keyword label
    landmark laptop layout leaflet legal lesson lifestyle literature loan logistics lyric machine magazine
    maintenance manual market marketing material measurement mechanic media medium membership merchandise
    metadata metric mobile module motor multilingual musical narrative nature network newsletter
    nonfiction notebook notification novel nutrition offline package packaging paragraph parental
    passenger patch performer permit photography physical platform playlist plot podcast poem poetry
    policy popcorn popularity portfolio portrait poster premiere preview price-sensitive printer product
    production programme program project promotion property protocol publication publisher puzzle quiz
    quote realism rebate receipt reboot recommender record recording referral refundable regulation
    release reminder remake rental renewal replay requirement retailer retro revenue romance romantic
    roundup row runtime safety salary sale satire scenery science scientific scifi sci-fi score screenplay
    seafood seasonal security seller sequel shipment shipping shopper shortlist sightseeing site sketch
    social software soundtrack souvenir spam speciality spoiler sponsor spreadsheet statistics stock
    storyline streaming studio style subgenre subscriber subscription subtitle superhero supplier
    supplement surcharge suspense synopsis tariff tax technology tension textbook theatre theatrical
    thriller ticket timeline timetable tourist trailer training transaction transport travel traveller
    traveler trilogy trivia tutorial unit update upload vegan vegetarian vehicle vendor viewer viewing
    villain vintage violence violent virtual visit vote voucher wallet warranty webpage website wholesale
    wishlist workout workshop zombie
"""

_STEMS: Final = stems(
    SERVING,
    DOING,
    QUALITIES,
    TOPICS,
    TOOLS,
    TALKING,
    ACTING,
    DOMAINS,
    " ".join(sorted(COMMON)),
    " ".join(sorted(vocabulary.VOCABULARY)),
    vocabulary.FUNCTION.replace("'", ""),
)


_DERIVED: Final = re.compile(
    r"[a-z]{3,}[st]ions?|[a-z]{4,}i[sz]ations?|[a-z]{5,}ments?|[a-z]{4,}[ai]bilit(?:y|ies)"
    r"|[a-z]{3,}(?:i|ed|ful|ive|less|ous)ness|[a-z]{3,}(?:al|ing|ous|ive|ful|ed|less)ly"
)
"""Endings that make abstract nouns and adverbs of other words, and that no name has: behind so many letters
"Clement", "Inverness" and "Kelly" are none of them."""

_PREFIXED: Final = re.compile(r"(?:re|un|mis|non|pre)([a-z]{4,})")


def ordinary(word: str) -> bool:
    """Whether a folded word is one that lessons are said in."""
    bare = word.removesuffix("'s").removesuffix("'")
    parts = [part for part in bare.replace(".", "-").split("-") if part]
    return all(_is_known(part) for part in parts)


def _is_known(part: str) -> bool:
    if stem(part) in _STEMS or _DERIVED.fullmatch(part):
        return True
    again = _PREFIXED.fullmatch(part)
    return again is not None and stem(again[1]) in _STEMS


__all__ = ["ordinary"]
