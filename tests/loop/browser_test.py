#!/usr/bin/env python3
"""A documentation of many pages in Chromium: everything arrives and fits, and a second visit transfers nothing again.

PENSTOCK_PROGRAM is the program. The pages are those of the Debian package python-flask-doc: HTML with style sheets,
scripts and images that many of them share.
"""

import collections
import pathlib
import re
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
from _devtools import BROWSER, Chromium
from program_test import PROGRAM, WithDirectory, serve

PAGES = pathlib.Path("/usr/share/doc/python-flask-doc/html")
PAGES_TO_VISIT = 10
LOADS_LIMIT = 2 * PAGES_TO_VISIT  # every second one may lead back
ICON = "/flask-icon.png"  # both an image of pages and the icon that the browser shows for them
TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".png": "image/png"}
# Clicks on the first link to one of these pages, and tells whether there is one.
CLICK = """(pages => {
    for (const link of document.querySelectorAll('a[href]')) {
        const page = link.origin + link.pathname;
        if (pages.includes(page)) {
            link.click();
            return true;
        }
    }
    return false;
})(%s)"""
BROKEN_IMAGES = "Array.from(document.images).filter(image => !image.naturalWidth).map(image => image.src)"


class Documentation(WithDirectory):
    def setUp(self):
        super().setUp()
        self.profile = self.directory / "profile"
        self.site = self.directory / "site"
        # What it links to from elsewhere would be refused: it is outside of the directory that is served.
        shutil.copytree(PAGES, self.site, symlinks=False, ignore=shutil.ignore_patterns("_sources"))

    def visit_first(self, base):
        """Follows links from page to page with nothing in the cache: the addresses of the pages, and all fetches."""
        start = base + "index.html"
        # Only what is there: a page that the package lacks is linked to all the same.
        left = {base + str(path.relative_to(self.site)) for path in self.site.rglob("*.html")}
        visited, fetches = [], []
        with Chromium(self.profile) as browser:
            page = browser.navigate(start)
            for _ in range(LOADS_LIMIT):
                self.assertEqual(page.complaints, [], page.url)
                self.assertEqual(browser.evaluate(BROKEN_IMAGES), [], page.url)
                fetches += page.fetches_of(base)
                if page.url in left:
                    visited.append(page.url)
                    left.remove(page.url)
                if len(visited) == PAGES_TO_VISIT:
                    return visited, fetches
                # From where there is nothing new it goes back to the start.
                page = browser.load(lambda: self.click(browser, [left, {start}]))
        self.fail(f"only {len(visited)} pages were reached: {visited}")

    def click(self, browser, choices):
        for pages in choices:
            if browser.evaluate(CLICK % sorted(pages)):
                return
        self.fail("no link leads on from here")

    def visit_again(self, base, visited):
        """The same pages with what a former browser left in the cache, each opened and then loaded again."""
        opened, reloaded = [], []
        with Chromium(self.profile) as browser:
            for url in visited:
                for load, fetches in ((lambda: browser.navigate(url), opened), (browser.reload, reloaded)):
                    page = load()
                    self.assertEqual((page.url, page.complaints), (url, []))
                    self.assertEqual(browser.evaluate(BROKEN_IMAGES), [], url)
                    fetches += page.fetches_of(base)
        return opened, reloaded

    def visit_twice(self, *options):
        with serve(self.site, *options) as program:
            base = f"http://127.0.0.1:{program.port}/"
            visited, fetches = self.visit_first(base)
            self.check_first(visited, fetches)
            opened, reloaded = self.visit_again(base, visited)
            self.check_again(fetches, opened)
            self.check_again(fetches, reloaded)
            status, line = program.end()
            self.assertEqual((status, program.stderr()), (0, ""))
        # What the browser says of its cache the server bears out. Each time that a page loads it may ask for the icon.
        asked = sum(fetch.was_asked() for fetch in fetches + opened + reloaded)
        loads = sum(fetch.url.endswith(".html") for fetch in fetches + opened + reloaded)
        self.assertIn(int(re.search(r"\d+", line).group()), range(asked, asked + loads + 1))
        self.tell(fetches=fetches, opened=opened, reloaded=reloaded)
        return fetches, opened, reloaded

    def check_first(self, visited, fetches):
        self.assertEqual(len(set(visited)), PAGES_TO_VISIT)
        for fetch in fetches:
            with self.subTest(fetch=fetch):
                self.assertEqual(fetch.failure, "")
                self.assertEqual(fetch.mime_type, TYPES[pathlib.PurePath(fetch.url).suffix])
                # A later page finds in the cache what an earlier one has brought.
                if not fetch.is_known_already():
                    self.assertEqual((fetch.status, fetch.wire_status), (200, 200))
        # Whatever it is, its bytes came once. Those of the icon may have come before the first image of it.
        brought = [fetch for fetch in fetches if fetch.body_bytes() and not fetch.url.endswith(ICON)]
        urls = [fetch.url for fetch in brought]
        self.assertEqual(sorted(urls), sorted({fetch.url for fetch in fetches if not fetch.url.endswith(ICON)}))
        suffixes = collections.Counter(pathlib.PurePath(url).suffix for url in urls)
        self.assertEqual(suffixes.keys(), TYPES.keys())
        self.assertEqual(suffixes[".html"], PAGES_TO_VISIT)
        self.assertGreaterEqual(suffixes.total(), 2 * PAGES_TO_VISIT)
        for fetch in brought:
            path = self.site / fetch.url.split("/", 3)[3]
            self.assertEqual(fetch.body_bytes(), path.stat().st_size, fetch.url)

    def check_again(self, first, fetches):
        self.assertEqual({fetch.url for fetch in fetches}, {fetch.url for fetch in first})
        for fetch in fetches:
            if fetch.url.endswith(ICON):
                continue  # it may be asked for anew as the icon of the page while its answer as an image is on its way
            with self.subTest(fetch=fetch):
                self.assertEqual((fetch.failure, fetch.body_bytes()), ("", 0))
                self.assertTrue(fetch.is_known_already())

    def tell(self, **visits):
        print()
        for name, fetches in visits.items():
            statuses = collections.Counter(fetch.wire_status or "from cache" for fetch in fetches)
            told = ", ".join(f"{count} {status}" for status, count in statuses.items())
            body_bytes = sum(fetch.body_bytes() for fetch in fetches)
            print(f"{self.id().rsplit('.')[-1]}, {name}: {told}; {body_bytes} bytes of bodies")

    def test_a_second_visit_transfers_no_body(self):
        _, _, reloaded = self.visit_twice()
        # Without a word of the server the browser itself decides what is fresh; the page it asks about.
        asked = [fetch.url for fetch in reloaded if fetch.wire_status == 304]
        self.assertGreaterEqual(len(asked), PAGES_TO_VISIT)

    def test_each_file_is_asked_about_where_the_site_wants_it(self):
        _, opened, reloaded = self.visit_twice("--cache-control", "*=no-cache")
        for fetches in (opened, reloaded):
            answered = {fetch.url for fetch in fetches if fetch.wire_status == 304}
            self.assertEqual(answered, {fetch.url for fetch in fetches})


def reason_to_skip():
    if not PROGRAM:
        return "set PENSTOCK_PROGRAM to the server program"
    if not BROWSER:
        return "there is no Chromium here (Debian package chromium)"
    if not (PAGES / "index.html").exists():
        return f"{PAGES} does not exist (Debian package python-flask-doc)"
    return None


if __name__ == "__main__":
    if reason := reason_to_skip():
        print(reason, file=sys.stderr)
        sys.exit(77)
    unittest.main()
