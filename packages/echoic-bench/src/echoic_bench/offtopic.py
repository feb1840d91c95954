"""What memory has nothing to say to: backchannels, remarks beside the matter, general knowledge. Data only.

Half of the lines, two by two, are for choosing (`CHOOSING`), the others for measuring (`MEASURING`): look at
the figures of the latter once a choice is made, and change nothing because of them.
"""

from __future__ import annotations

FILLERS = """\
Okay.
ok
Uh huh.
mm-hmm
Yeah.
yep yep yep
Right.
right, right
Sure.
Sure, sure.
Got it.
got it thanks
I see.
Ah, I see, okay.
Alright.
all right then
No.
nope
No no no.
Hm.
hmm let me think
Let me think for a second.
One moment please.
just a sec
Hang on.
Hold on, hold on.
Hello?
hello hello
Hi there!
Hey, good morning.
Good afternoon.
good evening to you
Are you there?
are you still there
Can you hear me?
can you hear me now
I can't hear you very well.
you're breaking up
Sorry, say that again?
sorry what was that
Pardon?
Could you repeat that, please?
Thanks.
thank you so much
Thanks, bye!
thank you bye bye
Cheers, mate.
Lovely, thank you.
Great.
great stuff
Perfect.
perfect that's perfect
Wonderful!
brilliant, thanks ever so much
Awesome.
cool cool
Nice one.
oh nice
Oh wow.
no way
Really?
are you serious
Oh dear.
oh no
Oh my goodness.
good grief
That's funny.
haha
Ha, very good.
you're hilarious
Exactly.
exactly that
That's right.
that is correct
Absolutely.
definitely
Of course.
fair enough
Never mind.
never mind forget I spoke
It doesn't matter.
doesn't matter carry on
Go on.
go ahead
Go ahead, I'm listening.
please continue
Sorry, I was talking to someone else.
sorry that wasn't for you
Bless you.
excuse me
Excuse me one second.
ugh
Um.
um so
Well.
well you know how it is
So anyway.
anyway
Bye.
bye now
Goodbye then.
take care
Take care of yourself.
talk to you later
See you.
have a nice day
You too.
you as well
Same to you.
that's all
That's everything, thanks.
that'll be all for today
No, that's it.
nothing else
I think we're done here.
I have to run
Gotta go, bye.
I'll call back later
I'll ring again some other time.
the line is terrible
What a racket out there.
turn that radio down would you
Somebody's at the door.
the doorbell just went
There's a siren going past.
the dog won't stop barking sorry
Sorry, the baby's crying.
shh quiet
Quiet, I'm on the phone!
not now I'm on a call
Put that down, please.
don't touch that
Careful, it's hot.
ouch
Oops, dropped it.
I nearly dropped the phone
My battery's about to die.
I'm on two percent
Let me put you on speaker.
you're on speaker now
I'm just parking.
I'm going through a tunnel
I'm in a lift, you may lose me.
it's very windy here
Is it raining where you are?
what a day
What's the weather like today?
lovely weather isn't it
It's freezing.
it's boiling in here
Am I talking to a robot?
are you a real person
Are you a machine?
you sound very human
What's your name again?
who am I speaking to
Do you have feelings?
do you ever sleep
Can you sing?
sing me something
Tell me a joke.
tell me something interesting
Knock knock.
guess what
Surprise me.
I'm bored
How are you?
how are you doing today
I'm fine, thanks, and you?
not too bad
Can't complain.
same old same old
Testing, testing.
one two three testing
Test.
this is a test
qwertz zuiop
asdf asdf
lorem ipsum dolor sit amet
blah blah blah
La la la.
tra la la
Yes please.
yes please do
No thank you.
no thanks I'm good
Maybe.
maybe later
I guess so.
I suppose
I'm not sure.
not really
I don't think so.
I don't know
Who knows.
whatever
Whatever you say.
up to you
As you like.
I don't mind
Sounds good.
sounds good to me
That works.
works for me
Makes sense.
that makes sense
Understood.
noted
Let's do that.
let's go
Shall we start?
where were we
What was I saying?
I lost my train of thought
Sorry, go on.
you were saying
Is this being recorded?
is this thing on
How long will this take?
hurry up please
I haven't got all day.
please be quick
Could you speak up?
a bit louder please
Slower, please.
not so fast
In English, please?
what does that mean
Can you connect me to a human?
let me speak to a manager
Operator!
representative
Press one, right?
hash
Main menu.
go back
Start over.
cancel
Stop.
stop talking
Wait.
wait wait wait
Wrong number, sorry.
I think I dialled wrong
Who's that laughing?
there's an echo
I hear myself twice.
that's an odd noise
What was that beep?
the signal is bad in here
Excellent, much obliged.
ta very much
Righto.
okey dokey
Fantastic news.
congratulations
Happy New Year!
merry christmas to everyone
Fingers crossed.
touch wood
Long story.
don't ask
You don't say.
tell me about it
It is what it is.
that's life
Time flies.
is it that late already
Goodness, look at the time.
I'd better let you go
"""

