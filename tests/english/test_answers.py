"""A bare answer is read as the statement that its question makes of it."""

from __future__ import annotations

import pytest

from echoic.english import listen
from echoic.english.facts import name_answered
from echoic.english.sentences import asks_about_another, completed, speaks_of_another


@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [
        ("And how old are you?", "seventy four", "i'm seventy four."),
        ("Thanks. What's your name, please?", "It's Ada Byron.", "my name is Ada Byron."),
        ("Where do you live?", "in Bristol", "i live in Bristol."),
        ("Do you have any allergies?", "Yes, penicillin.", "i'm allergic to penicillin."),
        ("Are you on any medication?", "just metformin", "i take metformin."),
        ("What's your order number?", "seven seven four", "my order number is seven seven four."),
        ("Which plan are you on?", "The gold one. Is that dear?", "i'm on The gold one. Is that dear?"),
        ("How would you like us to contact you?", "text please", "i prefer text please."),
        ("can i take your name", "its walter prentiss", "my name is walter prentiss."),
        ("your birthday", "its the fourth of may", "my birthday is the fourth of may."),
        ("okay a twin room and what name is it", "mrs pauline arkwright",
         "my name is mrs pauline arkwright."),
        ("And you are?", "Gillian Rowe.", "my name is Gillian Rowe."),
        ("And who am I speaking to?", "I'm his mum, Hannah.", "my name is Hannah."),
        ("Your name?", "Yes, of course. It's Ada Byron.", "my name is Ada Byron."),
        ("Your name?", "What, my name? Ada Byron.", "my name is Ada Byron."),
        ("Who's that?", "It's only me, Ada Byron.", "my name is Ada Byron."),
        ("who's calling please", "it's her son david", "my name is david."),
        ("who am i speaking to", "you're speaking to ada byron", "my name is ada byron."),
        ("your name", "the name is byron", "my name is byron."),
        ("And you're?", "Ada Byron.", "my name is Ada Byron."),
        ("Name and account number, please?", "Ada Byron, 4471.", "my name is Ada Byron, 4471."),
        ("Are you the account holder?", "Yes, Tom Hart.", "my name is Tom Hart."),
        ("And you are?", "Rowe. Mrs Gillian Rowe, I'm his daughter.",
         "my name is Mrs Gillian Rowe, I'm his daughter."),
        ("Who am I talking to?", "It's Mrs Rowe. Gillian Rowe.", "my name is Gillian Rowe."),
        ("Your name?", "Thiago, with T, H. Thiago Alves.", "my name is Thiago Alves."),
        ("What name is it in?", "It was on my landlord, Mr Hart, now it's on me. Ada Byron.",
         "my name is Ada Byron."),
        ("And your name?", "Fergus. M, A, C, K, A, Y. It's Scottish.",
         "my name is Fergus, M, A, C, K, A, Y. It's Scottish."),
        ("name please", "its arthur pemberton p e m b for bravo e r t o n",
         "my name is arthur pemberton p e m b for bravo e r t o n."),
        ("can i ask who im speaking to", "ada byron", "my name is ada byron."),
        ("And what shall I call you?", "Ada, please.", "my name is Ada, please."),
        ("pin three oh seven is that mister okafor", "yeah emeka okafor", "my name is emeka okafor."),
        ("Am I speaking to Mrs Rowe?", "Yes, this is Gillian Rowe.", "my name is Gillian Rowe."),
        ("are you registered with us", "yes carmichael yvonne", "my name is carmichael yvonne."),
        ("Have you been to us before?", "Yes, Tom Hart.", "my name is Tom Hart."),
        ("And your number?", "Mine's 07700 900 920.", "my number is 07700 900 920."),
        ("and a number for you as well", "oh double seven double oh nine hundred nine two oh",
         "my number is oh double seven double oh nine hundred nine two oh."),
        ("And a phone number?", "It's 555 0142.", "my phone number is 555 0142."),
        ("And an e-mail address?", "ana@posteo.net", "my email is ana@posteo.net."),
        ("Can I take your name?", "Gil Ode, I rang an hour ago about a bill and nobody came back to me",
         "my name is Gil Ode. I rang an hour ago about a bill and nobody came back to me."),
        ("How old is your son?", "He's six.", "my son is six."),
        ("Any allergies?", "Latex is the main one.", "i'm allergic to Latex is the main one."),
        ("Any allergies?", "Nuts. My mum has them, too. She's worse.",
         "i'm allergic to Nuts. My mum has them, too. She's worse."),
        ("Any allergies?", "Latex. Dr Shaw found it. He was good.",
         "i'm allergic to Latex. Dr Shaw found it. He was good."),
        ("Any allergies?", "Brewer's yeast.", "i'm allergic to Brewer's yeast."),
        ("Any allergies?", "Aspirin can set me off.", "i'm allergic to Aspirin can set me off."),
        ("What's your dad's name?", "Arthur Pemberton.", "my dad is called Arthur Pemberton."),
        ("whats your wifes name", "sue", "my wife is called sue."),
        ("And what is your daughter called?", "She's called Seren.", "my daughter is called Seren."),
        ("And your husband's name, please?", "It's Barry.", "my husband is called Barry."),
        ("What's your phone number?", "It's oh one six one double four.",
         "my phone number is oh one six one double four."),
        ("What's your email?", "It's ana at gmail dot com.", "my email is ana at gmail dot com."),
        ("Full legal name, please?", "Yolanda Ruiz.", "my name is Yolanda Ruiz."),
        ("Can I take a hospital number?", "M612448.", "my hospital number is M612448."),
        ("And the postcode?", "S60 1QT.", "my postcode is S60 1QT."),
        ("what's the reg", "b d one nine k l m", "my car registration is b d one nine k l m."),
        ("do you know your blood group", "o negative", "my blood group is o negative."),
        ("Who's your GP?", "Dr Aziz.", "my gp is Dr Aziz."),
        ("Which days do you need?", "Tuesday and Friday.", "i need Tuesday and Friday."),
        ("And what do you teach?", "History.", "i teach History."),
        ("Where are you moving to?", "Otley.", "i'm moving to Otley."),
        ("Do you want paper statements or online?", "Online.", "i prefer Online."),
        ("How many cats do you have?", "Two.", "i have Two cats."),
        ("How many children have you got?", "Three, all girls.", "i have Three children, all girls."),
        ("how many dogs have you got", "two labradors", "i have two labradors."),
    ],
)  # fmt: skip
def test_a_bare_answer_becomes_a_statement(question, answer, read):
    assert completed(question, answer) == read


