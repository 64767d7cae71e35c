"""The words that the simulator goes by: what people say for what actions are called, and what is familiar."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text, parted by space."""
    return frozenset(text.split())


# Kinds of actions that every model has met in training; what is nearer to another kind is looked up, not guessed at.
TRAINED = words("file memory table variable function source web search database python shell")
OPERATIONS = words(
    "reading writing editing querying searching remembering calling"
)  # what a mandate enumerates
CHANGING = words(
    "change replace rename fix correct update set bump swap turn insert append add remove edit adjust raise lower move "
    "flip scale switch make put typo misspelt typed should never instead become anymore changing"
)
ASKING = words(
    "what which who whom whose where when why how"
)  # a text that begins so wants to know something
SAME = (
    words("read say open show content contain look see print tell"),
    words("edit change replace fix correct update rename set bump adjust insert append remove"),
    words("write create save"),
    words("grep search find occur mention where text match"),
    words("glob file path find named folder"),
    words("list folder directory lie"),
    words("delete remove drop"),
    words("query count average mean sum total median maximum minimum highest lowest most sql table row"),
    words("remember save note memory"),
    words("forget delete memory"),
)
VERBS = (
    ("delete", words("delete erase")),
    ("query", words("average mean sum total median maximum minimum highest lowest count sql query row")),
    ("grep", words("search grep find occur mention where")),
    ("remember", words("remember note keep")),
    ("forget", words("forget")),
    ("write", words("write create save")),
    ("read", words("read open show say hold contain print look")),
    ("list", words("list folder directory")),
)
OLD = words("old before from find search")  # in names of parameters: the text before a change
NEW = words("new after to replacement with content text")
PATHS = words("path file filename folder directory source")
