"""Tell a request that is not in English, by its script and its commonest words: cheap, and sure rather than complete.

Invariant: a name, a path, or a text with no sign of a language counts as English.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"\S*[_./\\@:=(){}\[\]]\S*[^\s.?!,:;]|`[^`]*`")  # names, paths, addresses, code
LEAST = 2  # signs of another language, and more than of English
_MARKS = frozenset("äöüßàâçèéêëîïôûùœñáíóúåæøãõłśżźćęąğışčřž¿¡")
# The commonest words of other languages (German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish) that
# English does not have, and those of English.
_OTHERS = """
der das und ist nicht mit ein eine einen einem einer auf dem den des im zu zum zur von vom für wie wo wann welche
welcher welches mir mich dich wir ihr sie dass ich du es aus bei nach über alle diese dieser dieses meine meinen
meiner mein bitte kann hat haben werden wird sind oder aber le la les un une des du de et est pas que qui ce cette
ces dans sur pour avec je tu il elle nous vous mon ma mes ton ta tes sous au aux quel quelle quels combien où
comment moi fais y el los las una uno del en con para por qué cómo cuál cuáles mi mis se esta este estos estas hay
lo al dónde cuánto quiero os um uma não com meu minha na nos isto il gli della che per sono mio mia questo het een
van niet dat wat welke mijn naar deze zijn voor jest nie się jak moje ve bir bu için ile
"""
_ENGLISH = """
the a an and is are was of to in on for with this that these those what which who how when where why my me you it
its we our your from by at as not do does did can could would will all any there have has be or if into about please
show find get make list run read write i
"""
_OTHER_WORDS, _ENGLISH_WORDS = frozenset(_OTHERS.split()), frozenset(_ENGLISH.split())


def is_english(text: str) -> bool:
    """Return whether a text may be English: false where its script or most of its commonest words say another one.

    >>> is_english("Which files mention a deadline?"), is_english("Welche Dateien nennen eine Frist?")
    (True, False)
    >>> is_english("売上を集計して"), is_english("file__read data/müller.csv")
    (False, True)
    """
    words = _WORD.findall(_CODE.sub(" ", text))
    letters = "".join(words)
    if sum(ord(each) > 0x24F for each in letters) * 2 > len(letters):
        return False
    lower = [word.lower() for word in words]
    others = sum(word in _OTHER_WORDS or not _MARKS.isdisjoint(word) for word in lower)
    return others < LEAST or others <= sum(word in _ENGLISH_WORDS for word in lower)