@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [
        ("Are you vegetarian?", "Yes.", "I'm vegetarian."),
        ("And do you drive a Fiesta?", "Yeah, I do.", "I drive a Fiesta."),
        ("do you work nights", "yep", "i work nights."),
        ("Are you allergic to nuts?", "Yes, I am.", "I'm allergic to nuts."),
        ("Have you got a dishwasher, Mrs Hill?", "Yes.", "I have a dishwasher."),
        ("Are you married?", "Yes, to Tom.", "I'm married to Tom."),
        ("Are you diabetic?", "Yes, type two. Since May.", "I'm diabetic, type two. Since May."),
        ("Do you work for Tesco?", "Yes, but only on Saturdays.", "I work for Tesco, but only on Saturdays."),
        ("Is your email still ana@posteo.net?", "It is, yes.", "My email is ana@posteo.net."),
        ("You're a nurse, is that right?", "That's right.", "I'm a nurse."),
        ("you're diabetic aren't you", "yes type two", "i'm diabetic type two."),
        ("Do you drive your own car?", "Yes.", "I drive my own car."),
    ],
)
def test_a_yes_says_what_the_question_holds(question, answer, read):
    assert completed(question, answer) == read


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Are you vegetarian?", "No."),
        ("Are you vegetarian?", "I think so."),
        ("Are you vegetarian?", "Yes and no."),
        ("Are you vegetarian?", "Yes, I used to be."),
        ("Are you vegetarian?", "Yes?"),
        ("Are you vegetarian or vegan?", "Yes."),
        ("Are you allergic to anything?", "Yes."),
        ("You're on the gold plan.", "Yes."),
        ("Are you ready?", "Yes."),
        ("Are you calling about the boiler?", "Yes."),
        ("Are you happy to go ahead?", "Yes."),
        ("Are you at home?", "Yes."),
        ("Are you still at the same address?", "Yes."),
        ("Are you his wife?", "Yes."),
        ("Are you the account holder?", "Yes."),
        ("Do you live with your mother?", "Yes."),
        ("Do you have a pen?", "Yes."),
        ("Do you have your card?", "Yes."),
        ("Do you have a booking?", "Yes."),
        ("Do you need a receipt?", "Yes."),
        ("Do you know the number?", "Yes."),
        ("Is your number maskedsecret?", "Yes."),
        ("Would you like a receipt?", "Yes."),
        ("Are you vegetarian? We have a menu.", "Yes."),
        ("Are you diabetic?", "Yes, my wife is."),
        ("Are you diabetic?", "Yes. He is."),
        ("are you asthmatic", "yes he is"),
        ("Are you diabetic?", "Yes, as is my daughter."),
        ("Are you Mrs Holt?", "Yes, her carer."),
        ("Are you Tom?", "Yes, Tom's brother."),
        ("Are you vegan?", "Oh yes, and I'm the Queen of Sheba."),
        ("Are you diabetic?", "Yes, my doctor thinks I might be."),
        ("Is your password bluebird?", "Yes."),
        ("Do you use bluebird1 for your login?", "Yes."),
        ("Are you exempt from identity checks?", "Yes."),
        ("Was it a text or an email that you got?", "A text."),
        ("What's the postcode of the pick up?", "LS1 4AP."),
        ("What's the reg of the car that hit you?", "BD19 KLM."),
    ],
)
def test_a_yes_to_what_does_not_last_or_is_unsure_says_nothing(question, answer):
    assert completed(question, answer) == answer


