"""The weight of a word as a sign of the action: little where actions of any kind use it, much where few do.

Invariant: the same in every catalog. How rare a word is in one of fifteen actions says next to nothing; how common it
is among some 2,900 public actions does. Inverse document frequency: Spärck Jones, "A statistical interpretation of
term specificity and its application in retrieval" (1972). Counted over the actions of two public sets (Berkeley
Function-Calling Leaderboard v4, Apache License 2.0; MetaTool, MIT License), written by
`python -m tests.benchmarks._retrieval_words --write`.
"""

from __future__ import annotations

import math

ACTIONS = 2_923  # that were counted
OTHERS = 16  # of them hold a word that is not in the table

# The power of two nearest to how many of them hold a word, and the stems of these words.
COMMON = {
    10: "name retriev specifi",
    9: (
        "api base calcul citi default format given id identifi includ list locat number option provid s "
        "specif such time type uniqu user whether"
    ),
    8: (
        "current data date dd detail e exampl filter find flag function g indic inform mm new request "
        "result return search set start state true valu within year yyyi"
    ),
    7: (
        "add address allow amount applic array associ authent avail between ca categori check configur "
        "contain content countri creat criteria custom descript desir determin each end event fals fetch "
        "file first generat hour info initi integ key languag level maximum must ny object one paramet "
        "perform period prefer project queri rang rate repres requir respons second servic size status "
        "string system temperatur token two unit york"
    ),
    6: (
        "access account action activ addit adriel after analysi angel appli area artist b befor berkeley "
        "book case certain chang code compani complet condit config connect consid convert count databas "
        "day defin delet destin dictionari differ distanc dontcar durat email empti enabl entri etc "
        "execut exist field francisco full game geograph group hh histor histori host imag index input "
        "interest ip item limit los m manag map match max measur meter method minimum minut model movi "
        "music onli oper order out page particular password path per person place play player point posit "
        "price process product question record relat reserv restaur san score select send sent server "
        "sort sourc standard stock store take target team term test text ticket titl tool total track "
        "typic up updat url usernam uuid valid various version wait weather whose x"
    ),
    5: (
        "accept adult agent ai alert analyz annual anoth answer assign assist author averag bodi brief "
        "buy celsius charact class clean color com common compon control convers coordin correspond "
        "credenti currenc d decim degre departur design directori disabl display document ds dure either "
        "endpoint english ensur environ estim expect experi featur financi flight follow food forecast "
        "frame free futur genr handl header height hotel http https immedi individu instanc invest iso "
        "json last latest length log look made media messag metric mode money monitor more most multipl "
        "nicknam null num offer open origin other output over pagin percentag platform possibl post "
        "present profession prompt properti purchas purpos qualiti quantiti receiv recommend refer region "
        "releas relev report review room run scale schedul seat secur session singl space special sport "
        "ss statist stream suitabl summari support t threshold through timeout timestamp top travel "
        "trigger trip verifi volum vulner websit work"
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
