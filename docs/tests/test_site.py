# SPDX-License-Identifier: BSD-3-Clause
"""What the built site offers readers: links that lead somewhere, a search, code to copy, sources, other releases."""

import json
import re
import runpy
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import quote, unquote

import jinja2
import pytest
from bs4 import BeautifulSoup
from pages import DOCS, ROOT

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
# A message in which the device, the number and the name of the operator are a reader's own.
PASTED = (
    "torch.AcceleratorError: orMemcpyAsync: device 6 is in an error state: kernel 'vendor::unheard_of' failed: "
    "index 4711 is out of bounds for dimension 3 with size 815; later work was skipped, reset the device"
)


class Links(HTMLParser):
    """The links of a page and the targets inside it. BeautifulSoup would take ten times as long."""

    def __init__(self, text):
        super().__init__()
        self.hrefs, self.ids = [], Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        names = ("id", "name") if tag == "a" else ("id",)
        self.ids.update({given[name] for name in names if name in given})
        if tag == "a" and "href" in given:
            self.hrefs.append(unquote(given["href"]))


def broken_links(site):
    """One line for each link inside the site that leads nowhere, and for each target that a page has twice."""
    pages = {page.resolve(): Links(page.read_text("utf-8")) for page in sorted(site.rglob("*.html"))}
    found = []
    for page, links in pages.items():
        found += [f"{page.name}: #{target}: {count} times" for target, count in links.ids.items() if count > 1]
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


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium is on the path; on Debian: apt-get install chromium"
)


def in_browser(address, folder):
    """What a browser has made of a page."""
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    # The budget is of the page's own time, which stands still while the browser works.
    command += ["--allow-file-access-from-files", "--virtual-time-budget=60000", "--dump-dom", address]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return BeautifulSoup(shown, "html.parser")


@needs_browser
def test_the_search_finds_a_message_that_has_words_of_the_readers_own(site, tmp_path):
    address = f"{(site / 'search.html').as_uri()}?q={quote(PASTED)}"
    found = in_browser(address, tmp_path).select("#search-results li > a")
    assert "using/troubleshooting.html" in [link["href"].partition("#")[0] for link in found[:3]]


@needs_browser
def test_the_search_lists_functions_but_not_each_parameter_that_has_a_name(site, tmp_path):
    found = in_browser(f"{(site / 'search.html').as_uri()}?q=stream", tmp_path).select("#search-results li")
    shown = [entry.get_text() for entry in found]
    assert any("Python function" in text for text in shown), shown
    assert [text for text in shown if "C function parameter" in text] == []


def names(index):
    """The names of functions, settings and the like in the index."""
    return [entry[4] for entries in index["objects"].values() for entry in entries]


def test_pages_fit_a_narrow_screen(site):
    for page in site.rglob("*.html"):
        assert 'name="viewport"' in page.read_text("utf-8"), page


@needs_browser
@pytest.mark.parametrize("page", ["settings", "hooks", "accelerator_api"])
def test_a_wide_table_has_the_whole_width_of_a_narrow_screen(site, tmp_path, page):
    frame = tmp_path / "frame.html"
    measure = (
        "title = ['tbody td', 'table'].map(part => contentDocument.querySelector('.wide-table ' + part).offsetWidth)"
    )
    address = (site / "reference" / f"{page}.html").as_uri()
    frame.write_text(f'<iframe width="390" src="{address}" onload="{measure}"></iframe>', "utf-8")
    (shown,) = in_browser(frame.as_uri(), tmp_path / "browser").find_all("iframe")
    cell, table = map(int, shown["title"].split(","))
    assert cell == table > 300


def test_every_page_has_one_title(site):
    assert [page.name for page in site.rglob("*.html") if page.read_text("utf-8").count("<h1") != 1] == []


def test_every_column_of_a_table_has_a_head_and_a_cell(site):
    empty = re.compile(r"<th[^>]*>\s*(<p>\s*</p>)?\s*</th>|<tbody>\s*</tbody>")
    assert [page.name for page in site.rglob("*.html") if empty.search(page.read_text("utf-8"))] == []