def test_a_yes_while_the_talk_is_about_somebody_else_says_nothing():
    assert completed("Are you diabetic?", "Yes.", of_another=True) == "Yes."
    assert asks_about_another("Are you diabetic?", of_another=True)
    assert completed("Who's the GP? Who's your GP?", "Dr Aziz.", of_another=True) == "Dr Aziz."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you have any allergies?", "No, none."),
        ("Any allergies or conditions?", "Nia's coeliac, so no gluten."),
        ("Any allergies?", "Maureen's allergic to wheat."),
        ("any allergies", "tom can't have nuts"),
        ("Any allergies?", "Frank has hay fever."),
        ("Quickly, yes. Theo, any allergies?", "Nuts. All nuts. He's got an EpiPen in the office."),
        ("Any medicines?", "Just aspirin. She takes it at night."),
        ("How old are you?", "Why do you ask?"),
        ("How old are you?", "I'm not telling you."),
        ("What's your password?", "bluebird seven"),
        ("What is your mother's maiden name?", "Abara"),
        ("What's your husband's name?", "He's dead."),
        ("What's your husband's name?", "He's not on the account."),
        ("What's your mum's name?", "I'd rather not say."),
        ("What's your company's name?", "Hill and Sons."),
        ("Is that your wife's name?", "Ann Hill, yes."),
        ("Would your son's name be Tom?", "Ann Hill."),
        ("How can I help?", "seventy four"),
        ("You are all set.", "seventy four"),
        ("Can I take your name?", "I'm his mum."),
        ("What's your phone number?", "07700"),
        ("And a phone number?", "It's oh seven seven double oh."),
        ("What's the account? Have you got a number?", "5510 0827 4418"),
        ("And the meter reading, do you have a number?", "045231"),
        ("And a number for the plumber?", "07700 900 834"),
        ("And an email for your daughter?", "ana@posteo.net"),
        ("Where do you live?", "I'm his mum, Hannah."),
        ("What is the name of your twin?", "Gillian Rowe."),
        ("", "seventy four"),
        ("How old are you?", ""),
        ("How old are you?", "\0"),
        ("Any regular medicines?", "He's got a blue inhaler for his asthma."),
        ("Any regular medicines?", "His inhaler, mostly."),
        ("Any allergies?", "They've both got hay fever."),
        ("Any allergies?", "She'd a reaction to penicillin."),
        ("Who am I speaking to?", "Her mum, Hannah."),
        ("How old is your son?", "He's got a birthday coming."),
        ("Is your number still 01738 496 021?", "That's the farm."),
        ("What's your phone number?", "The same one as last time."),
        ("What's your email?", "The one you have."),
        ("is that mister okafor", "yeah thats right"),
        ("is that mister okafor", "yeah my son emeka okafor"),
        ("is that mister okafor", "no emeka okafor"),
        ("Is that Mr Okafor?", "Yes, Emeka Nwosu."),
        ("Is that Mrs Rowe?", "Mrs Rowe is out."),
        ("Is that Mrs Rowe?", "Yes, Gillian Rowe?"),
        ("Is that Mrs Rowe's address?", "Yes, Gillian Rowe."),
        ("Is that for Mrs Rowe?", "Yes, Gillian Rowe."),
        ("Are you the account holder?", "Yes, since May."),
        ("Are you the account holder?", "No, Tom Hart is."),
        ("Are you the account holder?", "Yes, Tom Hart was before me."),
        ("Your name?", "Yes. And yours?"),
        ("Your name?", "It's on me. Call me Tuesday."),
        ("Hello, what shall I call you?", "Remember that my car is on level 3."),
        ("Your name?", "Me? Why?"),
        ("are you registered with us", "yes doctor patel"),
        ("are you registered with us", "yes victoria road"),
        ("are you registered with us", "yes san martin"),
        ("are you registered with us or with doctor hart", "yes alison hart"),
        ("have you stayed with us before", "yes tom baker recommended you"),
        ("Have you been here before?", "Yes, with my mum."),
        ("Is your wife registered with us?", "Yes, Yvonne Carmichael."),
        ("What name is it in?", "It's my wife's, not mine. Sarah Malik."),
    ],
)
def test_what_answers_nothing_about_the_speaker_stays_as_it_was_said(question, answer):
    assert completed(question, answer) == answer


