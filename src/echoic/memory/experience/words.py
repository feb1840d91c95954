"""The ordinary words lessons are said in, beyond those of trade: serving, talking, trying, tools.

A lesson may use no word that is not known to be one of these; so a name that no list holds cannot pass
either. Lists only, compared by stem.
"""

from __future__ import annotations

from typing import Final

from echoic.memory.listening.lexicon import COMMON
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
    knowledge history log logs data dataset file files document documents record records
"""

_STEMS: Final = stems(
    SERVING,
    DOING,
    QUALITIES,
    TOPICS,
    TOOLS,
    " ".join(sorted(COMMON)),
    " ".join(sorted(vocabulary.VOCABULARY)),
    vocabulary.FUNCTION.replace("'", ""),
)


def ordinary(word: str) -> bool:
    """Whether a folded word is one that lessons are said in."""
    bare = word.removesuffix("'s").removesuffix("'")
    parts = [part for part in bare.replace(".", "-").split("-") if part]
    return all(stem(part) in _STEMS for part in parts)


__all__ = ["ordinary"]
