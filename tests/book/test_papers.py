"""An arXiv number in the package names the paper that the bibliography has under it: same first author, same year."""

import json
import re
from pathlib import Path

import pytest
from subnorm_book import notebook_text

from tools.refresh import notebooks

ROOT = Path(__file__).parents[2]
NUMBER = r"\d{4}\.\d{4,5}"
ENTRY = re.compile(r"^@\w+\{(\w+),\n(.*?)^\}", flags=re.MULTILINE | re.DOTALL)
CITED = re.compile(rf"arXiv:({NUMBER})|arxiv\.org/(?:abs|pdf)/({NUMBER})")
#: The numbers of papers whose entry links another copy
ELSEWHERE = {"takase2023b2t": "2206.00330", "liu2022swin": "2111.09883", "touvron2021going": "2103.17239"}
#: Papers of a team, or named by what they describe
TEAMS = {"2501.00656": "OLMo 2", "2410.10989": "Liger-Kernel"}


def papers():
    """{arXiv number: (surname of the first author, year)}"""
    found = {}
    for key, entry in ENTRY.findall((ROOT / "book/references.bib").read_text("utf-8")):
        author = re.search(r"author\s*=\s*\{\{?([^,{}]+)", entry)[1]
        year = re.search(r"year\s*=\s*\{(\d{4})\}", entry)[1]
        for number in {*(a or b for a, b in CITED.findall(entry)), *([ELSEWHERE[key]] if key in ELSEWHERE else [])}:
            assert number not in found, f"{number} is in two entries"
            found[number] = author.split()[-1], year
    return found


def faults_in(text, known):
    text = re.sub(r"\s+", " ", text)
    for match in CITED.finditer(text):
        number, before = match[1] or match[2], text[max(0, match.start() - 70) : match.start()]
        if number not in known:
            yield f"{number} is in no entry: {before}"
            continue
        surname, year = known[number]
        named = re.search(r"([A-Z][^\d.;:]*?(?:et al\.)?),? (\d{4}), $", before)
        if number in TEAMS:
            if TEAMS[number] not in before:
                yield f"{number} is the paper of {TEAMS[number]}: {before}"
        elif match[1] and not named:
            yield f"{number} has no author and year before it: {before}"
        elif match[1] and (surname not in named[1] or named[2] not in (year, f"20{number[:2]}")):
            yield f"{number} is {surname} {year}: {before}"


def test_every_paper_that_the_package_names():
    known, seen = papers(), 0
    texts = {path: path.read_text("utf-8") for path in [*ROOT.glob("subnorm*/**/*.py"), *ROOT.glob("book/*.md")]}
    texts |= {path: json.dumps(notebook_text.read_file(path)) for path in notebooks()}
    for path, text in texts.items():
        seen += len(CITED.findall(text))
        assert list(faults_in(text, known)) == [], path.name
    assert seen > 50


def test_a_number_is_from_about_the_year_of_its_paper():
    for number, (_, year) in papers().items():
        assert 1 <= int(number[2:4]) <= 12
        assert -1 <= int(year) - int(f"20{number[:2]}") <= 4, number


@pytest.mark.parametrize(
    "text",
    [
        "Source: Xiong et al. 2020, arXiv:2002.04746.",
        "Source: Xiong et al. 2020, arXiv:1607.06450.",
        "Source: Xiong et al. 2019, arXiv:2002.04745.",
        "Source: arXiv:2002.04745.",
        "Source: OLMo, arXiv:2501.00656.",
    ],
)
def test_a_wrong_paper_is_found(text):
    assert list(faults_in("Source: Xiong et al. 2020, arXiv:2002.04745.", papers())) == []
    assert list(faults_in(text, papers()))
