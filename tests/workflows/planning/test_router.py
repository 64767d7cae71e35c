"""From a request to a plan by rules: what is one thing that is asked for, which steps come of it, and what is left."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.workflows.planning.request_intents import normalize_request
from reyn_jupyter.workflows.planning.router import plan_request
from reyn_jupyter.workflows.planning.rules import built_in_rules, read_rules
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry
from reyn_jupyter.workflows.workflow_error import WorkflowError

VIDEO = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
SHORT = "https://youtu.be/dQw4w9WgXcQ"
DRIVE = "https://drive.google.com/drive/folders/1AbCdEfGh"
YANDEX = "https://disk.yandex.ru/d/AbC123"
DOWNLOAD, UPLOAD, CONVERT = "youtube.download", "drive.upload", "video.convert"
FETCH, STORE = "yandex-disk.download", "yandex-disk.upload"


def plan_of(text, **options):
    return asyncio.run(plan_request(text, registry=UtilityRegistry(), **options))


def left_of(plan):
    """What of a request is in no step."""
    return [each.missing_capability for each in plan.gaps if each.step_id is None]


# A request, the capabilities of its steps, and what is left of it.
REQUESTS = [
    (f"Download {VIDEO}", [DOWNLOAD], []),
    (f"Скачай видео {VIDEO}", [DOWNLOAD], []),
    (f"download the video at {SHORT}, please.", [DOWNLOAD], []),
    (f"Could you please grab ({SHORT})?", [DOWNLOAD], []),
    (f"Скачай, пожалуйста: {SHORT}", [DOWNLOAD], []),
    (f"Мне нужно скачать вот это видео: {SHORT}!", [DOWNLOAD], []),
    ("Save https://youtube.com/shorts/abcdefghijk for me", [DOWNLOAD], []),
    ("Скачай https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=10s", [DOWNLOAD], []),
    (VIDEO, [DOWNLOAD], []),
    (f"Download {VIDEO} and https://youtu.be/aaaaaaaaaaa", [DOWNLOAD, DOWNLOAD], []),
    (f"Скачай видео по ссылке {VIDEO} и положи в папку {DRIVE} на Drive", [DOWNLOAD, UPLOAD], []),
    (f"Download {VIDEO} and put it into the folder {DRIVE} on Drive", [DOWNLOAD, UPLOAD], []),
    (f"Download {VIDEO}, then upload it to {DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"Скачай {VIDEO}, затем загрузи в {DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"Upload {VIDEO} to {DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"{VIDEO}\n{DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"Put into {DRIVE} the video {SHORT}", [DOWNLOAD, UPLOAD], []),
    (f"скачай и залей {SHORT} на {DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"видео {SHORT} скачай и залей на {DRIVE}", [DOWNLOAD, UPLOAD], []),
    (f"1. Download {SHORT}\n2. Convert it to mp4\n3. Upload to {DRIVE}", [DOWNLOAD, CONVERT, UPLOAD], []),
    (f"Скачай {SHORT}, сконвертируй в mp4 и положи в {DRIVE}", [DOWNLOAD, CONVERT, UPLOAD], []),
    (f"Download {SHORT} and {VIDEO}, upload them to {DRIVE}", [DOWNLOAD, DOWNLOAD, UPLOAD, UPLOAD], []),
    (f"Download {SHORT}, upload it to {DRIVE} and to {YANDEX}", [DOWNLOAD, UPLOAD, STORE], []),
    (f"Upload report.pdf to {DRIVE}", [UPLOAD], []),
    (f"Download the file {YANDEX}", [FETCH], []),
    (f"Скачай файл {YANDEX}", [FETCH], []),
    ("Скачай https://yadi.sk/d/AbCdEf123456", [FETCH], []),
    (f"Upload data/orders.csv to {YANDEX}", [STORE], []),
    (f"Загрузи data/orders.csv на {YANDEX}", [STORE], []),
    (f"Download {VIDEO} and upload it to {YANDEX}", [DOWNLOAD, STORE], []),
    (f"Скачай {YANDEX} и загрузи на {DRIVE}", [FETCH, UPLOAD], []),
    ("Convert all webm files in videos to mp4", [CONVERT], []),
    ("Конвертируй все webm из папки videos в mp4", [CONVERT], []),
    ("webm → mp4", [CONVERT], []),
    ("convert a.webm to mp4", [CONVERT], []),
    ("Преобразуй a.webm и b.webm в mp4", [CONVERT], []),
    ("Convert a.webm, b.webm and “my talk.webm” into mp4", [CONVERT], []),
    (f"Convert a.webm and b.webm to mp4 and upload them to {DRIVE}", [CONVERT, UPLOAD, UPLOAD], []),
    (f"Hi! Download {SHORT}. I have a talk tomorrow. Thanks!", [DOWNLOAD], []),
    ("unpack data/photos.zip", ["folder.unpack"], []),
    ("Unpack a.tar.gz and “my photos.zip”", ["folder.unpack", "folder.unpack"], []),
    ("Convert sales.csv and costs.csv.gz to Parquet", ["table.to-parquet", "table.to-parquet"], []),
    ("Turn about.html into Markdown", ["document.to-markdown"], []),
    ("make thumbnails of photos", ["image.thumbnail"], []),
    ("Unpack a.zip and make thumbnails of the images", ["folder.unpack", "image.thumbnail"], []),
    ("Распакуй a.zip и сделай миниатюры", ["folder.unpack", "image.thumbnail"], []),
    ("tg.scrape", ["tg.scrape"], []),
    ("Run tg.scrape please", ["tg.scrape"], []),
    # What no rule takes
    ("Compose a symphony about the sea", [], ["Compose a symphony about the sea"]),
    ("Сочини симфонию о море", [], ["Сочини симфонию о море"]),
    ("Weather in Paris tomorrow", [], ["Weather in Paris tomorrow"]),
    ("How many orders came in May?", [], ["How many orders came in May"]),
    ("Frobnicate the sprockets and grease every axle", [], ["Frobnicate the sprockets", "grease every axle"]),
    ("Пришли отчёт и опубликуй его на сайте", [], ["Пришли отчёт", "опубликуй его на сайте"]),
    (f"Transcribe {SHORT}", [], [f"Transcribe {SHORT}"]),
    (f"Download {VIDEO} and translate its subtitles", [DOWNLOAD], ["translate its subtitles"]),
    (f"Download {SHORT} and download the subtitles", [DOWNLOAD], ["download the subtitles"]),
    (f"Скачай {VIDEO} и переведи субтитры на латынь", [DOWNLOAD], ["переведи субтитры на латынь"]),
    (f"First water the plants. Then download {VIDEO}", [DOWNLOAD], ["First water the plants"]),
    (f"Скачай {VIDEO}, напиши маме письмо и загрузи видео в {DRIVE}", [DOWNLOAD, UPLOAD], ["напиши маме письмо"]),
    (f"Download {VIDEO}, put it into {DRIVE} and email the link to Bob", [DOWNLOAD, UPLOAD], ["email the link to Bob"]),
    (f"{VIDEO}\ntell me who sings", [DOWNLOAD], ["tell me who sings"]),
    (f"Download {SHORT} and https://vimeo.com/1", [DOWNLOAD], [f"Download {SHORT} and https://vimeo.com/1"]),
    ("Сконвертируй b.avi и a.webm в mp4", [CONVERT], ["Сконвертируй b.avi и a.webm в mp4"]),
    (f"Download everything from {DRIVE}", [], [f"Download everything from {DRIVE}"]),
    (f"Upload it to {DRIVE}", [], [f"Upload it to {DRIVE}"]),
    ("Download https://youtube.com.evil.example/watch?v=a", [], ["Download https://youtube.com.evil.example/watch?v=a"]),
    (f"Download https://evil.example/?u={VIDEO}", [], [f"Download https://evil.example/?u={VIDEO}"]),
    ("Convert to mp4", [], ["Convert to mp4"]),
    ("delete thumbnails of photos", [], ["delete thumbnails of photos"]),
    ("make thumbnails", [], ["make thumbnails"]),
    ("Delete old.zip", [], ["Delete old.zip"]),
    ("Распакуй a.zip, найди ошибки; потом удали его", ["folder.unpack"], ["найди ошибки", "удали его"]),
    ("From report.pdf, extract the tables", [], ["From report.pdf, extract the tables"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "capabilities", "left"), REQUESTS)
def test_all_of_a_request_is_in_its_steps_or_in_its_gaps(text, capabilities, left):
    plan = plan_of(text)
    assert [each.capability for each in plan.steps] == capabilities
    assert left_of(plan) == left
    assert plan.llm_calls == 0 and {each.source for each in plan.steps} <= {"rule"}
    assert plan.status == ("partial-complete" if capabilities else "unroutable")


def test_outputs_of_earlier_steps_go_where_the_request_says():
    plan = plan_of(f"Download {SHORT}, convert it to mp4 and upload it to {DRIVE}")
    assert [dict(each.inputs) for each in plan.steps] == [
        {"url": SHORT},
        {"mode": "selected", "files": ["steps.step-1.outputs.file_path"]},
        {"file_path": "steps.step-2.outputs.files[0]", "folder_url": DRIVE},
    ]
    two = plan_of(f"Download {SHORT}, upload it to {DRIVE}, download {VIDEO}, upload it to {DRIVE}2")
    sent = [each.inputs["file_path"] for each in two.steps if each.capability == UPLOAD]
    assert sent == ["steps.step-1.outputs.file_path", "steps.step-3.outputs.file_path"]


def test_modes_of_conversion():
    named = plan_of('Convert a.webm and "my talk.webm" to mp4').steps[0].inputs
    assert named == {"mode": "selected", "files": ["a.webm", "my talk.webm"]}
    assert plan_of("Конвертируй все webm из папки videos в mp4").steps[0].inputs == {
        "mode": "all",
        "folder": "videos",
    }
    assert plan_of("all webm to mp4").steps[0].inputs["folder"] == "input_data"
    given = plan_of("all webm to mp4", inputs={"input_data": "clips"})
    assert given.steps[0].inputs["folder"] == "request.inputs.input_data"


def test_how_many_files_a_step_will_make_cannot_be_guessed():
    plan = plan_of(f"Convert all webm in videos to mp4 and upload them to {DRIVE}")
    assert [each.capability for each in plan.steps] == [CONVERT]
    assert left_of(plan) == [f"upload them to {DRIVE}"]
    assert "number of files" in plan.gaps[-1].reason_message


def test_unread_words_are_a_gap_and_context_is_a_note():
    plan = plan_of(f"Download {SHORT} in 720p with subtitles. I have a talk tomorrow.")
    assert plan.status != "complete"
    assert any("720p" in each.reason_message and "subtitles" in each.reason_message for each in plan.gaps)
    assert any("720p" in each and "%reyn invoke" in each for each in plan.notes)
    assert any("I have a talk tomorrow" in each for each in plan.notes)


# A request, and a word of it that no step takes. Each was planned, and run, without it.
UNREAD = [
    ("convert data/summer_time.csv to parquet into out", "out"),
    ("convert a.csv to parquet with quality 80", "quality"),
    ("convert a.csv to parquet at 80", "80"),
    ("convert a.csv to parquet in videos", "videos"),
    ("convert a.csv to parquet there", "there"),
    ("convert a.csv to parquet for media", "media"),
    ("convert a.csv to parquet resize", "resize"),
    ("make thumbnails of photos as grayscale", "grayscale"),
    ("make thumbnails of photos in 64 pixels", "pixels"),
    ("make thumbnails of summer photos", "photos"),
    ("unpack a.zip into photos", "photos"),
    ("convert talk.webm in videos to mp4", "videos"),
    ("convert the first webm file in videos to mp4", "first"),
    ("convert a.webm or b.webm to mp4", "or"),
    ("convert a.csv to parquet but not b", "not"),
    ("don't convert a.webm to mp4", "don't"),
    ("do not convert a.webm to mp4", "not"),
    ("should I convert a.webm to mp4?", "should"),
    ("не конвертируй a.webm в mp4", "не"),
    ("Конвертируй a.webm в mp4 в папку videos", "папку"),
    (f"download {SHORT} to google drive", "drive"),
    (f"download {SHORT} and upload the report to {DRIVE}", "report"),
    (f"download {SHORT} and upload notes.xyz to {DRIVE}", "notes"),
    (f"Download {SHORT} and {VIDEO}, upload it to {DRIVE}", "it"),
    ("unpack a.zip and convert talk.webm in it to mp4", "it"),
]


def test_word_that_no_step_takes_is_a_gap():
    for text, word in UNREAD:
        plan = plan_of(text)
        reasons = " ".join(each.reason_message for each in plan.gaps if each.step_id is None)
        assert plan.status != "complete" and f"“{word}”" in reasons, (text, reasons)


def test_quoted_text_that_no_step_takes_is_a_gap():
    for text in (
        'convert a.csv to parquet into "out dir"',
        "convert all webm in 'my videos' to mp4 for \"Ann\"",
    ):
        assert left_of(plan_of(text)) == [text], text


def files_of(plan):
    """The files that the steps of a plan take, whatever the input is called."""
    found = []
    for step in plan.steps:
        for value in step.inputs.values():
            found += [each for each in (value if isinstance(value, list) else [value]) if "." in each]
    return found


QUOTES = [
    '""',
    "''",
    "``",
    "“”",
    "„“",
    "„”",
    "‚‘",
    "‘’",
    "«»",
    "»«",
    "‹›",
    "「」",
    "『』",
    "＂＂",
    "””",
    '“"',
]


def test_quotes_of_every_kind_hold_one_name():
    names = ["my talk.webm", "Anna's talk.webm", "a and b.webm", "Tom, Dick.webm", "talk.webm to mp4.webm", "v1.2.webm",
             "[1] talk.webm", "-talk.webm", "TALK.WEBM", "clips/my talk.webm", "мой файл.webm"]  # fmt: skip
    for opening, closing in QUOTES:
        for name in names:
            plan = plan_of(f"convert {opening}{name}{closing} to mp4")
            assert files_of(plan) == [name] and left_of(plan) == [], (opening, name, plan.gaps)
    assert files_of(plan_of('convert "my \\"best\\" talk.webm" to mp4')) == ['my "best" talk.webm']
    assert files_of(plan_of("convert my\\ talk.webm to mp4")) == ["my talk.webm"]


def test_unbalanced_quotes_are_a_gap():
    for name in ('"my talk.webm', 'my talk.webm"', "'my talk.webm", "my talk.webm'", "“my talk.webm", "my talk.webm”",
                 '"my talk".webm', 'data/"my talk.webm"', '"my" "talk.webm', "Anna's 'talk.webm"):  # fmt: skip
        plan = plan_of(f"convert {name} to mp4")
        assert files_of(plan) == [] and plan.gaps, name


@given(st.text(st.sampled_from("ab .,'\"“”()-_&é1"), min_size=1, max_size=12), st.sampled_from(QUOTES))
def test_quoted_name_is_that_name_or_a_gap(stem, quotes):
    name = f"{stem}.webm"
    plan = plan_of(f"convert {quotes[0]}{name}{quotes[1]} to mp4", find_file=lambda text: None)
    assert files_of(plan) in ([name], []) or plan.status != "complete", files_of(plan)


@given(
    st.lists(
        st.text(st.sampled_from("ab ,&1"), min_size=1, max_size=8).map(str.strip), min_size=1, max_size=4
    ),
    st.lists(st.sampled_from(["a", "b", "and", "my", ",", "the", "1"]), max_size=6).map(" ".join),
)
def test_unquoted_name_is_the_file_of_that_name_or_a_gap(stems, extra):
    files = {f"{stem}.csv" for stem in stems}
    meant = f"{extra} {min(files)}".strip()
    plan = plan_of(f"convert {meant} to parquet", find_file=lambda text: text if text in files else None)
    assert plan.status != "complete" or set(files_of(plan)) <= files


def test_names_with_spaces_are_found_among_the_files():
    files = {"summer talk.webm", "talk.webm", "my report.csv", "report.csv", "a and b.webm", "b.webm", "Tom, Dick.webm",
             "talk (1).webm", "only mine.csv"}  # fmt: skip
    cases = {
        "convert summer talk.webm to mp4": ["summer talk.webm"],
        "convert the file summer talk.webm to mp4": ["summer talk.webm"],
        "convert Tom, Dick.webm to mp4": ["Tom, Dick.webm"],
        "convert talk (1).webm to mp4": ["talk (1).webm"],
        "convert the file only mine.csv to parquet": ["only mine.csv"],
        "convert talk.webm to mp4": ["talk.webm"],
        "convert the talk.webm file to mp4": ["talk.webm"],
        # It is not certain which file is meant.
        "convert winter talk.webm to mp4": [],
        "convert my talk.webm to mp4": [],
        "convert the file my report.csv to parquet": [],
        "convert a and b.webm to mp4": [],
        "convert 2 talk.webm to mp4": [],
    }
    for text, expected in cases.items():
        plan = plan_of(text, find_file=lambda name: name if name in files else None)
        assert files_of(plan) == expected, text
        assert bool(left_of(plan)) == (not expected), text


def test_pronoun_is_what_the_step_before_made_and_nothing_else():
    for rest in (
        "convert it from webm to mp4",
        "convert it to mp4",
        "convert the download to mp4",
        "convert that file to mp4",
    ):
        plan = plan_of(f"download {SHORT} then {rest}")
        assert plan.steps[1].inputs == {"mode": "selected", "files": ["steps.step-1.outputs.file_path"]}, rest
    for text in ("download https://example.com/talk.webm then convert it from webm to mp4", "convert it to mp4",
                 "convert them from webm to mp4", "convert the webm to mp4",
                 f"download {SHORT} then convert webm to mp4",
                 "convert https://example.com/talk.webm to mp4"):  # fmt: skip
        plan = plan_of(text)
        assert CONVERT not in [each.capability for each in plan.steps] and left_of(plan), text


def test_quotes_around_more_than_an_address_are_a_gap():
    for text in (
        f'download "see {SHORT} now"',
        f'convert "a.webm {SHORT}" to mp4',
        f'download "{SHORT} and a.webm',
    ):
        plan = plan_of(text)
        assert plan.status != "complete" and left_of(plan), text


def test_request_that_names_very_many_things_is_refused_or_a_gap_at_once():
    for piece in (
        "!",
        ")",
        "(",
        f"{SHORT}) ",
        "'a' ",
        "'a ",
        '"a ',
        "a.webm ",
        "a b c d.csv ",
        "\\ ",
        "it's ",
    ):
        try:
            plan = plan_of(f"convert {piece * (60_000 // len(piece))}to parquet", find_file=lambda name: None)
        except WorkflowError as error:
            assert error.code == "validation" and "more than 2,000" in error.message
        else:
            assert plan.status != "complete"


def test_address_ends_where_its_quotation_marks_and_brackets_end():
    for text in (
        f"'{SHORT}'",
        f'"{SHORT}"',
        f"({SHORT})",
        f"<{SHORT}>",
        f"[{SHORT}]",
        f"“{SHORT}”",
        f"`{SHORT}`",
        f"{SHORT},",
    ):
        assert plan_of(f"download {text}").steps[0].inputs == {"url": SHORT}, text


def test_without_a_model_a_plan_says_how_to_configure_one():
    assert any("%reyn config" in each for each in plan_of("Compose a symphony").notes)
    assert not any("%reyn config" in each for each in plan_of(VIDEO).notes)


def test_a_text_of_the_request_is_never_a_reference():
    rules = read_rules(
        {
            "rules": [
                {
                    "name": "ticket",
                    "capability": "ticket.fetch",
                    "pattern": "ticket «(?P<title>[^»]+)»",
                    "inputs": {"title": {"group": "title"}, "queue": "main", "n": {"value": [1]}},
                }
            ]
        },
        "tools/rules.yaml",
    ).before(built_in_rules())
    plan = plan_of("Get ticket «steps.step-1.outputs.x»; ticket «; rm -rf x»", rules=rules)
    assert plan.steps[0].inputs == {
        "title": {"$value": "steps.step-1.outputs.x"},
        "queue": "main",
        "n": [1],
    }
    assert plan.steps[1].inputs["title"] == "; rm -rf x" and plan.steps[0].references == ()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"name": "x"}, "is missing"),
        ({"pattern": "("}, "RE2"),
        ({"pattern": "(?=a)"}, "RE2"),
        ({"capability": "shell"}, "no capability"),
        ({"inputs": {"a": {"group": "nobody"}}}, "no group"),
        ({"inputs": {"a": {"group": "g", "file": True}}}, "one of group"),
        ({"serves": ["downlaod"]}, "did you mean 'download'"),
        ({"shell": "touch pwn"}, "unknown key"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_place(rule, words):
    sound = {"name": "a", "capability": "a.b", "pattern": "(?P<g>x)"}
    data = {"rules": [rule if rule == {"name": "x"} else {**sound, **rule}]}
    with pytest.raises(WorkflowError) as caught:
        read_rules(data, "tools/rules.yaml")
    problems = caught.value.details["problems"]
    assert any(words in each["message"] for each in problems)
    assert all(
        each["path"].startswith("/rules/0") and each["file"] == "tools/rules.yaml" for each in problems
    )


def test_a_rule_of_a_workspace_comes_first_and_may_replace_one_of_the_same_name():
    own = read_rules(
        {
            "rules": [
                {"name": "youtube-download", "capability": "own.fetch", "pattern": "youtu[.]be/(?P<id>\\S+)"}
            ]
        },
        "tools/rules.yaml",
    )
    plan = plan_of(f"Download {SHORT}", rules=own.before(built_in_rules()))
    assert [each.capability for each in plan.steps] == []  # a rule takes no part of an address
    own = read_rules(
        {
            "rules": [
                {"name": "youtube-download", "capability": "own.fetch", "pattern": "https://youtu[.]be/\\S+"}
            ]
        },
        "tools/rules.yaml",
    )
    plan = plan_of(f"Download {SHORT}", rules=own.before(built_in_rules()))
    assert [each.capability for each in plan.steps] == ["own.fetch"]


def test_a_pattern_that_would_take_for_ever_takes_no_time():
    rules = read_rules(
        {"rules": [{"name": "slow", "capability": "a.b", "pattern": "(a+)+$"}]}, "tools/rules.yaml"
    )
    assert plan_of("a" * 50_000 + "!", rules=rules.before(built_in_rules())).status in (
        "unroutable",
        "partial-complete",
    )


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 200_001, "Delete it. " * 300])
def test_no_request_and_too_much_of_one_are_errors(text):
    with pytest.raises(WorkflowError) as caught:
        plan_of(text)
    assert caught.value.code == "validation"


@given(st.text(min_size=1, max_size=300))
def test_every_word_of_a_request_is_in_an_intent_or_told_or_idle(text):
    if not text.strip():
        return
    request = normalize_request(text)
    rules = built_in_rules()
    covered = [(each.start, each.end) for each in request.intents]
    told = " ".join(request.context)
    for part in request.parts:
        assert any(start <= part.start and part.end <= end for start, end in covered), part
    for word in request.text.split():
        at = request.text.find(word)
        inside = any(start < at + len(word) and at < end for start, end in covered)
        letters = "".join(each for each in word if each.isalpha())
        assert inside or word in told or len(letters) < len(word) or rules.is_idle(letters) or _joins(letters)


def _joins(word):
    """Whether a word joins clauses, and is part of none."""
    return word.casefold() in {"and", "then", "plus", "but", "or", "и", "а", "но", "или", "затем", "потом", "finally",
                               "afterwards", "наконец"}  # fmt: skip
