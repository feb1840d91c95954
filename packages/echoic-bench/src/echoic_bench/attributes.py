"""What made-up callers tell about themselves, and how they ask for it later. Data only.

Questions come in the words of the key (plain) and in others (paraphrased). Values are made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from echoic.types import Category


@dataclass(frozen=True, slots=True)
class Attribute:
    """One kind of thing a caller tells about themselves."""

    key: str
    values: Sequence[str]
    plain: Sequence[str]
    """Questions that share a word with the key."""
    paraphrased: Sequence[str]
    """Questions that share none."""
    category: Category = "fact"
    statement: str | None = None
    """With {} for the value; None where a tool wrote only key and value."""


ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute(
        "user_name",
        "Pavel Ana Kaitlyn Joaquin Stephen Mei Thabo Ingrid Rosalind Farid Saoirse Tomasz".split(),
        ["What's my name?", "Do you remember my name?", "Can you tell me what my name is?"],
        ["Who am I?", "What should you call me?"],
    ),
    Attribute(
        "home_city",
        "Lisbon Leeds Gdansk Porto Nairobi Osaka Tampere Valencia Galway Ghent".split(),
        ["What city is my home in?", "Which city do I live in?"],
        ["Where do I live?", "Where am I based?"],
        statement="The user lives in {}.",
    ),
    Attribute(
        "occupation",
        ["nurse", "structural engineer", "pastry chef", "bus driver", "tax adviser", "luthier", "midwife"],
        ["What's my occupation?"],
        ["What do I do for a living?", "What is my job?", "What kind of work do I do?"],
    ),
    Attribute(
        "employer",
        ["Harbour Clinic", "Nordwind Logistics", "Bellwether Books", "Kestrel Aviation", "Old Mill Bakery"],
        ["Who is my employer?"],
        ["Which company do I work for?", "Where do I work?"],
        statement="The user works for {}.",
    ),
    Attribute(
        "birthday",
        ["4 May 1988", "19 November 1975", "30 January 1993", "11 August 1969", "23 March 2001"],
        ["When is my birthday?", "What date is my birthday?"],
        ["When was I born?"],
    ),
    Attribute(
        "wife_name",
        "Beatrix Yuki Samira Oluchi Marta Helene Carmen Divya".split(),
        ["What's my wife's name?", "What is my wife called?"],
        ["Who am I married to?"],
        category="entity",
    ),
    Attribute(
        "daughter_name",
        "Greta Nadia Isla Paloma Freya Amina Zofia".split(),
        ["What's my daughter's name?", "What is my daughter called?"],
        ["What did we name our little girl?"],
        category="entity",
    ),
    Attribute(
        "dog",
        ["Rex, a border collie", "Biscuit, a beagle", "Moss, a lurcher", "Olive, a dachshund"],
        ["What's my dog called?", "What breed is my dog?"],
        ["Which pet do I have?", "What is the name of my puppy?"],
        category="entity",
    ),
    Attribute(
        "allergy",
        ["peanuts", "shellfish", "penicillin", "bee stings", "latex", "sesame"],
        ["What allergies do I have?", "Do I have an allergy?"],
        ["What am I allergic to?", "Is there anything that makes me ill?"],
        category="requirement",
    ),
    Attribute(
        "diet",
        ["vegetarian", "vegan", "gluten-free", "low salt", "halal"],
        ["What's my diet?", "Am I on a diet?"],
        ["Is there anything I don't eat?", "What should the kitchen know before cooking for me?"],
        category="requirement",
    ),
    Attribute(
        "favorite_food",
        ["ramen", "moussaka", "fish tacos", "pierogi", "mushroom risotto", "jollof rice"],
        ["What's my favorite food?"],
        ["Which dish do I like best?", "What do I love to eat?"],
        category="preference",
    ),
    Attribute(
        "favorite_color",
        ["teal", "burgundy", "mustard yellow", "forest green", "lilac"],
        ["What's my favorite color?", "What color do I like best?"],
        ["Should the gift wrap be red or something I like better?"],
        category="preference",
    ),
    Attribute(
        "seat_preference",
        ["aisle, near the front", "window, over the wing", "exit row", "aisle, at the back"],
        ["What's my seat preference?", "Which seat do I prefer on a plane?"],
        ["Where do I like to sit when I fly?"],
        category="preference",
    ),
    Attribute(
        "coffee_order",
        ["oat flat white", "double espresso", "decaf cappuccino", "iced americano"],
        ["What's my usual coffee order?", "How do I take my coffee?"],
        ["What do I drink in the morning?"],
        category="preference",
    ),
    Attribute(
        "contact_preference",
        ["e-mail, never by phone", "text message after six", "phone in the morning", "post only"],
        ["What's my contact preference?", "How do I prefer to be contacted?"],
        ["What is the best way to reach me?"],
        category="preference",
    ),
    Attribute(
        "car",
        ["grey Volvo estate", "red Fiat Panda", "blue Kia Niro", "white Toyota Hilux"],
        ["What car do I drive?", "Which car is mine?"],
        ["What vehicle do I own?"],
        category="entity",
    ),
    Attribute(
        "doctor",
        ["Dr Okafor", "Dr Lindqvist", "Dr Moreau", "Dr Banerjee"],
        ["Who is my doctor?", "What's the name of my doctor?"],
        ["Which physician treats me?"],
        category="entity",
    ),
    Attribute(
        "medication",
        ["metformin twice a day", "ramipril 5 mg", "levothyroxine before breakfast", "cetirizine at night"],
        ["What medication do I take?", "Which medication am I on?"],
        ["What pills have I been prescribed?"],
    ),
    Attribute(
        "shoe_size",
        ["38", "41", "43 and a half", "46"],
        ["What's my shoe size?", "What size shoes do I wear?"],
        ["How big are my feet?"],
    ),
    Attribute(
        "hobby",
        ["sea kayaking", "restoring clocks", "bell ringing", "bird watching", "salsa dancing"],
        ["What's my hobby?", "What hobbies do I have?"],
        ["What do I do in my free time?"],
        category="preference",
    ),
    Attribute(
        "delivery_instructions",
        ["leave it with the neighbour at 12", "ring twice", "the blue side door", "behind the bins"],
        ["What are my delivery instructions?"],
        ["Where should the parcel be left if I'm out?", "How do I want packages handed over?"],
        category="requirement",
    ),
    Attribute(
        "preferred_language",
        ["Portuguese", "Polish", "Welsh", "Mandarin", "Dutch"],
        ["What's my preferred language?", "Which language do I prefer?"],
        ["What do I like to be spoken to in?"],
        category="preference",
    ),
    Attribute(
        "football_team",
        ["Sporting", "Leeds United", "Real Sociedad", "Celtic", "Ajax"],
        ["What's my football team?", "Which team do I support?"],
        ["Who do I cheer for on match days?"],
        category="preference",
    ),
    Attribute(
        "loyalty_number",
        ["KX 4471", "TR 9026", "BA 1180", "QN 3345"],
        ["What's my loyalty number?", "Can you read me my loyalty number?"],
        ["What's my membership code?"],
    ),
)


__all__ = ["ATTRIBUTES", "Attribute"]