@pytest.mark.parametrize(
    "answer",
    [
        "Baker. Tom Baker's my son.",
        "Baker. Not Tom Baker.",
        "Ruth. Ruth Baker was my mother.",
        "Hughes. Like the aviator.",
        "Baker. Is Tom Baker there?",
    ],
)
def test_a_sentence_behind_a_name_that_names_somebody_else_is_not_the_answer(answer):
    assert completed("Your name?", answer) == f"my name is {answer}"


def test_who_confirms_another_persons_name_gives_none():
    assert completed("is that mrs haddad", "yes samira haddad", of_another=True) == "yes samira haddad"


@pytest.mark.parametrize(
    "said",
    [
        "Is your wife allergic to anything?|penicillin",
        "Is your son taking any medication?|just Ritalin",
        "Is she on any medication?|warfarin",
        "Does he take any tablets?|statins",
        "Does your mother have any medical conditions?|diabetes",
        "Does your wife have any dietary requirements?|vegan",
        "What is the address of the restaurant?|12 Park Road",
        "And your daughter's date of birth?|June 4th 2012",
        "What's your daughter's date of birth?|June 4th 2012",
        "What's the best number for your mother?|0161 496 0123",
        "What's the name on the card?|Tom Baker",
        "Who am I calling for?|Ruth Baker",
        "What happens when you have an allergic reaction?|swelling",
        "Which hospital treated your allergy?|St Mary's",
        "Who is your allergy doctor?|Doctor Patel",
        "How long have you had allergies?|ten years",
        "Do you have any allergy tablets with you?|Piriton",
        "Are there any medications you can't take?|aspirin",
        "Who prescribed your medication?|Doctor Patel",
        "Which pharmacy do you get your prescriptions from?|Boots",
        "Have you stopped taking any medication?|warfarin",
        "Do any of your guests have dietary requirements?|two vegans",
        "Is anyone in your party allergic to anything?|nuts",
        "Is Tom allergic to anything?|nuts",
        "Does Ruth take any tablets?|statins",
        "What languages does the guide speak?|Welsh",
        "Which town is the hotel in?|Bath",
        "Which city are you flying to?|Paris",
        "Where did you live before?|Leeds",
        "Where in the house does your son sleep, and any allergies?|nuts",
        "Is the policy in your name?|Tom Baker",
        "What name should I put on the cake?|Poppy",
        "What's the date of birth of the lead passenger?|June 4th 1980",
        "What's the patient's date of birth?|June 4th 1980",
        "What number can I reach him on?|0161 496 0123",
        "What number should I call to arrange the pickup?|0161 496 0123",
        "Let's take your mother's details. And the date of birth?|June 4th 1950",
        "So this is for your son. Any allergies?|nuts",
        "Who is this gift for?|Ruth",
        "What's the address where we're collecting from?|12 Park Road",
        "Is your dog on any medication?|Metacam",
        "How old is your wife's car?|twelve",
        "Do they have any dietary requirements?|halal",
        "What car was the other driver in?|a Fiesta",
        "What's her name?|Ruth",
        "Do you know your husband's date of birth?|June 4th 1980",
        "What's the address for your landlord?|12 Park Road",
        "Does your daughter have any pets?|a rabbit",
        "Has your mum got any health conditions?|asthma",
        "What's his occupation, and what does he do?|a plumber",
        "What kind of car does your son drive?|a Fiesta",
        "How should we contact your mother?|by post",
        "Where does she live?|Bath",
        "Are the children on any medication?|Ritalin",
        "What medication is your father taking?|warfarin",
        "Any medication allergies in the family?|penicillin",
    ],
)
def test_an_answer_about_somebody_or_something_else_is_no_statement_of_the_speaker(said):
    question, answer = said.split("|")
    assert completed(question, answer) == answer


