"""Names that are known beforehand: of firms, places and people. Evidence only: a name need not be listed.

Everything is folded (lower case, no accents). The lists are short on purpose; what no list knows is judged by
capitals and by the words around it.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FIRMS: Final = _words(
    """
    adobe airbnb airbus amazon apple barclays boeing bosch chase cisco citibank comcast costco ebay ericsson
    etsy facebook ford google honda ibm ikea intel lyft mastercard meta microsoft nasa netflix nike nokia
    oracle paypal philips samsung shell siemens sony spotify starbucks target tesla toyota uber verizon visa
    vodafone walmart zara
    """
)
"""Firms whose names are better known than any person's of that name; some are ordinary words as well."""
PLACES: Final = _words(
    """
    accra adelaide afghanistan alabama alaska albania alberta algeria amsterdam ankara argentina arizona
    arkansas armenia athens atlanta auckland austin australia austria baghdad baltimore bangalore bangkok
    bangladesh barcelona bavaria beijing belarus belfast belgium berlin birmingham bogota bolivia bosnia
    boston brazil brisbane bristol brooklyn brussels budapest bulgaria busan cairo calgary california cambodia
    cambridge cameroon canada caracas cardiff casablanca catalonia chennai chicago chile china cleveland
    cologne colombia colorado connecticut copenhagen croatia cuba cyprus czechia dallas delaware delhi denmark
    denver detroit dhaka doha dubai dublin ecuador edinburgh egypt england estonia ethiopia finland florence
    florida france frankfurt geneva georgia germany ghana glasgow greece guatemala haifa haiti hamburg hanoi
    havana hawaii helsinki honduras houston hungary hyderabad iceland idaho illinois india indiana indonesia
    iowa iran iraq ireland israel istanbul italy jakarta jamaica japan jerusalem johannesburg kansas karachi
    kazakhstan kentucky kenya kiev kolkata korea kuwait kyiv kyoto lagos lahore laos latvia lebanon leeds
    libya lima lisbon lithuania liverpool london louisiana luxembourg lyon madrid maine malaysia malta
    manchester manhattan manila manitoba marseille maryland massachusetts melbourne memphis mexico miami
    michigan milan minneapolis minnesota mississippi missouri moldova monaco mongolia montana montevideo
    montreal morocco moscow mozambique mumbai munich myanmar nairobi namibia naples nashville nebraska nepal
    nevada nicaragua nigeria norway oakland ohio oklahoma oman ontario oregon orlando osaka oslo ottawa oxford
    pakistan panama paraguay paris pennsylvania perth peru philadelphia phoenix pittsburgh poland portland
    porto portugal prague qatar quebec queens queensland quito riyadh romania rome rotterdam russia rwanda
    sacramento santiago saskatchewan scotland seattle senegal seoul serbia seville shanghai sheffield shenzhen
    sicily singapore slovakia slovenia somalia spain stockholm sudan sweden switzerland sydney syria taiwan
    tampa tanzania tasmania tehran tennessee texas thailand tokyo toronto tunisia turin turkey tuscany uganda
    ukraine uruguay utah uzbekistan valencia vancouver venezuela venice vermont vienna vietnam virginia wales
    warsaw wellington wisconsin wyoming yemen zambia zimbabwe zurich
    """
)
"""Places even without their capital in a text that has others ("I live in boston", typed in haste)."""
AMBIGUOUS: Final = _words(
    """
    ace alexa amber angel april art autumn baker basil bill bliss bond buck carter case chance chase christian
    cook crystal daisy dawn dean drew duke earl echo faith frank gene ginger grace grant guy harmony hazel
    heather holly hope hunter iris ivy jack jade jasmine jay joy june king lane lee leo lily major mark mason
    max may melody mia miles misty olive page pat pearl penny poppy prince ray reed rich river rob robin rocky
    rose ruby rusty sandy siri skip sky sonny sterling stormy sue summer sunny victor violet wade ward will
    """
)
"""Names that are also words a speaker may say of themselves, and so prove nothing after "I'm"."""
GIVEN: Final = _words(
    """
    aaron abby abdul abdullah abigail abraham adam adrian agnes ahmad ahmed aidan aisha akira alan albert
    alejandro alessandro alex alexander alexandra alexis alfred ali alice alicia alina alison allison amanda
    amelia amina amir amit amy ana anastasia anders andre andrea andreas andrew andrzej andy angela anika anil
    anita anna anne annie anthony antoine anton antonio anya ariana arjun arthur arturo asha ashley astrid
    audrey ava avi aya ayesha barbara beatrice bella ben benjamin bernard beth betty beverly bianca billy
    bjorn bob bobby boris brad bradley brandon brenda brian bridget bruce bruno bryan caleb camila carl carla
    carlos carly carmen carol caroline catherine cathy cecilia charles charlie charlotte chen cheryl chiara
    chloe chris christina christine christopher claire clara claudia colin connor craig cynthia dan daniel
    daniela danny darren dave david deborah deepak deepika denise dennis derek diana diane diego dimitri
    dmitri dominic donald donna dorothy doug douglas dylan edith eduardo edward eileen elaine elena eli elias
    elijah elizabeth ella ellen elly elsa emily emma emmanuel enrique eric erica erik erin esther ethan eugene
    eva evan eve evelyn ezra farah fatima felix fernando fiona florence francesca francesco francis francisco
    frank fred freya gabriel gabriela gareth gary gemma geoff george georgia gerald gianni gilbert giulia
    giuseppe gloria gordon greg gregory greta guillermo gustavo hamza hana hannah hans harold harriet harry
    haruto hassan heidi heinrich helen helena henrik henry hiroshi hugo hussein ian ibrahim ida igor ingrid
    irina irving isaac isabel isabella ivan jacob jacqueline jake jakob jamal james jamie jan jane janet
    janice jared jason javier jean jed jeff jeffrey jenna jennifer jenny jeremy jerry jesse jessica jill jim
    jimmy jing joan joanna joao joe joel johan johanna john johnny jon jonas jonathan jordan jorge jose joseph
    josh joshua joyce juan juanita judith judy julia julian julie julio justin kamal karen karim karin karl
    kate katherine kathleen kathy katie katya kayla keith kelly ken kenji kenneth kevin khadija khalid kim
    kimberly kofi kristen kumar kunal kurt kyle lars laura lauren laurent lena leon leonard leonardo leticia
    liam lin linda ling lisa liu liz logan lorenzo louis louise lucas lucia lucy luigi luis luka lukas luke
    lydia madison magda malik manning manuel marc marcel marcia marco marcos margaret maria mariam marie mario
    marta martha martin mary masha mateo matt matteo matthew maurice maya megan mei melanie melissa mercedes
    michael michelle miguel mikael mike mikhail mila milan mildred ming miriam mohamed mohammad mohammed molly
    moses muhammad mustafa nadia nancy naomi natalia natalie natasha nathan ned neha neil nicholas nick nicola
    nicole nikhil nina noa noah nora norman oleg olga oliver olivia olly omar oscar otto pablo pamela paolo
    patricia patrick paul paula pavel pedro peggy peter petra phil philip phillip pierre piotr polly priya
    rachel rafael rahul raj ralph ramon raquel raul ravi raymond rebecca regina rex ricardo richard rita
    robert roberta roberto rodrigo roger ron ronald rosa rosie roy ruth ryan sabrina sally salma sam samantha
    samir samuel sanjay sara sarah sasha scott sean sebastian sergei sergey sergio seth shannon sharon shauna
    sheila shirley silvia simon simone sofia sonia sophia sophie stacy stanley stefan stella stephan stephanie
    stephen steve steven stuart susan suzanne sven svetlana sylvia takashi tamar tamara tanya tara tariq
    tatiana ted teresa terry theo theodore theresa thomas tiffany tim timothy tina tobias toby todd tom tomas
    tony tracy trevor tyler uma ursula valentina valeria vanessa vera veronica vicky victoria vikram vincent
    viola virginia vladimir walter wanda wayne wei wendy wilfred wilhelm william winifred xavier yael yan
    yasmin ying yosef yuki yusuf yvonne zach zachary zainab zoe
    """
)
"""Given names that are hardly ever anything else."""

__all__ = ["AMBIGUOUS", "FIRMS", "GIVEN", "PLACES"]
