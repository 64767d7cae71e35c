"""The weight of a word as a sign of the action: little where actions of any kind use it, much where few do.

Invariant: the same in every catalog. How rare a word is in one of fifteen actions says next to nothing; how common it
is among some 1,500 public actions does. Inverse document frequency: Spärck Jones, "A statistical interpretation of
term specificity and its application in retrieval" (1972). Counted over the tuning halves of two public sets (Berkeley
Function-Calling Leaderboard v4, Apache License 2.0; MetaTool, MIT License), written by
`python -m tests.benchmarks._retrieval_words --write`.
"""

from __future__ import annotations

import math

ACTIONS = 1_502  # that were counted
OTHERS = 8  # of them hold a word that is not in the table

# The power of two nearest to how many of them hold a word, and the stems of these words.
COMMON = {
    9: "format name retriev specifi",
    8: (
        "base calcul citi date default given id identifi includ list locat mm new number option provid s "
        "search specif state such time type uniqu user whether yyyi"
    ),
    7: (
        "api ca current data dd detail e exampl filter find flag function g indic inform maximum ny "
        "prefer request result return set start true unit valu within year york"
    ),
    6: (
        "account add address allow amount applic array associ authent avail between book categori certain "
        "check configur contain content countri creat criteria custom desir destin determin each end "
        "event fals fetch file first francisco generat hh hour initi integ level must object one onli "
        "paramet particular perform play product project queri rang rate relat repres requir respons san "
        "second select server servic size status string system temperatur text ticket token two updat "
        "weather"
    ),
    5: (
        "access action activ addit adriel after analysi analyz angel appli area artist assign averag b "
        "befor berkeley brief buy chang class clean code compani complet condit connect consid convert "
        "count databas day defin degre delet departur descript dictionari differ display distanc dontcar "
        "durat dure either empti enabl etc execut exist expect field financi flight food full game genr "
        "geograph group histor histori host hotel imag individu info input interest ip item key languag "
        "length limit los manag map match max measur messag meter minimum minut movi music num offer open "
        "oper order origin other out output page password per period person place player point port posit "
        "price process profession purchas qualiti quantiti question receiv record relev report reserv "
        "restaur review scale score seat send ss stock store support take target team term titl tool "
        "total trigger trip typic up url usernam valid various version wait whose work x"
    ),
    4: (
        "accept accommod adult age agent airport alert annual anoth answer assist attribut bodi c call "
        "case celsius charact color com command common comput concert config constant control coordin "
        "credenti cultur d decim depart directori district email english ensur entri environ exclud "
        "experi follow forecast futur height highest hostnam hous index instanc internat invest iso job "
        "journey keyword last latitud listen local log longitud look m made math method min mode model "
        "monitor more multipl nearbi nicknam null over pagin passeng path percentag platform possibl "
        "postgr power properti provinc region root rout run schedul secur sent separ show singl song sort "
        "sourc space special standard star statist sub suitabl t test through timestamp top track under "
        "uuid view websit window without"
    ),
}


def _tells(held: int) -> float:
    return math.log1p((ACTIONS - held + 0.5) / (held + 0.5))


_MOST = _tells(OTHERS)
_TELLS = {word: _tells(2**power) / _MOST for power, words in COMMON.items() for word in words.split()}


def term_weight(token: str) -> float:
    """Return how much one token of a request tells, in (0, 1].

    >>> term_weight("retriev") < term_weight("weather") < term_weight("zebra")
    True
    """
    return _TELLS.get(token, 1.0)
