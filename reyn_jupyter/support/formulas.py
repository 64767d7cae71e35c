"""Formulas in Markdown: whether drawing them sets symbols and does nothing else.

Invariant: a command that is not listed here is refused: MathJax has commands that load an address, change the style of
the page, link elsewhere, or make other commands out of letters.
"""

from __future__ import annotations

import re

_SYMBOLS = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi omicron pi varpi rho
varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
Omega infty partial nabla hbar ell emptyset varnothing forall exists nexists neg angle degree prime dots ldots cdots
vdots ddots times div cdot pm mp ast star circ bullet oplus otimes cup cap setminus land lor wedge vee le leq ge geq
ne neq ll gg approx sim simeq cong equiv propto in notin ni subset subseteq supset supseteq mid parallel perp to
gets mapsto rightarrow leftarrow leftrightarrow Rightarrow Leftarrow Leftrightarrow implies iff uparrow downarrow
sum prod int iint oint lim limsup liminf max min sup inf arg argmax argmin log ln lg exp sin cos tan cot sec csc
arcsin arccos arctan sinh cosh tanh det dim ker gcd Pr deg hom bmod pmod mod frac dfrac tfrac binom sqrt overline
underline hat widehat bar vec tilde widetilde dot ddot overset underset overbrace underbrace text textbf textit
mathrm mathbf mathit mathsf mathbb mathcal mathfrak operatorname boldsymbol left right big Big bigg Bigg langle
rangle lfloor rfloor lceil rceil lvert rvert lVert rVert vert Vert quad qquad displaystyle textstyle limits nolimits
not begin end
"""
_COMMANDS = frozenset(re.findall(r"\S+", _SYMBOLS))
_ENVIRONMENTS = frozenset(
    re.findall(
        r"\S+",
        "aligned align align* alignat gathered gather gather* equation equation* cases matrix pmatrix bmatrix vmatrix "
        "array split",
    )
)
_FORMULA = re.compile(r"\$|\\[(\[]|\\(?:begin|ref|eqref)(?![A-Za-z])")
_COMMAND = re.compile(r"\\(?:(begin|end)\s*\{([^}]*)\}|([A-Za-z]+))")
# As JupyterLab finds them before it looks for formulas.
_CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^\n]*?[^`\n]\1(?!`)")


def forbidden_command(source: str) -> str | None:
    r"""Return a command of a formula in a Markdown text that may do more than set symbols; None if there is none.

    Code is not looked at: no page typesets it.

    Example:
        >>> forbidden_command(r"The mean is $\frac{1}{n}\sum x_i$."), forbidden_command(r"Now $\href{a}{b}$.")
        (None, '\\href')
        >>> forbidden_command(r"Write `$\href{a}{b}$`."), forbidden_command("&#36;&#92;style{a}{b}&#36;")
        (None, '\\style')
    """
    for text in _outside_code(source):
        if not _FORMULA.search(text):
            continue
        for environment, name, command in _COMMAND.findall(text):
            if environment and name not in _ENVIRONMENTS:
                return f"\\{environment}{{{name[:40]}}}"
            if command and (command not in _COMMANDS or command in ("begin", "end")):
                return f"\\{command[:40]}"
    return None


def _outside_code(source: str) -> tuple[str, str]:
    """Return a Markdown text without code: as it is written, and as it is drawn (without escapes and entities)."""
    from markdown_it import MarkdownIt

    lines, drawn = source.split("\n"), []
    for token in MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(source):
        if token.type == "fence" and token.level == 0 and token.map is not None:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
        drawn += [each.content for each in token.children or () if each.type != "code_inline"]
        drawn += ["\n"] if token.children else []
    return _CODE_SPAN.sub("", "\n".join(lines)), "".join(drawn)
