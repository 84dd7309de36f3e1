# SPDX-License-Identifier: BSD-3-Clause
"""On the built site every internal link has a target, the search finds words, and pages fit narrow screens."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup
from pages import ROOT


class Links(HTMLParser):
    """The links of a page and the targets inside it. BeautifulSoup would take ten times as long."""

    def __init__(self, text):
        super().__init__()
        self.hrefs, self.ids = [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        names = ("id", "name") if tag == "a" else ("id",)
        self.ids.update(given[name] for name in names if name in given)
        if tag == "a" and "href" in given:
            self.hrefs.append(unquote(given["href"]))


def broken_links(site):
    """One line for each link inside the site that leads nowhere."""
    pages = {page.resolve(): Links(page.read_text("utf-8")) for page in sorted(site.rglob("*.html"))}
    found = []
    for page, links in pages.items():
        for href in links.hrefs:
            if re.match(r"\w+:", href):
                continue
            name, _, anchor = href.partition("#")
            target = (page.parent / name.partition("?")[0]).resolve() if name else page
            if not target.is_file():
                found.append(f"{page.name}: {href}: no page")
            elif anchor and target.suffix == ".html" and anchor not in pages[target].ids:
                found.append(f"{page.name}: {href}: no such place")
    return found


def search_words(site):
    """The words that the site's search knows, with the pages that have them."""
    text = (site / "searchindex.js").read_text("utf-8")
    return json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", text, re.DOTALL).group(1))


def test_every_link_leads_somewhere(site):
    assert broken_links(site) == []


def test_an_excerpt_is_shown_with_its_file_and_without_the_lines_that_ask_for_it(site):
    page = site / "runtime" / "guard.html"
    soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
    path = "packages/openreg-runtime/csrc/pytorch/guard.cpp"
    link = next(tag for tag in soup.find_all("a", href=True) if tag.get_text() == path)
    assert (page.parent / link["href"]).read_bytes() == (ROOT / path).read_bytes()
    shown = soup.get_text()
    assert "C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuardImpl)" in shown
    assert "[[[" not in shown


@pytest.mark.parametrize("word", ["alloc", "stream", "openreg_poison", "ormalloc"])
def test_the_search_knows_the_words_of_the_guide(site, word):
    index = search_words(site)
    assert any(
        known.startswith(word) for known in [*index["terms"], *index["titleterms"], *map(str.lower, names(index))]
    )


def test_the_search_finds_an_error_message(site):
    index = search_words(site)
    page = index["docnames"].index("reference/messages")
    for word in ("pageabl", "channel_shuffl"):  # the index has the stems of words
        pages = [found for known, found in index["terms"].items() if known.startswith(word)]
        assert any(page == found or (isinstance(found, list) and page in found) for found in pages), word


def names(index):
    """The names of functions, settings and the like in the index."""
    return [entry[4] for entries in index["objects"].values() for entry in entries]


def test_pages_fit_a_narrow_screen(site):
    for page in site.rglob("*.html"):
        assert 'name="viewport"' in page.read_text("utf-8"), page


def test_a_broken_link_is_found_out(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">x</a><a href="#no">y</a><a id="yes" href="#yes">z</a>')
    assert broken_links(tmp_path) == ["a.html: b.html: no page", "a.html: #no: no such place"]