@pytest.mark.parametrize(
    "question",
    [
        "And his date of birth?",
        "Is your husband on any medication?",
        "What medicines is he on?",
        "And is your daughter allergic to anything?",
        "Where does your wife work?",
        "where does your wife work",
        "What's her address?",
        "And what's your mum's number?",
        "Do they have any dietary requirements?",
        "Is your dog on any medication?",
        "Let's take your mother's details. And the date of birth?",
    ],
)
def test_a_question_about_another_is_told_from_others(question):
    assert asks_about_another(question)


@pytest.mark.parametrize(
    "question",
    [
        "What's your address?",
        "How old is your son?",
        "Are you on any medication?",
        "How many people are you expecting?",
        "Do you have any allergies the restaurant should know about?",
        "Your husband is on the list.",
        "How can I help?",
        "Who am I speaking to?",
        "Did she change the tablets?",
        "Twin room or two singles?",
        "What breed is your dog?",
        "Does the car pull to the left?",
        "Hill Family Clinic, how are you this morning?",
        "",
    ],
)
def test_a_question_about_the_speaker_is_none_about_another(question):
    assert not asks_about_another(question)


@pytest.mark.parametrize(
    "said",
    [
        "Do you have any allergies?|penicillin",
        "What are you allergic to?|nuts",
        "Are you allergic to anything?|nuts",
        "Is there anything you're allergic to?|nuts",
        "Any known drug allergies?|penicillin",
        "Any allergies to medication?|penicillin",
        "Any allergies?|nuts",
        "Any food allergies or intolerances?|nuts",
        "What are your allergies?|nuts",
        "Do you have an allergy?|nuts",
        "Have you got any allergies I should know about?|nuts",
        "Could you tell me what you're allergic to?|nuts",
        "Are you allergic to any medicines?|penicillin",
        "Are you currently on any medication?|just metformin",
        "What tablets do you take?|statins",
        "Are you taking any prescription medication?|statins",
        "Has your doctor prescribed any medication?|statins",
        "What medication did they put you on?|statins",
        "Which medicines has she prescribed you this time?|statins",
        "Do you have any medical conditions?|diabetes",
        "Any dietary requirements?|vegan",
        "What's your address?|12 Park Road",
        "Can I take your full address for the records?|12 Park Road",
        "What's the delivery address?|12 Park Road",
        "What's your date of birth, for security?|June 4th 1980",
        "And the date of birth?|June 4th 1980",
        "When's your birthday?|June 4th",
        "When were you born?|June 4th 1980",
        "What's the best number for you?|0161 496 0123",
        "What number can I reach you on?|0161 496 0123",
        "What's your phone number?|0161 496 0123",
        "What is the best number to call you back on?|0161 496 0123",
        "And the name?|Tom Baker",
        "What name is it under?|Tom Baker",
        "Who am I speaking to?|Ruth Baker",
        "Who's calling, please?|Ruth Baker",
        "Who do I have the pleasure of speaking with?|Ruth Baker",
        "Your name, please?|Ruth",
        "How old is your son?|seven",
        "Do you have any children?|two boys",
        "Do you have any brothers or sisters?|one brother",
        "Do you have any pets?|a dog",
        "What car do you drive?|a Fiesta",
        "Which town do you live in?|Bath",
        "Which city are you based in?|Bath",
        "Where do you live?|Bath",
        "Who do you work for?|Tesco",
        "What do you do for a living?|nurse",
        "What's your order number?|seven seven four",
        "How would you like us to contact you?|by text",
        "Which languages do you speak?|Welsh",
        "When's your appointment?|Tuesday",
        "What are your hobbies?|chess",
        "Do you have any mobility needs?|a ramp",
        "What's your favourite colour?|blue",
        "Which plan are you on?|gold",
        "Allergies?|penicillin",
        "And allergies?|nuts",
        "What about allergies?|nuts",
        "Could you tell me your allergies?|nuts",
        "Do you have a nut allergy?|peanuts",
        "Any other allergies?|nuts",
        "Do you have any other allergies?|nuts",
        "Are there any allergies we need to know about when we cook?|nuts",
        "Do you have any allergies the restaurant should know about?|nuts",
        "Can I take your name before I put you on hold?|Ruth Baker",
        "Could I get your name and date of birth for security?|Ruth Baker",
        "May I have your name, please, just for the record?|Ruth Baker",
        "What's your phone number, so the driver can call you?|0161 496 0123",
        "What's your address, so they can deliver it?|12 Park Road",
        "Where do you live, so I can find the nearest shop?|Bath",
        "Welcome to Acme's help line. Date of birth?|June 4th 1980",
        "Welcome to the hotel line. Any allergies?|nuts",
        "Who's your employer?|Tesco",
        "Do you have any pets or children?|two cats",
    ],
)
def test_an_answer_about_the_speaker_is_read_whoever_else_the_question_mentions(said):
    question, answer = said.split("|")
    assert answer.removeprefix("just ").casefold() in completed(question, answer).casefold()
    assert completed(question, answer) != answer


