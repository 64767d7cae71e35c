"""Separate a reasoning model's thoughts from its answer, in a whole text and in a stream.

Invariants: no character is lost or invented: thoughts and answer together hold all of the text except for the tags.
Tags count only at the start of a reply, where servers without a reasoning parser leave them; a tag that an answer
writes about stays text. Sources: chat templates of DeepSeek-R1, Qwen3, GLM (`<think>`), Magistral (`[THINK]`), Kimi
(`◁think▷`), Seed-OSS (`<seed:think>`), and the Harmony format of gpt-oss.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
    "<|channel|>commentary<|message|>": "<|end|>",
    "analysis<|message|>": "<|end|>",
    "analysis": "assistantfinal",  # special tokens left out; only with a capital letter behind it
}
# A template may write the opening tag itself, so that only the end arrives: alone in its line, or before an empty one.
_END_ALONE = re.compile(r"(?:</think>|</seed:think>|\[/THINK\]|◁/think▷)[ \t]*(?=\n|$|<)")
_FINAL = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>")
_HEADS = (*_PAIRS, "<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>")
_TAIL = re.compile(r"(?:<\|return\|>|<\|end\|>)\s*$")
# A call in text form ends thoughts whose closing tag the model forgot.
_CALL = re.compile(
    r"(?:assistant(?=commentary to=)|\n\s*)(?=commentary to=|<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=)"
)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the thoughts and the answer of a reply.

    Thoughts without a closing tag reach to the end of the reply, or to a call in text form.

    Example:
        >>> split_thoughts("<think>Two or three?</think>\\n\\nThree lines.")
        ('Two or three?', 'Three lines.')
        >>> split_thoughts("Two or three?\\n</think>\\n\\nThree lines.")
        ('Two or three?', 'Three lines.')
        >>> split_thoughts("<think>Two or")
        ('Two or', '')
        >>> split_thoughts("The tag `</think>` ends the thoughts.")
        ('', 'The tag `</think>` ends the thoughts.')
    """
    thoughts: list[str] = []
    rest = text
    while (opened := _opening(rest)) is not None:
        tag, start = opened
        end = rest.find(_PAIRS[tag], start)
        if end < 0:
            call = _CALL.search(rest, start)
            if call is None and tag == "analysis":  # a name such as "analysisReport"
                break
            end = call.start() if call is not None else len(rest)
            thoughts.append(rest[start:end].strip())
            rest = rest[end:]
            break
        thoughts.append(rest[start:end].strip())
        rest = rest[end + len(_PAIRS[tag]) :]
    if not thoughts and (alone := _END_ALONE.search(rest)) is not None and _is_prose(rest[: alone.start()]):
        thoughts.append(rest[: alone.start()].strip())
        rest = rest[alone.end() :]
    if (final := _FINAL.match(rest)) is not None:
        rest = _TAIL.sub("", rest[final.end() :])
    elif not thoughts:
        return "", text
    return "\n\n".join(filter(None, thoughts)), rest.lstrip() if thoughts else rest


def _opening(text: str) -> tuple[str, int] | None:
    """Return the tag that a text begins with, and where it ends."""
    start = len(text) - len(text.lstrip())
    for tag in _PAIRS:
        end = start + len(tag)
        if text.startswith(tag, start) and (tag != "analysis" or text[end : end + 1].isupper()):
            return tag, end
    return None


def _is_prose(text: str) -> bool:
    """Return whether a place after this text is outside of code, where a tag would only be written about."""
    return text.count("```") % 2 == 0 and text.rpartition("\n")[2].count("`") % 2 == 0


class ThoughtFilter:
    """Passes on the answer of a stream, without thoughts that begin with a tag.

    Args:
        on_text: Receives pieces of the answer.

    Example:
        >>> pieces = []
        >>> feed = ThoughtFilter(pieces.append)
        >>> for piece in ("<thi", "nk>Two or three?</th", "ink>", "\\n\\nThree", " lines."):
        ...     feed(piece)
        >>> pieces
        ['Three', ' lines.']
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._held = ""
        self._closing: str | None = None
        self._open = False  # the answer has begun

    def __call__(self, piece: str) -> None:
        if self._open:
            self._on_text(piece)
            return
        self._held += piece
        while not self._open:
            if self._closing is not None:
                end = self._held.find(self._closing)
                if end < 0:
                    self._held = self._held[-len(self._closing) :]
                    return
                self._held, self._closing = self._held[end + len(self._closing) :], None
            opened = _opening(self._held)
            if opened is not None:
                self._closing, self._held = _PAIRS[opened[0]], self._held[opened[1] :]
                continue
            start = self._held.lstrip()
            if any(tag.startswith(start) for tag in _HEADS):  # nothing yet, or the beginning of a tag
                return
            if (final := _FINAL.match(start)) is not None:
                start = start[final.end() :]
            self._open = True
            self._on_text(start)