def test_a_long_name_in_a_table_breaks_between_its_words(site):
    table = (site / "testing" / "races.html").read_text("utf-8").partition("</table>")[0]
    assert "OPENREG_<wbr>LAUNCH_<wbr>BLOCKING<" in table


def test_inline_code_breaks_behind_a_slash_and_not_inside_an_option(site):
    text = (site / "testing" / "races.html").read_text("utf-8").partition("</table>")[2]
    assert "include/<wbr>openreg/<wbr>runtime/<wbr>tool_hooks.h<" in text
    assert '<span class="pre option-name">--sanitize</span>' in text


def article(site, page):
    return BeautifulSoup((site / page).read_text("utf-8"), "html.parser").find("article")


def test_the_first_page_does_not_repeat_the_list_of_contents_beside_it(site):
    assert (site / "runtime" / "guard.html").is_file()
    assert article(site, "index.html").select('a[href="runtime/guard.html"]') == []


def test_a_copy_of_code_has_what_a_reader_types_and_nothing_else(site):
    settings = runpy.run_path(str(DOCS / "conf.py"))
    script = (site / "_static" / "copybutton.js").read_text("utf-8")
    assert settings["copybutton_selector"] in script
    left_out = settings["copybutton_exclude"]
    copied = {}
    for page in ("index.html", "tutorial/step3.html"):
        for block in article(site, page).select(settings["copybutton_selector"]):
            language = next(name for name in block.find_parent("div", class_="notranslate")["class"] if "-" in name)
            for part in block.select(left_out):
                part.extract()
            copied.setdefault(language, []).append(block.get_text())
    assert "nox -s wheels\n" in "".join(copied["highlight-console"])
    assert "highlight-text" not in copied


def test_a_page_links_to_its_source(site):
    page = site / "runtime" / "guard.html"
    (link,) = BeautifulSoup(page.read_text("utf-8"), "html.parser").select(".view-this-page a")
    assert (page.parent / link["href"]).read_bytes() == (DOCS / "runtime" / "guard.md").read_bytes()


def test_a_page_links_to_itself_for_the_other_releases_where_they_are_published():
    template = jinja2.Environment(loader=jinja2.FileSystemLoader(DOCS / "_templates")).get_template("releases.html")
    page = {"release": "2.13", "content_root": "../", "pagename": "runtime/guard"}
    shown = BeautifulSoup(template.render(releases="2.13,2.14,2.15", **page), "html.parser")
    assert [link["href"] for link in shown.find_all("a")] == [
        "../../2.14/runtime/guard.html",
        "../../2.15/runtime/guard.html",
    ]
    assert shown.find(attrs={"aria-current": "page"}).get_text() == "2.13"
    assert template.render(**page).strip() == ""


def test_the_names_and_keys_that_the_theme_leaves_out_are_on_every_page(site):
    soup = BeautifulSoup((site / "tutorial" / "step3.html").read_text("utf-8"), "html.parser")
    assert [tag for tag in soup.find_all("aside") if not tag.get("aria-label")] == []
    assert [tag for tag in soup.find_all(attrs={"role": "heading"}) if not tag.get("aria-level")] == []
    assert [tag for tag in soup.select(".highlight pre, .table-wrapper") if tag.get("tabindex") != "0"] == []
    assert soup.find(attrs={"role": "region", "aria-label": "This page"}).select(".theme-toggle")


def test_a_broken_link_is_found_out(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">x</a><a href="#no">y</a><a id="yes" href="#yes">z</a>')
    assert broken_links(tmp_path) == ["a.html: b.html: no page", "a.html: #no: no such place"]


def test_a_target_that_a_page_has_twice_is_found_out(tmp_path):
    (tmp_path / "a.html").write_text('<p id="here">x</p><p id="here">y</p><a id="other" name="other">z</a>')
    assert broken_links(tmp_path) == ["a.html: #here: 2 times"]