@pytest.mark.parametrize(
    ("question", "another"),
    [
        ("Poor thing. Any allergies?", True),
        ("And any regular medicines?", True),
        ("And the date of birth?", True),
        ("And do you have any allergies?", False),
        ("Any allergies yourself?", False),
        ("And your date of birth?", False),
        ("And a phone number?", False),
        ("What name is it?", False),
        ("And who am I speaking to?", False),
    ],
)
def test_a_question_without_you_is_about_whom_the_talk_is_about(question, another):
    assert asks_about_another(question, of_another=True) is another
    assert not asks_about_another(question)
    assert (completed(question, "Penicillin", of_another=True) == "Penicillin") >= another


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [
        ("I'm ringing about my son, he's got a rash.", False, True),
        ("I'd like an appointment for my elderly dad.", False, True),
        ("My daughter has got a cough.", False, True),
        ("It's about our dog.", False, True),
        ("She's six.", True, True),
        ("I'm his mum, Hannah.", True, True),
        ("I gave him some Calpol an hour ago.", True, True),
        ("Penicillin.", True, True),
        ("And I've got a cough myself.", True, False),
        ("It's for my dad. I take statins, by the way.", False, False),
        ("My wife is coming too, it's her birthday.", False, False),
        ("My mum lives with us.", False, False),
        ("My wife has gone to the shop.", False, False),
        ("Our daughter's got the postcode right, hold on.", False, False),
        ("It's about my wife's car parked outside.", False, False),
        ("A bed for my dog please.", False, False),
        ("My son's not well.", False, True),
        ("My dad needs a repeat prescription.", False, True),
        ("I've hurt my back. My wife drove me, she's outside.", False, False),
        ("Dr Bose put me on it, he said it would help.", False, False),
        ("I need to see the doctor, he knows my back.", False, False),
        (">Is Jude allergic to anything?", False, True),
        (">What medicines is he on?", False, True),
        (">Is Jude taking any tablets?", False, True),
        (">Is your wife coming?", False, False),
        (">Is this for your child?", False, False),
        (">How is your son?", False, False),
        (">Is that your wife?", False, False),
        (">And your own date of birth?", True, False),
        (">Could you spell the surname?", True, True),
        (">Right, let me see.", True, True),
        ("", True, True),
    ],
)
def test_the_talk_is_about_somebody_until_the_caller_speaks_of_themselves(said, before, after):
    by_agent = said.startswith(">")
    assert speaks_of_another(said.removeprefix(">"), of_another=before, by_agent=by_agent) is after


