"""What the phone itself says, in the languages it knows. Whatever else is said, the agent says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from echoic.errors import InvalidInput, brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The phone's own sentences in one language.

    Raises:
        InvalidInput: one is blank, there are no two fillers, or `greeting_known` has no place for the name.
    """

    greeting: str
    greeting_known: str
    """With {name} where the caller's name goes."""
    greeting_shared: str
    fillers: tuple[str, ...]
    """While a model thinks: the first once, then the others in turn."""
    sorry: str
    """A reply failed."""
    too_long: str
    """A reply was given up."""
    again: str
    """A reply was lost."""
    linked: str
    known_here: str
    """A code is good, and the phone itself is not linked."""
    no_code: str
    link_changed: str
    """To whoever calls from a line that was linked or unlinked since the last call."""
    proven: str
    not_proven: str
    """Whatever is wrong: too many, none set, not the right one."""
    old_pin: str
    new_pin: str
    pin_set: str
    still_there: str
    goodbye: str
    """To whoever is silent."""
    farewell: str
    """Where the agent hangs up without a word."""
    cut_off: str
    busy: str

    def __post_init__(self) -> None:
        texts = [getattr(self, name) for name in Phrases.__slots__ if name != "fillers"]
        if len(self.fillers) < 2 or not all(text.strip() for text in [*texts, *self.fillers]):
            raise InvalidInput("no phrase may be blank, and at least two fillers are needed")
        if "{name}" not in self.greeting_known:
            raise InvalidInput(f"greeting_known has no {{name}}: {brief(self.greeting_known)}")

    def filler(self, number: int) -> str:
        """What is said while a model thinks, the `number`-th time from 0."""
        others = len(self.fillers) - 1
        return self.fillers[number] if number == 0 else self.fillers[1 + (number - 1) % others]


