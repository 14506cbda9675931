"""The text of a page and its digests."""

from __future__ import annotations

import hashlib
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawlspace.content.text import follow_digest, main_text, plain_text, text_digest, tree_text
from crawlspace.content.volatile import mask
from crawlspace.pages.scan import scan

LONG = "words that are many enough to say something " * 8
TEXT = text_digest(LONG)
LINKS = ["http://a.test/1", "http://a.test/2"]


def read(html: str) -> str:
    return mask(scan(html.encode(), 0).text or b"").decode()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<title>T</title><p>one</p><p>two <b>three</b></p>", "T one two three"),
        ("<p>a</p><script>var n = 'x7'</script><style>b{}</style><template>c</template>e", "a e"),
        ("<p>a\n\t b\u00a0c &nbsp; f", "a b c f"),
        ("<!-- seen 3 times -->a<noscript>b</noscript>", "a b"),
        ("<frameset><frame src=a></frameset>", ""),
        ("Viewed 1,234 times &mdash; <i>generated in 0.2 seconds</i>", "Viewed {counter} — generated in {elapsed}"),
        ("", ""),
    ],
)
def test_the_text_is_what_a_reader_sees_folded_and_masked(html: str, text: str) -> None:
    assert read(html) == text


def test_reading_a_tree_again_gives_the_same_text() -> None:
    tree = LexborHTMLParser(b"<p>a<script>b</script>")
    assert tree_text(tree) == tree_text(tree) == "a"


@given(st.text(st.sampled_from("ab \n\t\r\f\u00a0éß漢"), max_size=40))
def test_white_space_is_folded(text: str) -> None:
    assert plain_text(text) == " ".join(text.split())
    assert plain_text(plain_text(text)) == plain_text(text)


def test_the_digest_is_sha_256_of_the_text() -> None:
    assert text_digest("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert text_digest("é") == hashlib.sha256("é".encode()).digest()


def test_a_lone_surrogate_stops_nothing() -> None:
    assert plain_text("a \ud800 b") == "a ? b"
    assert len(text_digest("\ud800")) == 32
    assert len(follow_digest(b"", ["http://a/\ud800"])) == 32


BEGIN, END = datetime.fromisoformat("1990-01-01"), datetime.fromisoformat("2999-12-31")
PAGE = "<p>{words}<p>Views: {views}<p>{when}<script nonce={nonce}>var token = '{nonce}'</script><input value={nonce}>"


@given(
    st.integers(0, 10**9),
    st.datetimes(BEGIN, END).map(lambda time: time.isoformat(" ", "seconds")),
    st.text("0123456789abcdef", min_size=16, max_size=32),
)
def test_the_same_page_at_another_visit_has_the_same_digest(views: int, when: str, nonce: str) -> None:
    """Counters, clocks and nonces change on every visit; a hash of the body would call it a new page each time."""
    first = PAGE.format(words=LONG, views=1, when="2024-03-01 12:00:00", nonce="0a")
    again = PAGE.format(words=LONG, views=views, when=when, nonce=nonce)
    assert text_digest(read(first)) == text_digest(read(again))


def test_one_other_word_is_another_text() -> None:
    assert text_digest(plain_text(LONG)) != text_digest(plain_text(LONG + " more"))


@pytest.mark.parametrize(
    ("links", "same"),
    [
        (["http://a.test/2", "http://a.test/1", "http://a.test/1"], True),
        (["http://a.test/1", "http://a.test/3"], False),
        (["http://a.test/1"], False),
        ([], False),
    ],
)
def test_pages_with_the_same_text_are_told_apart_by_their_links(links: list[str], same: bool) -> None:
    """A mirror whose links lead elsewhere is worth following."""
    assert (follow_digest(TEXT, links) == follow_digest(TEXT, LINKS)) is same


def test_session_ids_in_links_make_no_new_page() -> None:
    one, other = ([f"http://a.test/;jsessionid={number:032X}"] for number in (1, 2))
    assert follow_digest(TEXT, one) == follow_digest(TEXT, other)


def test_the_same_links_under_another_text_are_another_page() -> None:
    assert follow_digest(text_digest("another"), LINKS) != follow_digest(TEXT, LINKS)


def test_the_main_text_is_a_pages_own_words_without_what_stands_around_them() -> None:
    whole = (
        "<title>T</title><header>top <a href=/>home</a></header><nav>a b</nav><main>Own <b>words</b></main>"
        "<aside>more</aside><form>ask</form><footer>end</footer><script>no</script>"
    )
    assert main_text(LexborHTMLParser(whole)) == main_text(LexborHTMLParser("<p>Own words")) == "Own words"