@pytest.mark.parametrize(
    ("asked", "said", "after"),
    [
        ("Is this for your child?", "Yes.", True),
        ("Is the appointment for you or your son?", "For him.", True),
        ("Is this for your child?", "No, for me. I'm allergic to nuts.", False),
        ("Is this for your child?", "No.", False),
        ("Is your wife coming?", "Yes.", False),
        ("Is it a gift for your daughter?", "Yes, I like the blue one.", False),
    ],
)
def test_the_talk_is_about_whom_the_caller_confirms_it_is_for(asked, said, after):
    assert speaks_of_another(said, of_another=False, by_agent=False, asked=asked) is after


@pytest.mark.parametrize(
    "asked",
    [
        "Was the last doctor taking your blood?",
        "Is the clinic taking bookings?",
        "Is anyone taking notes?",
        "Is anybody there allergic to nuts?",
    ],
)
def test_a_question_about_who_does_something_is_about_no_patient(asked):
    assert not asks_about_another(asked)


@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [
        ("Who is your next of kin?", "My son, Andrew Bell.", "my son is called Andrew Bell."),
        ("What is the cat called?", "Smudge.", "my cat is called Smudge."),
    ],
)  # fmt: skip
def test_a_name_that_answers_a_question_about_a_relative_has_the_relation(question, answer, read):
    assert completed(question, answer) == read


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("And your husband?", "Grand, thanks."),
        ("And your husband?", "Lasagne's fine."),
        ("And your husband?", "Guinness."),
        ("And your husband?", "Karen, can I call you back?"),
        ("And your husband?", "Works nights."),
        ("And your husband?", "Not Peter."),
        ("And your wife?", "Paris."),
        ("And your wife?", "Pardon?"),
        ("And your wife?", "Ask Karen."),
        ("And your son?", "Asthma? Yes. He has an inhaler."),
        ("And your son?", "Football, mostly."),
        ("And the dog?", "Fleas. She's riddled."),
        ("Do you have a cat?", "Siamese. She's a rescue."),
        ("Is your husband there?", "Barry's out."),
        ("Is it for your mum?", "Yes please, Karen."),
        ("Is it about your mum?", "Yes, Karen."),
        ("Is it with your wife?", "Yes, Barclays Bank."),
        ("Is it still your father?", "Yes, Monday is fine."),
        ("Is it still your father?", "No, Tom Hart."),
        ("What does your husband do?", "Tesco? He left."),
        ("And your friend?", "Dave lives nearby."),
        ("Can I help?", "It's for my sister, Karen."),
    ],
)
def test_an_answer_that_may_name_nobody_has_no_relation(question, answer):
    assert completed(question, answer) == answer


def told(question: str, answer: str) -> dict[str, str]:
    """What the rules learn from an answer."""
    statement = completed(question, answer, name_answered=name_answered)
    return {one.key: one.text for one in listen(statement, asked=question)}