ENGLISH: Final = Phrases(
    greeting="Hello! What can I do for you?",
    greeting_known="Welcome back, {name}. What can I do for you?",
    greeting_shared="Hello! Who am I talking to?",
    fillers=("One moment, please.", "I'm still looking.", "Thank you for waiting, it won't be long."),
    sorry="I'm sorry, something went wrong on my side. Could you say that again?",
    too_long="I'm sorry, I could not find that out in time. Can I help with something else?",
    again="I'm sorry, could you say that again?",
    linked="Thank you, this phone is linked now. I know you here as well.",
    known_here="Thank you, I know you in this call. The phone itself is not linked.",
    no_code="That code is wrong or has expired. Please get a new one.",
    link_changed=(
        "Since the last call this phone was linked to a web page, or a link was undone. If that "
        "was not you, say: I did not link this phone."
    ),
    proven="Thank you, now I know who you are. What can I do for you?",
    not_proven="I'm sorry, that does not tell me who you are.",
    old_pin="Please say or key in your PIN.",
    new_pin="Please say or key in six digits that are not easy to guess. They will be your PIN.",
    pin_set="Your PIN is set. Keep it to yourself.",
    still_there="Are you still there?",
    goodbye="I can't hear you. Goodbye!",
    farewell="Goodbye!",
    cut_off="I'm sorry, we were cut off. Please go on.",
    busy="All lines are busy at the moment. Please call again in a few minutes.",
)
KNOWN: Final[Mapping[str, Phrases]] = {
    "en": ENGLISH,
    "de": Phrases(
        greeting="Hallo! Was kann ich für Sie tun?",
        greeting_known="Schön, dass Sie wieder anrufen, {name}. Was kann ich für Sie tun?",
        greeting_shared="Hallo! Mit wem spreche ich?",
        fillers=("Einen Moment, bitte.", "Ich sehe noch nach.", "Danke für Ihre Geduld, gleich habe ich es."),
        sorry="Entschuldigung, bei mir ist etwas schiefgegangen. Sagen Sie das bitte noch einmal?",
        too_long="Entschuldigung, das konnte ich nicht rechtzeitig herausfinden. Kann ich sonst etwas tun?",
        again="Entschuldigung, sagen Sie das bitte noch einmal?",
        linked="Danke, dieses Telefon ist jetzt verbunden. Ich kenne Sie auch hier.",
        known_here="Danke, in diesem Gespräch kenne ich Sie. Das Telefon selbst ist nicht verbunden.",
        no_code="Dieser Code gilt nicht, oder nicht mehr. Bitte holen Sie sich einen neuen.",
        link_changed=(
            "Seit dem letzten Anruf wurde dieses Telefon mit einer Webseite verbunden oder davon "
            "getrennt. Waren Sie das nicht, dann sagen Sie: Ich habe dieses Telefon nicht verbunden."
        ),
        proven="Danke, jetzt weiß ich, wer Sie sind. Was kann ich für Sie tun?",
        not_proven="Entschuldigung, daran erkenne ich Sie nicht.",
        old_pin="Bitte sagen oder tippen Sie Ihre PIN.",
        new_pin="Bitte sagen oder tippen Sie als Ihre PIN sechs Ziffern, die schwer zu raten sind.",
        pin_set="Ihre PIN ist gesetzt. Behalten Sie sie für sich.",
        still_there="Sind Sie noch da?",
        goodbye="Ich höre Sie nicht. Auf Wiederhören!",
        farewell="Auf Wiederhören!",
        cut_off="Entschuldigung, wir wurden unterbrochen. Bitte fahren Sie fort.",
        busy="Im Moment sind alle Leitungen belegt. Bitte rufen Sie in ein paar Minuten wieder an.",
    ),
    "es": Phrases(
        greeting="¡Hola! ¿En qué puedo ayudarle?",
        greeting_known="Qué bueno oírle de nuevo, {name}. ¿En qué puedo ayudarle?",
        greeting_shared="¡Hola! ¿Con quién hablo?",
        fillers=("Un momento, por favor.", "Sigo buscando.", "Gracias por esperar, ya casi está."),
        sorry="Lo siento, algo ha fallado por mi parte. ¿Puede repetirlo?",
        too_long="Lo siento, no he podido averiguarlo a tiempo. ¿Puedo ayudarle con otra cosa?",
        again="Lo siento, ¿puede repetirlo?",
        linked="Gracias, este teléfono ya está vinculado. Aquí también le conozco.",
        known_here="Gracias, en esta llamada le conozco. El teléfono en sí no queda vinculado.",
        no_code="Ese código no es válido, o ya no lo es. Pida uno nuevo, por favor.",
        link_changed=(
            "Desde la última llamada este teléfono se vinculó a una página web o se desvinculó. Si no "
            "fue usted, diga: no he vinculado este teléfono."
        ),
        proven="Gracias, ahora sé quién es. ¿En qué puedo ayudarle?",
        not_proven="Lo siento, con eso no sé quién es.",
        old_pin="Diga o marque su PIN, por favor.",
        new_pin="Diga o marque seis cifras que no sean fáciles de adivinar. Serán su PIN.",
        pin_set="Su PIN está fijado. No se lo diga a nadie.",
        still_there="¿Sigue ahí?",
        goodbye="No le oigo. ¡Adiós!",
        farewell="¡Adiós!",
        cut_off="Lo siento, se ha cortado. Continúe, por favor.",
        busy="Todas las líneas están ocupadas. Llame de nuevo en unos minutos, por favor.",
    ),
    "fr": Phrases(
        greeting="Bonjour ! Que puis-je faire pour vous ?",
        greeting_known="Ravi de vous entendre de nouveau, {name}. Que puis-je faire pour vous ?",
        greeting_shared="Bonjour ! À qui ai-je l'honneur ?",
        fillers=(
            "Un instant, s'il vous plaît.",
            "Je cherche encore.",
            "Merci de patienter, j'y suis presque.",
        ),
        sorry="Désolé, quelque chose a échoué de mon côté. Pouvez-vous répéter ?",
        too_long="Désolé, je n'ai pas pu le trouver à temps. Puis-je vous aider pour autre chose ?",
        again="Désolé, pouvez-vous répéter ?",
        linked="Merci, ce téléphone est maintenant associé. Je vous connais ici aussi.",
        known_here="Merci, je vous connais pendant cet appel. Le téléphone lui-même n'est pas associé.",
        no_code="Ce code n'est pas valable, ou ne l'est plus. Demandez-en un nouveau, s'il vous plaît.",
        link_changed=(
            "Depuis le dernier appel, ce téléphone a été associé à une page web ou dissocié. Si ce "
            "n'était pas vous, dites : je n'ai pas associé ce téléphone."
        ),
        proven="Merci, je sais maintenant qui vous êtes. Que puis-je faire pour vous ?",
        not_proven="Désolé, cela ne me dit pas qui vous êtes.",
        old_pin="Dites ou composez votre code PIN, s'il vous plaît.",
        new_pin="Dites ou composez six chiffres difficiles à deviner. Ce sera votre code PIN.",
        pin_set="Votre code PIN est enregistré. Gardez-le pour vous.",
        still_there="Êtes-vous toujours là ?",
        goodbye="Je ne vous entends pas. Au revoir !",
        farewell="Au revoir !",
        cut_off="Désolé, nous avons été coupés. Continuez, je vous prie.",
        busy="Toutes les lignes sont occupées. Rappelez dans quelques minutes, s'il vous plaît.",
    ),
    "it": Phrases(
        greeting="Salve! Come posso aiutarla?",
        greeting_known="Che piacere risentirla, {name}. Come posso aiutarla?",
        greeting_shared="Salve! Con chi parlo?",
        fillers=("Un momento, per favore.", "Sto ancora cercando.", "Grazie dell'attesa, ci sono quasi."),
        sorry="Mi dispiace, qualcosa è andato storto da parte mia. Può ripetere?",
        too_long="Mi dispiace, non sono riuscito a trovarlo in tempo. Posso aiutarla con altro?",
        again="Mi dispiace, può ripetere?",
        linked="Grazie, questo telefono ora è collegato. La conosco anche qui.",
        known_here="Grazie, in questa chiamata la conosco. Il telefono in sé non è collegato.",
        no_code="Questo codice non è valido, o non lo è più. Ne richieda uno nuovo, per favore.",
        link_changed=(
            "Dall'ultima chiamata questo telefono è stato collegato a una pagina web o scollegato. Se "
            "non è stato lei, dica: non ho collegato questo telefono."
        ),
        proven="Grazie, ora so chi è. Come posso aiutarla?",
        not_proven="Mi dispiace, da questo non so chi è.",
        old_pin="Dica o digiti il suo PIN, per favore.",
        new_pin="Dica o digiti sei cifre non facili da indovinare. Saranno il suo PIN.",
        pin_set="Il suo PIN è impostato. Non lo dica a nessuno.",
        still_there="È ancora in linea?",
        goodbye="Non la sento. Arrivederci!",
        farewell="Arrivederci!",
        cut_off="Mi dispiace, è caduta la linea. Continui pure.",
        busy="Tutte le linee sono occupate. Richiami tra qualche minuto, per favore.",
    ),
    "pt": Phrases(
        greeting="Olá! Em que posso ajudar?",
        greeting_known="Que bom ouvir você de novo, {name}. Em que posso ajudar?",
        greeting_shared="Olá! Com quem falo?",
        fillers=(
            "Um momento, por favor.",
            "Ainda estou procurando.",
            "Obrigado por esperar, já estou quase lá.",
        ),
        sorry="Desculpe, algo deu errado do meu lado. Pode repetir?",
        too_long="Desculpe, não consegui descobrir a tempo. Posso ajudar com outra coisa?",
        again="Desculpe, pode repetir?",
        linked="Obrigado, este telefone está vinculado agora. Aqui também conheço você.",
        known_here="Obrigado, nesta ligação conheço você. O telefone em si não fica vinculado.",
        no_code="Esse código não é válido, ou já não é. Peça um novo, por favor.",
        link_changed=(
            "Desde a última ligação este telefone foi vinculado a uma página ou desvinculado. Se não "
            "foi você, diga: eu não vinculei este telefone."
        ),
        proven="Obrigado, agora sei quem é você. Em que posso ajudar?",
        not_proven="Desculpe, com isso não sei quem é você.",
        old_pin="Diga ou digite o seu PIN, por favor.",
        new_pin="Diga ou digite seis dígitos que não sejam fáceis de adivinhar. Eles serão o seu PIN.",
        pin_set="O seu PIN está definido. Guarde-o para você.",
        still_there="Você ainda está aí?",
        goodbye="Não consigo ouvir você. Até logo!",
        farewell="Até logo!",
        cut_off="Desculpe, a ligação caiu. Pode continuar.",
        busy="Todas as linhas estão ocupadas. Ligue de novo em alguns minutos, por favor.",
    ),
}
"""By primary tag. Written by us, not by Twilio; `PhoneSettings.phrases` takes others."""


def phrases_of(language: str, own: Mapping[str, Phrases]) -> Phrases:
    """Those for a language tag: of `own` by tag or primary tag, then ours; English where there are none."""
    by_tag = {tag.casefold(): phrases for tag, phrases in own.items()}
    tag, primary = language.casefold(), primary_of(language)
    return by_tag.get(tag) or by_tag.get(primary) or KNOWN.get(primary) or ENGLISH


def primary_of(language: str) -> str:
    """The primary tag: "es" of "es-MX"."""
    return language.partition("-")[0].casefold()


def matching(language: str, spoken: Iterable[str]) -> str | None:
    """Which of the `spoken` tags means `language`: the same, else the first of the same primary tag."""
    tags = list(spoken)
    same = [tag for tag in tags if tag.casefold() == language.casefold()]
    near = [tag for tag in tags if primary_of(tag) == primary_of(language)]
    return next(iter([*same, *near]), None)
