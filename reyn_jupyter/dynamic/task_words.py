"""Words in English, Japanese and Russian by which a task, or what came of it, is recognised.

Invariants: a word is meant, not a part of another ("reformatting" is of formatting, "information" is not; "convert" is
in Japanese no percent), in each of its inflections; the work is linear in a bounded text. Source of the words: dynamic
tool generation, API reference, the conditions under which a tool is recommended.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 20_000  # characters that are looked at: the beginning and the end

# What a task is of → how it says so. English and Russian words have boundaries; Japanese has none, so that
# words which hold another by chance are named instead.
_TASKS: dict[str, tuple[str, ...]] = {
    "doing the same several times": (
        r"\brepeat(?:s|ed|ing|edly|able)?\b|\brepetiti(?:on|ons|ve|vely)\b",
        r"\b(?:re)?iterat(?:e|es|ed|ing|ion|ions|ive|ively)\b",
        r"\b(?:several|many|multiple|numerous|a few|\d+|two|three|four|five|six|seven|eight|nine|ten) times\b",
        r"(?:繰り?|くり)(?:返|かえ)|反復|複数回|何[度回]も",
        r"\bповтор\w*|\bитера(?:ци|тивн)\w*|\bитерир\w*|\bмногократн\w*|\bнеоднократн\w*",
        r"\b(?:несколько|много|\d+) раза?\b",
    ),
    "converting, formatting or parsing": (
        r"\b(?:re-?)?(?:convert(?:s|ed|ing|er|ers)?|conversions?)\b",
        r"\b(?:re-?|pre-?|un)?format(?:s|ted|ting|ter|ters)?\b",
        r"\b(?:re-?)?pars(?:e|es|ed|ing|er|ers)\b",
        r"変換|フォーマット|(?<!スー)パース(?!ペクティブ)",
        r"\b(?:с|пере)?конвертир\w*|\bконверт(?:аци|ер|ор)\w*|\bконверси\w*|\bпреобраз(?:ов|у)\w*",
        r"\b(?:пере|от)?форматир\w*|\bформат(?:а|у|ом|е|ы|ов|ам|ами|ах)?\b",
        r"\b(?:рас|от|с|про)?парс(?:и(?:ть|л[аи]?|нг\w*|м|т|шь|те)?|ер\w*|ят)\b",
    ),
    "calling an API or reaching outside": (
        r"\bcall(?:s|ed|ing)?\s(?:\w+\s){0,4}?apis?\b|\bapis?[\s-](?:call|request|access)(?:s|es|ing)?\b",
        r"\bexternal access\b|\baccess(?:es|ed|ing)?\s(?:\w+\s){0,2}?external\b|\bexternal (?:apis?|services?)\b",
        r"(?:api|外部)(?:の|を|へ|に|への)?(?:呼び?出|呼ぶ|呼ん|叩|コール|アクセス)",
        r"\b(?:вызов|вызв|вызыва|обра(?:т|щ)|запро[сш])\w*\s(?:\w+\s){0,4}?(?:api|апи)\b",
        r"\b(?:api|апи)[\s-](?:вызов|запрос)\w*",
        r"\bвнешн\w*\s(?:доступ|api|апи|сервис|служб)\w*|\bдоступ\w*\s(?:\w+\s){0,2}?внешн\w*",
    ),
    "verifying, validating or checking": (
        r"\b(?:re-?)?verif(?:y|ies|ied|ying|ication|ications|ier|iers)\b",
        r"\b(?:re-?)?validat(?:e|es|ed|ing|ion|ions|or|ors)\b",
        r"\b(?:re|double|cross|spell)?-?check(?:s|ed|ing|er|ers)?\b(?!-?(?:in|out|point))",
        r"検証|バリデーション|チェック(?!アウト|イン|ポイント)",
        r"\b(?:пере)?провер\w*|\bвалид(?:ац|ир)\w*|\bверифи[цк]\w*",
    ),
    "aggregating, summarising or statistics": (
        r"\b(?:re-?)?aggregat(?:e|es|ed|ing|ion|ions|or|ors)\b|\bstatistic(?:s|al|ally)?\b",
        r"\bsummar(?:y|ies|i[sz](?:e|es|ed|ing|er|ers|ation|ations))\b",
        r"集計|サマリ(?!ア)|要約|統計",
        r"\bагрег(?:ац|ир)\w*|\bсумм(?:ари[зс]|ир)\w*|\bсводк\w*|\bобобщ\w*|\bстатисти\w*",
    ),
}  # fmt: skip
_TASK_PATTERNS = {subject: re.compile("|".join(forms)) for subject, forms in _TASKS.items()}

_ONE_AFTER_ANOTHER = re.compile(
    r"\bthen\b|\bafter that\b|\bafterwards\b|\bfinally\b|\bnext,|→|->|\s\|\s"
    r"|その後|次に|それから|してから|最後に"
    r"|\bзатем\b|\bпотом\b|\bпосле этого\b|\bнаконец\b"
)
_NO_ERROR = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|exceptions?|failures?|failed)\b|\berror-free\b"
    r'|["\']?(?:errors?|failed|failures?|exceptions?)["\']?\s*[:=]\s*(?:null|none|false|0\b|""|\'\'|\[\]|\{\})'
    r"|(?:エラー|例外|失敗)(?:は|が|も)?(?:なし|無し|ない|なく|ありません|ゼロ|0件)"
    r"|\bбез (?:ошибок|сбоев)\b|\b(?:ошибок|сбоев) (?:нет|не)\b|\bнет (?:ошибок|сбоев)\b|\b0 ошибок\b"
)
_ERROR = re.compile(
    r"\berrors?\b|\b(?!terror\b)\w+error\b|\b\w*exceptions?\b|\btraceback\b"
    r"|\bfail(?:s|ed|ure|ures|ing)?\b|\btime(?:d )?out\b"
    r"|\b(?:cannot|can't|could not|couldn't|unable to)\b|\b(?:denied|refused|not found|invalid)\b"
    r"|エラー|例外|失敗|できません|タイムアウト|不正|見つかりません"
    r"|\bошибк\w*|\bошибок\b|\bисключени\w*|\bне (?:удалось|найден\w*)\b|\bсбо(?:й|я|и|ев|ем)\b|\bтайм-?аут\w*"
    r"|\bотказано\b|\bневозможно\b"
)
_GENERAL = re.compile(
    r"\b(?:each|every|all|any|always|whenever|daily|weekly|monthly|templates?|reus(?:e|es|ed|able|ing))\b"
    r"|毎[日週月年回朝]|各|すべて|全て|全部|いつも|テンプレート|再利用"
    r"|\bкажд\w*|\bвсе[хм]?\b|\bлюб(?:ой|ая|ое|ые|ого|ых)\b|\bвсегда\b|\bеже(?:дневн|недельн|месячн)\w*|\bшаблон\w*"
)


def plain_text(text: str) -> str:
    """Return a text as its words are looked for: compatibility forms made plain, small letters, its middle left out."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    return unicodedata.normalize("NFKC", text).casefold()


