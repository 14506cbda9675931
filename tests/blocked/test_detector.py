"""Walls are known by their signatures, and pages that talk about walls, look like them or guard a form are pages."""

from __future__ import annotations

import time

import pytest

from crawlspace.exchange import FetchResult, Headers
from crawlspace.policy.blocked import FEW_LINKS, LOOKED_AT, SMALL, Detector
from crawlspace.policy.routes import SignatureRule
from crawlspace.policy.signatures import SIGNATURES, Sort


def answer(status: int, body: str | bytes = "", **fields: str) -> FetchResult:
    """An answer; header names with `_` for the hyphen."""
    raw = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in fields.items())
    data = body.encode() if isinstance(body, str) else body
    return FetchResult("http://a.test/x", 0, status=status, headers=Headers(raw), body=data)


def page(body: str, title: str = "", head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


WALLS = [
    ("cloudflare-challenge", answer(403, "", cf_mitigated="challenge")),
    ("cloudflare-challenge", answer(200, page("x" * 50_000), cf_mitigated="challenge")),
    (
        "cloudflare-challenge-page",
        answer(503, page("<script>window._cf_chl_opt={cvId:'3'};</script>", "Just a moment...")),
    ),
    (
        "cloudflare-challenge-page",
        answer(200, page("<script>window._cf_chl_opt={cvId:'3'};</script>", "Just a moment...")),
    ),
    (
        "cloudflare-block",
        answer(403, page('<div id="cf-error-details" class="cf-error-details-wrapper">Denied</div>')),
    ),
    ("cloudflare-block", answer(403, "error code: 1020")),
    ("cloudflare-rate-limit", answer(429, "error code: 1015")),
    ("vercel-challenge", answer(429, page("Checking", "Vercel Security Checkpoint"), x_vercel_mitigated="challenge")),
    ("aws-waf", answer(202, "", x_amzn_waf_action="challenge")),
    (
        "aws-waf",
        answer(405, page("<div id=captcha-container></div>", "Human Verification"), x_amzn_waf_action="captcha"),
    ),
    (
        "datadome",
        answer(
            403,
            page(
                "<script>var dd={'rt':'c','cid':'x','hsh':'y','t':'bv','host':'geo.captcha-delivery.com'}</script>"
                '<script src="https://ct.captcha-delivery.com/c.js"></script>'
            ),
        ),
    ),
    ("datadome-header", answer(403, '{"url":"https://elsewhere.test"}', x_dd_b="1")),
    (
        "human-captcha",
        answer(
            403,
            page(
                "<script>window._pxAppId='PX1';window._pxJsClientSrc='/x.js';</script><div id=\"px-captcha\"></div>",
                "Access to this page has been denied",
            ),
        ),
    ),
    (
        "imperva-incapsula",
        answer(
            200,
            '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body>'
            '<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=9&xinfo=1">Request unsuccessful. '
            "Incapsula incident ID: 1-2</iframe></body></html>",
        ),
    ),
    (
        "akamai-denied",
        answer(
            403,
            "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\nYou don't "
            'have permission to access "http&#58;&#47;&#47;a&#46;test" on it.<P>\nReference&#32;&#35;18&#46;1',
        ),
    ),
    (
        "akamai-challenge",
        answer(
            200,
            '<html><head><meta http-equiv="refresh" content="5; URL=\'/?bm-verify=AAQ\'" /></head><body><script>'
            'var i=1;xhr.open("POST","/_sec/verify?provider=interstitial",false);</script></body></html>',
        ),
    ),
    ("kasada", answer(429, page("<script src=/ips.js></script>"), x_kpsdk_ct="1")),
    ("kasada-page", answer(403, page("<script>window.KPSDK={};KPSDK.now=1</script>"))),
    (
        "f5-challenge",
        answer(200, '<html><head><script type="text/javascript" src="/TSPD/08?type=11"></script></head>'),
    ),
    (
        "f5-rejected",
        answer(
            200,
            "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult "
            "with your administrator.<br><br>Your support ID is: 123<br><br><a href='javascript:history.back();'>",
        ),
    ),
    ("sucuri-block", answer(403, page("Access Denied", "Sucuri WebSite Firewall"), x_sucuri_block="BNP003")),
    (
        "sucuri-challenge",
        answer(200, page("<script>sucuri_cloudproxy_js='';S='cz0n';</script>", "You are being redirected...")),
    ),
    (
        "ddos-guard",
        answer(403, page('<script src="/.well-known/ddos-guard/check?context=x"></script>', "DDoS-Guard")),
    ),
    ("anubis", answer(200, page('<script id="anubis_challenge" type="application/json">{}</script>', "Not a bot!"))),
    ("go-away", answer(418, page('<link href="/.well-known/.git.gammaspectra.live/git/go-away/x.css">'))),
    (
        "google-sorry",
        answer(
            429,
            page(
                '<form id="captcha-form" action="index" method="post"></form>Our systems have detected unusual '
                "traffic from your computer network.",
                "http://a.test/",
            ),
        ),
    ),
    (
        "amazon-captcha",
        answer(200, page('<form method="get" action="/errors/validateCaptcha" name="">', "Amazon.com")),
    ),
    ("yandex-captcha", answer(200, page('<form method="POST" action="/checkcaptcha?key=1">', "Oops!"))),
    ("aliyun-waf", answer(405, page('<meta name="aliyun_waf_aa" content="x">'))),
    (
        "aliyun-waf",
        answer(200, "<html><script>var arg1='ABC';function setCookie(){document.cookie='acw_sc__v2='}</script>"),
    ),
    (
        "tencent-waf",
        answer(403, page('<script src="https://ssl.captcha.test/TCaptcha.js"></script><i id="waf_captcha">')),
    ),
    ("radware", answer(200, page('<iframe src="https://validate.perfdrive.com/x?ssa=1"></iframe>'))),
    ("sent-to-captcha", answer(302, location="https://validate.perfdrive.com/abc/captcha?ssa=1")),
    ("sent-to-captcha", answer(302, location="https://www.google.com/sorry/index?continue=https://a.test/")),
    ("fastly-challenge", answer(200, page('<script src="/_fs-ch-1T1/script.js"></script>', "Client Challenge"))),
    ("reblaze", answer(247, page('<script>window.rbzns={bereshit:"1"};winsocks();</script>'))),
    (
        "wordfence",
        answer(
            503, page("Your access to this site has been limited by the site owner. Generated by Wordfence at now")
        ),
    ),
    (
        "modsecurity",
        answer(406, page("<h1>Not Acceptable!</h1>This error was generated by Mod_Security.", "Not Acceptable!")),
    ),
    ("edgio-challenge", answer(403, page('<script>var x="/sbbi/?sbbpg=sbbShell&gprid=1"</script>'))),
    ("reddit-block", answer(403, page("You've been blocked by network security."))),
    ("captcha-page", answer(403, page('<div class="g-recaptcha" data-sitekey="x"></div>'))),
    (
        "javascript-challenge",
        answer(503, page("<script>document.cookie='ok=1';location.reload();</script>", "Please wait")),
    ),
]


@pytest.mark.parametrize(("name", "wall"), WALLS, ids=[f"{n}-{name}" for n, (name, _) in enumerate(WALLS)])
def test_a_wall_is_known(name: str, wall: FetchResult) -> None:
    found = Detector().recognise(wall)
    assert found is not None
    assert found.id == name


def test_every_signature_has_a_wall_and_says_why_and_is_named_once() -> None:
    assert {each.id for each in SIGNATURES} == {name for name, _ in WALLS}
    assert len({each.id for each in SIGNATURES}) == len(SIGNATURES)
    for each in SIGNATURES:
        assert each.source.endswith(".")
        assert all(marker == marker.lower() for marker in (*each.body, *each.also))
        assert all(title == title.lower() for title in each.titles)
        assert each.headers or each.titles or each.body


ARTICLE = (
    "<p>Cloudflare shows &quot;Just a moment...&quot; and sets <code>window._cf_chl_opt</code>; an answer carries "
    '<code>src="/cdn-cgi/challenge-platform/h/b"</code>. DataDome loads geo.captcha-delivery.com, Imperva says '
    '<code>&lt;iframe id="main-iframe" src="/_Incapsula_Resource?x"&gt;</code> Incapsula incident ID, PerimeterX '
    'shows <code>id="px-captcha"</code> from captcha.px-cdn.net, Akamai posts to /_sec/verify?provider= and '
    'bm-verify=, F5 loads <code>src="/TSPD/08"</code>, Amazon has <code>action="/errors/validateCaptcha"</code>, '
    'Yandex <code>action="/checkcaptcha"</code>, Google <code>action="/sorry/index"</code> and says unusual traffic '
    'from your computer network, Anubis <code>id="anubis_challenge"</code>, DDoS-Guard loads '
    '/.well-known/ddos-guard/check, Aliyun has name="aliyun_waf_aa" and acw_sc__v2, Radware validate.perfdrive.com, '
    "Reblaze window.rbzns, Wordfence writes Generated by Wordfence. Access Denied. Request Rejected.</p>"
)

PAGES = {
    "an article on captchas, short and without links": answer(200, page(ARTICLE, "How captchas work")),
    "the same in capitals": answer(200, page(ARTICLE.upper(), "CAPTCHAS")),
    "a documentation page on one wall": answer(
        200,
        page(
            "<h1>Detect a challenge page</h1><p>Look for the header <code>cf-mitigated: challenge</code>.</p>",
            "Detect a Challenge Page",
        ),
    ),
    "a log-in page with a captcha in its form": answer(
        200,
        page(
            '<form action="/login" method="post"><input name="user"><input type="password"><div class="g-recaptcha" '
            'data-sitekey="k"></div><div class="h-captcha"></div><div class="cf-turnstile"></div></form>'
            '<script src="https://www.google.com/recaptcha/api.js"></script>',
            "Log in",
        ),
    ),
    "a contact form with a captcha": answer(200, page('<form><div class="h-captcha"></div></form>', "Contact us")),
    "a small page behind Imperva": answer(
        200, page('<h1>Welcome</h1><script src="/_Incapsula_Resource?SWJIYLWA=7"></script>', "Home")
    ),
    "a page behind HUMAN": answer(
        200, page("<h1>Shop</h1><script>window._pxAppId='PX1';</script><script src=/init.js></script>", "Shop")
    ),
    "a page behind Cloudflare's script": answer(
        200, page('<p>text</p><script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>', "Blog")
    ),
    "a page behind DataDome": answer(200, page('<script src="https://js.datadome.co/tags.js"></script>'), x_dd_b="1"),
    "a page behind Kasada": answer(200, page("<p>text</p>"), x_kpsdk_ct="1"),
    "a page behind AWS WAF": answer(200, page('<script src="https://x.token.awswaf.com/challenge.js"></script>')),
    "a page named so": answer(200, page("<p>A poem.</p>", "Just a moment...")),
    "a page named Access Denied": answer(200, page("<p>A film.</p>", "Access Denied")),
    "a page named Request Rejected": answer(200, page("<p>A guide to letters of reply.</p>", "Request Rejected")),
    "a page that sets a cookie and loads again": answer(
        200, page("<script>document.cookie='lang=de';location.reload();</script>", "Choose a language")
    ),
    "a page of scripts alone": answer(200, page('<div id="root"></div><script src="/app.js"></script>', "App")),
    "a plain refusal": answer(
        403, page("<h1>Forbidden</h1><p>You don't have permission to access this.", "403 Forbidden")
    ),
    "a refusal to members only": answer(403, page("<p>Please log in.</p>", "Members only")),
    "a request for a password": answer(401, "Unauthorized", www_authenticate="Basic"),
    "a server that is down": answer(503, page("<h1>Service Unavailable</h1>", "503"), retry_after="120"),
    "a gateway that is down": answer(502, page("<center>nginx</center>", "502 Bad Gateway")),
    "a limit": answer(429, '{"message": "too many requests"}', retry_after="10"),
    "a page that is not there, of a site behind a wall": answer(
        404, page("<script>window._cf_chl_opt={}</script>", "Just a moment...")
    ),
    "a redirect": answer(302, "", location="/captcha", cf_mitigated=""),
    "a redirect to an article": answer(301, page("<script>window._cf_chl_opt={}</script>"), location="/showcaptcha"),
    "a redirect without an aim": answer(304, ""),
    "an empty page": answer(200),
    "a picture": answer(200, b"\x89PNG\r\n\x1a\n" + bytes(1000)),
    "a large page with a wall's script": answer(
        200, page("<p>word</p>" * SMALL + "<script>window._cf_chl_opt={}</script>", "Just a moment...")
    ),
    "a page of many links with a wall's script": answer(
        200,
        page('<a href="/x">x</a>' * (FEW_LINKS + 1) + "<script>window._cf_chl_opt={}</script>", "Just a moment..."),
    ),
    "a refusal with the marker too far behind": answer(403, "x" * LOOKED_AT + "error code: 1020"),
    "an unclosed title": answer(403, "<title>access denied"),
    "a title without an end of its tag": answer(403, "<title"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_no_wall(name: str) -> None:
    assert Detector().recognise(PAGES[name]) is None


def test_signatures_can_be_left_out_and_added() -> None:
    wall = answer(403, "error code: 1020", server="shield")
    assert Detector(ignore=["cloudflare-block"]).recognise(wall) is None
    own = SignatureRule(
        id="shield",
        url="glob:http://a.test/**",
        statuses=(403,),
        header="Server: SHIELD",
        body="CODE: 10",
        sort="captcha",
    )
    found = Detector([own]).recognise(wall)
    assert found is not None
    assert (found.id, found.sort) == ("shield", Sort.CAPTCHA)
    found = Detector([SignatureRule(id="shield", url="glob:http://b.test/**", statuses=(403,))]).recognise(wall)
    assert found is not None
    assert found.id == "cloudflare-block"
    busy = Detector([SignatureRule(id="shield", statuses=(500, 503))])
    assert busy.recognise(answer(401, "")) is None
    titled = Detector([SignatureRule(id="members", title=" Members  ONLY ")])
    found = titled.recognise(answer(200, page("<a>x</a>" * 1000, "Members\n only")))
    assert found is not None
    assert found.id == "members"


@pytest.mark.parametrize(
    "body",
    [
        b"<" * LOOKED_AT,
        b"window.kpsdk " * 5000,
        b"<title>" * 9000,
        b'id="main-iframe" ' * 4000,
        b"<script" * 9000,
        bytes(LOOKED_AT),
    ],
)
def test_hostile_bodies_take_no_time(body: bytes) -> None:
    """Ten milliseconds of CPU for 64 KiB at most, whatever they hold; the second is for slow machines."""
    begun = time.process_time()
    for _ in range(10):
        Detector().recognise(answer(403, body))
        Detector().recognise(answer(200, body[:SMALL]))
    assert time.process_time() - begun < 1