KNOWLEDGE = """\
What's the capital of France?
who wrote Hamlet
How many planets are there in the solar system?
how far away is the moon
Who painted the Mona Lisa?
what is the boiling point of water
What's seven times eight?
what is the square root of one hundred and forty four
Who was the first person on the moon?
when did the second world war end
How do you spell necessary?
what does photosynthesis mean
What's the tallest mountain in the world?
which is the longest river in Africa
How many ounces are in a pound?
how many kilometres is ten miles
What's the currency of Japan?
what language do they speak in Brazil
Who invented the telephone?
who discovered penicillin
What year did the Titanic sink?
when was the Eiffel Tower built
How does a microwave oven work?
why is the sky blue
What causes thunder?
how are rainbows formed
Who won the World Cup in 1998?
how many players are on a cricket team
What's the population of Canada?
what is the largest desert
How long do tortoises live?
do penguins have knees
What do koalas eat?
how fast can a cheetah run
Who composed the Four Seasons?
which band sang Bohemian Rhapsody
What's the chemical symbol for gold?
what is the speed of light
How many bones are in the human body?
what does the liver do
Convert twenty degrees Celsius to Fahrenheit.
how many cups in a litre
What's the time difference between London and Tokyo?
what time is it in New York
Is it a leap year this year?
how many days are in February
What day of the week is Christmas?
when does summer time begin
Who is the president of the United States?
who is the king of Spain
How do I boil an egg?
how long do you cook pasta
What's a good recipe for pancakes?
how do you make bread rise
What's the difference between a crocodile and an alligator?
is a tomato a fruit
What is inflation?
how does compound interest work
What's the exchange rate of the dollar to the euro?
how is the stock market doing
What does HTML stand for?
how do I reset a router
What's the latest version of Android?
who founded Microsoft
Define serendipity.
what's another word for happy
Translate good morning into Italian.
how do you say thank you in Japanese
What's the plot of Romeo and Juliet?
who directed Jaws
How many Star Wars films are there?
who played James Bond first
What's the news today?
what happened in the election
Will it rain tomorrow in Madrid?
is there snow in the Alps now
What's the fastest train in the world?
how long is a flight from Paris to Rome
How tall is the Statue of Liberty?
where is Machu Picchu
Who was Cleopatra?
why did the Roman Empire fall
What is a black hole?
how old is the universe
How do vaccines work?
what is a virus
What's the difference between weather and climate?
what is the ozone layer
How many strings does a violin have?
what key is Für Elise in
What's the meaning of life?
does God exist
Can fish feel pain?
how do bees make honey
Which country has the most islands?
what's the smallest country in the world
When was the printing press invented?
who built the pyramids
What's the freezing point of alcohol?
what is steel made of
How many zeros are there in a million?
what's fifteen percent of two hundred
What's the opposite of nocturnal?
what rhymes with orange
Who wrote The Great Gatsby?
how many chapters does Don Quixote have
What's the national animal of Scotland?
what are the colours of the Irish flag
How does a jet engine work?
why do cats purr
What is quantum computing?
explain the theory of relativity
"""

_FILLERS, _KNOWLEDGE = FILLERS.splitlines(), KNOWLEDGE.splitlines()
# two by two: neighbours are often two wordings of one remark, and must not be in both halves
_HALF = {"fillers": _FILLERS, "knowledge": _KNOWLEDGE}
CHOOSING = {name: tuple(t for i, t in enumerate(lines) if i // 2 % 2 == 0) for name, lines in _HALF.items()}
MEASURING = {name: tuple(t for i, t in enumerate(lines) if i // 2 % 2) for name, lines in _HALF.items()}

__all__ = ["CHOOSING", "FILLERS", "KNOWLEDGE", "MEASURING"]