def subject_of(task: str) -> tuple[str, str] | None:
    """Return what a task is of that a tool serves well, and the words that say so; None where it is of nothing such.

    >>> subject_of("Reformatting the tables of the report")
    ('converting, formatting or parsing', 'reformatting')
    >>> subject_of("information on platforms") is None
    True
    """
    plain = plain_text(task)
    for subject, pattern in _TASK_PATTERNS.items():
        if found := pattern.search(plain):
            return subject, found[0]
    return None


def steps_in(task: str) -> int:
    """Return how many words of a task say that one step follows another.

    >>> steps_in("load it, then filter it, and finally plot it")
    2
    """
    return sum(1 for _ in _ONE_AFTER_ANOTHER.finditer(plain_text(task)))


def error_in(result: str) -> str | None:
    """Return the word by which a result tells of an error, or None.

    >>> error_in("ValueError: no column"), error_in("3 rows written, no errors")
    ('valueerror', None)
    """
    found = _ERROR.search(_NO_ERROR.sub(" ", plain_text(result)))
    return found[0] if found else None


def is_general(task: str) -> bool:
    """Return whether a task speaks of more than one occasion.

    >>> is_general("rename each file"), is_general("write a poem")
    (True, False)
    """
    return _GENERAL.search(plain_text(task)) is not None