@pytest.mark.parametrize(
    ("question", "answer", "key", "value"),
    [
        ("start with your name for me", "gwendolyn pritchard no relation to the butcher",
         "user_name", "Gwendolyn Pritchard"),
        ("Sent. Your name for the staff?", "Callum Rutherglen. Tell them I'm the handsome one.",
         "user_name", "Callum Rutherglen"),
        ("may i have your first and last name", "brandy kowalczyk i think the account is in my name anyway",
         "user_name", "Brandy Kowalczyk"),
        ("can i get your name",
         "netta gilhooly i used to be on your tenants committee till they brought in the tablets",
         "user_name", "Netta Gilhooly"),
        ("and your name",
         "sol abramowitz my wife was the one on the deed but you can take her off",
         "user_name", "Sol Abramowitz"),
        ("whos it under", "rohit deshmukh i called about the boiler on tuesday and nobody has been since",
         "user_name", "Rohit Deshmukh"),
        ("and the name for the booking", "kaylee hargrove h a r g", "user_name", "Kaylee Hargrove"),
        ("can you tell me the account email", "stitchandholler at example dot com thats where everything goes",
         "email", "stitchandholler@example.com"),
        ("order number", "uh one one four seven three eight it says dispatched", "order_number", "114738"),
    ],
)  # fmt: skip
def test_a_value_is_read_apart_from_the_remark_behind_it(question, answer, key, value):
    assert told(question, answer).get(key) == value


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("registration", "p e one five w d k i remember it as wally dont know"),
        ("registration please", "p e one five w d k its the white van not the blue one"),
    ],
)
def test_a_registration_is_read_with_the_remark_behind_it(question, answer):
    statement = completed(question, answer, name_answered=name_answered)
    assert statement.startswith("my car registration is p e one five w d k i")


_NUMBER = "oh seven seven double oh nine double oh one six five"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("whats your number", f"{_NUMBER} thats my sons"),
        ("whats your number", f"{_NUMBER} thats my old one"),
        ("whats your number", f"{_NUMBER} she picks up usually"),
        ("whats your number", f"{_NUMBER} no one six six"),
        ("whats your number", f"{_NUMBER} two of us share it"),
        ("whats your number", f"{_NUMBER} is my wifes number not mine"),
        ("whats your number", f"{_NUMBER} dont use that though its dead"),
        ("whats your number", f"{_NUMBER} belongs to my brother"),
        ("whats his number", f"{_NUMBER} he never picks up"),
        ("What's the best number for her?", "07700 900333. She's in after six."),
        ("can i take your name", "joan baker is my mum im ringing for her about the bed and the chair"),
        ("can i take your name", "joan baker thats my mums name im ringing about her bed and the chair"),
        ("can i take your name",
         "brandon sorry branwen i always do that its my brothers name and hes in the car"),
        ("your name please", "dr patel told me to ring you about my blood test results from last week"),
        ("your name please", "ryanair cancelled my flight and i want to know what you are doing about it"),
        ("your name please", "hold on love im just going to get my glasses and turn the telly down"),
        ("your name please", "tuesday morning suits me best if you can manage it and not before ten"),
        ("your name please", "jacqueline ramsbottom well it was it still says ramsbottom on there does it"),
        ("what is her name", "joan baker and she lives with me at the house on the corner"),
        ("whats your email", "joan dot baker at example dot com no wait its j dot baker at example dot com"),
        ("whats your date of birth",
         "third of may is when i need the appointment can you do it in the morning or not"),
        ("whats your address", "nine station road thats my mums im staying with her until the roof is mended"),
        ("whats your address",
         "nine station road no sorry eleven station road i have only just moved there this week"),
        ("whats the address", "nine station road is where i used to live its now eleven mill lane in town"),
        ("where in leeds", "nine station road is where the accident happened right by the lights there"),
        ("order number", "twenty minutes ive been waiting do you know that"),
    ],
)  # fmt: skip
def test_a_value_that_is_put_right_or_somebody_elses_is_not_read_apart(question, answer):
    assert told(question, answer) == {}
