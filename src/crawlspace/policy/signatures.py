"""By what walls are known: one row for each kind, with why it can be told from a page by that.

The rows come from what the makers of walls document and from the answers themselves. Who adds one adds a test with
such an answer, and makes sure that the pages in the tests which are none still are none.
"""

from __future__ import annotations

from enum import StrEnum, unique

from msgspec import Struct


@unique
class Sort(StrEnum):
    """How we are kept out."""

    CHALLENGE = "challenge"
    """Something is to be computed or shown first, which a browser does by itself."""
    CAPTCHA = "captcha"
    """A person is to prove to be one."""
    WALL = "wall"
    """Refused, without a way in."""
    RATE_LIMIT = "rate_limit"
    """Too much at once: less of it passes. Not blocked, but slowed down and tried again."""


class Signature(Struct, frozen=True, kw_only=True):
    """By what one kind of wall is known. What is given must all fit; in a list one is enough."""

    id: str
    vendor: str
    sort: Sort
    source: str
    """Why this is the wall's own, and no page's."""
    statuses: frozenset[int] = frozenset()
    """Empty: any."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, and what their values contain; empty: anything."""
    titles: tuple[str, ...] = ()
    """Whole titles, in lower case."""
    body: tuple[bytes, ...] = ()
    """What the body contains, in lower case; under a status of success in a tag or a script."""
    also: tuple[bytes, ...] = ()
    """And this too, wherever it stands."""

    @property
    def reads_body(self) -> bool:
        return bool(self.body or self.also or self.titles)


_DENIED = frozenset({401, 403, 405, 406, 429, 503})

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        id="cloudflare-challenge",
        vendor="Cloudflare",
        sort=Sort.CHALLENGE,
        source="Cloudflare documents this header as the way to detect a challenge page, whatever its status.",
        headers=(("cf-mitigated", "challenge"),),
    ),
    Signature(
        id="cloudflare-challenge-page",
        vendor="Cloudflare",
        sort=Sort.CHALLENGE,
        source="The script of every challenge page sets this variable; behind other proxies the header may be lost.",
        statuses=_DENIED | {200, 202},
        body=(
            b"window._cf_chl_opt",
            b'src="/cdn-cgi/challenge-platform/h/',
            b"/cdn-cgi/challenge-platform/orchestrate/",
        ),
        also=(b"just a moment...", b"attention required!", b"cf-turnstile", b"cf_chl_"),
    ),
    Signature(
        id="cloudflare-block",
        vendor="Cloudflare",
        sort=Sort.WALL,
        source="Error page 1020 and its kin (denied by a rule of the site): the class names are the page's own.",
        statuses=frozenset({403, 503}),
        body=(b'class="cf-error-details', b'id="cf-error-details"', b"error code: 1020", b"error code: 1010"),
    ),
    Signature(
        id="cloudflare-rate-limit",
        vendor="Cloudflare",
        sort=Sort.RATE_LIMIT,
        source="Error page 1015, 'You are being rate limited'.",
        statuses=frozenset({429, 403}),
        body=(b"error code: 1015",),
    ),
    Signature(
        id="vercel-challenge",
        vendor="Vercel",
        sort=Sort.CHALLENGE,
        source="The header that Vercel's firewall sets on what it answers itself.",
        headers=(("x-vercel-mitigated", "challenge"), ("x-vercel-mitigated", "deny")),
    ),
    Signature(
        id="aws-waf",
        vendor="AWS WAF",
        sort=Sort.CHALLENGE,
        source="AWS documents 202 with this header for its challenge and 405 with it for its captcha.",
        headers=(("x-amzn-waf-action", "challenge"), ("x-amzn-waf-action", "captcha")),
    ),
    Signature(
        id="datadome",
        vendor="DataDome",
        sort=Sort.CAPTCHA,
        source="Its pages load their captcha or device check from this host, named in a tag or in the variable `dd`.",
        statuses=frozenset({401, 403, 405, 429}),
        body=(b"captcha-delivery.com", b"var dd={'rt':", b'var dd={"rt":'),
    ),
    Signature(
        id="datadome-header",
        vendor="DataDome",
        sort=Sort.CAPTCHA,
        source="Answers of its own carry this header beside a status of refusal; pages that it lets through do not.",
        statuses=frozenset({401, 403, 429}),
        headers=(("x-dd-b", ""),),
    ),
    Signature(
        id="human-captcha",
        vendor="HUMAN (PerimeterX)",
        sort=Sort.CAPTCHA,
        source="Its page sets these variables for the captcha that it loads; sites that it guards set others.",
        statuses=_DENIED | {200},
        body=(b"window._pxappid", b'id="px-captcha"', b"window._pxuuid"),
        also=(b"px-captcha", b"captcha.px-cdn.net", b"_pxjsclientsrc", b"/captcha/captcha.js"),
    ),
    Signature(
        id="imperva-incapsula",
        vendor="Imperva",
        sort=Sort.CHALLENGE,
        source="A frame of this id and path and an incident number. Pages that are let through carry a script of the "
        "path too, but not the frame.",
        statuses=_DENIED | {200},
        body=(b'id="main-iframe"',),
        also=(b'src="/_incapsula_resource?',),
    ),
    Signature(
        id="akamai-denied",
        vendor="Akamai",
        sort=Sort.WALL,
        source="'Access Denied' with a reference number that leads to this host, or the older numbered form.",
        statuses=frozenset({403}),
        titles=("access denied",),
        body=(
            b"errors.edgesuite.net",
            b"you don't have permission to access",
            b"reference&#32;&#35;",
            b"reference #",
        ),
    ),
    Signature(
        id="akamai-challenge",
        vendor="Akamai",
        sort=Sort.CHALLENGE,
        source="The interstitial of its bot manager reloads with this parameter or posts to this path.",
        statuses=_DENIED | {200, 428},
        body=(b"bm-verify=", b"/_sec/verify?provider=", b"/_sec/cp_challenge/", b"sec-if-cpt-container"),
    ),
    Signature(
        id="kasada",
        vendor="Kasada",
        sort=Sort.CHALLENGE,
        source="429 with this header, or a page that is nothing but its script.",
        statuses=frozenset({429}),
        headers=(("x-kpsdk-ct", ""), ("x-kpsdk-r", "")),
    ),
    Signature(
        id="kasada-page",
        vendor="Kasada",
        sort=Sort.CHALLENGE,
        source="The page's own variable, and its script.",
        statuses=frozenset({429, 403}),
        body=(b"window.kpsdk",),
    ),
    Signature(
        id="f5-challenge",
        vendor="F5",
        sort=Sort.CHALLENGE,
        source="A page without content that runs a script of this path and sends itself again.",
        statuses=_DENIED | {200},
        body=(b'src="/tspd/', b'window["bobcmn"]', b"window['bobcmn']"),
    ),
    Signature(
        id="f5-rejected",
        vendor="F5",
        sort=Sort.WALL,
        source="The default answer of its firewall, which comes with status 200.",
        statuses=frozenset({200, 403}),
        titles=("request rejected",),
        also=(b"the requested url was rejected", b"your support id is"),
    ),
    Signature(
        id="sucuri-block",
        vendor="Sucuri",
        sort=Sort.WALL,
        source="The answer of its firewall names itself and its block number.",
        statuses=frozenset({403, 503}),
        headers=(("x-sucuri-block", ""),),
    ),
    Signature(
        id="sucuri-challenge",
        vendor="Sucuri",
        sort=Sort.CHALLENGE,
        source="A page whose script computes this cookie and loads the address again.",
        statuses=frozenset({200, 307, 403, 503}),
        titles=("you are being redirected...",),
        body=(b"sucuri_cloudproxy_js",),
    ),
    Signature(
        id="ddos-guard",
        vendor="DDoS-Guard",
        sort=Sort.CHALLENGE,
        source="Its check page loads its script from this path.",
        statuses=_DENIED | {200},
        body=(b"/.well-known/ddos-guard/check", b"/.well-known/ddos-guard/js-challenge", b"check.ddos-guard.net"),
        also=(b"ddos-guard",),
    ),
    Signature(
        id="anubis",
        vendor="Anubis",
        sort=Sort.CHALLENGE,
        source="A page of proof of work, status 200: these ids hold the challenge.",
        statuses=_DENIED | {200},
        body=(b'id="anubis_challenge"', b"/.within.website/x/cmd/anubis/"),
    ),
    Signature(
        id="go-away",
        vendor="go-away",
        sort=Sort.CHALLENGE,
        source="Its challenges live under this path.",
        statuses=_DENIED | {200, 418},
        body=(b"/.well-known/.git.gammaspectra.live/git/go-away/",),
    ),
    Signature(
        id="google-sorry",
        vendor="Google",
        sort=Sort.CAPTCHA,
        source="The page that its services send to those who ask too much: a form of this path.",
        statuses=frozenset({429, 503, 200}),
        body=(b'action="/sorry/index"', b'id="captcha-form"', b"/sorry/index?continue="),
        also=(b"unusual traffic from your computer network", b"captcha-form"),
    ),
    Signature(
        id="amazon-captcha",
        vendor="Amazon",
        sort=Sort.CAPTCHA,
        source="Its robot check, with status 200 or 503: a form that posts to this path.",
        statuses=frozenset({200, 503}),
        body=(b'action="/errors/validatecaptcha"', b"opfcaptcha.amazon"),
    ),
    Signature(
        id="yandex-captcha",
        vendor="Yandex",
        sort=Sort.CAPTCHA,
        source="Its robot check posts to this path, also when it stands before sites of others.",
        statuses=_DENIED | {200},
        body=(b'action="/checkcaptcha', b"/checkcaptchafast?"),
    ),
    Signature(
        id="aliyun-waf",
        vendor="Alibaba Cloud",
        sort=Sort.CHALLENGE,
        source="The page's own elements and variables.",
        statuses=_DENIED | {200},
        body=(b'name="aliyun_waf_aa"', b"aliyun_waf_", b"var arg1='"),
        also=(b"aliyun_waf", b"acw_sc__v2"),
    ),
    Signature(
        id="tencent-waf",
        vendor="Tencent",
        sort=Sort.CAPTCHA,
        source="Its captcha script in a page of its own.",
        statuses=_DENIED | {200},
        body=(b"waf.tencent.com/", b"/tcaptcha.js"),
        also=(b"/waf_captcha", b"waf_captcha", b"wafcaptcha"),
    ),
    Signature(
        id="radware",
        vendor="Radware",
        sort=Sort.CAPTCHA,
        source="Its bot manager sends to, or frames, this host.",
        statuses=_DENIED | {200},
        body=(b"validate.perfdrive.com", b"captcha.perfdrive.com"),
    ),
    Signature(
        id="sent-to-captcha",
        vendor="Google, Yandex, Radware, Amazon",
        sort=Sort.CAPTCHA,
        source="A redirect to the page where these put their robot checks, which no page of a site lives under.",
        statuses=frozenset({301, 302, 303, 307, 308}),
        headers=(
            ("location", "google.com/sorry/index?continue="),
            ("location", "/showcaptcha?"),
            ("location", "://validate.perfdrive.com/"),
            ("location", "/errors/validatecaptcha?"),
        ),
    ),
    Signature(
        id="fastly-challenge",
        vendor="Fastly",
        sort=Sort.CHALLENGE,
        source="The title and the path of its client challenge.",
        statuses=_DENIED | {200},
        titles=("client challenge",),
        body=(b"/_fs-ch-",),
    ),
    Signature(
        id="reblaze",
        vendor="Reblaze",
        sort=Sort.CHALLENGE,
        source="A page that is nothing but a script which computes this cookie.",
        statuses=_DENIED | {200, 247},
        body=(b"window.rbzns", b"rbzns.challdomain"),
    ),
    Signature(
        id="wordfence",
        vendor="Wordfence",
        sort=Sort.WALL,
        source="The answer of this plug-in names itself.",
        statuses=frozenset({403, 503}),
        body=(b"generated by wordfence", b"your access to this site has been limited"),
        also=(b"wordfence",),
    ),
    Signature(
        id="modsecurity",
        vendor="ModSecurity",
        sort=Sort.WALL,
        source="The answer that its rule sets come with.",
        statuses=frozenset({403, 406, 501}),
        titles=("not acceptable!", "not acceptable"),
        body=(b"generated by mod_security", b"error was generated by mod_security"),
    ),
    Signature(
        id="edgio-challenge",
        vendor="StackPath",
        sort=Sort.CHALLENGE,
        source="Its check page reports to this path.",
        statuses=_DENIED | {200},
        body=(b"/sbbi/?sbbpg=", b"sbbgs="),
    ),
    Signature(
        id="reddit-block",
        vendor="Reddit",
        sort=Sort.WALL,
        source="Its answer to clients that it does not know.",
        statuses=frozenset({403, 429}),
        body=(b"you've been blocked by network security", b"whoa there, pardner!"),
    ),
    Signature(
        id="captcha-page",
        vendor="",
        sort=Sort.CAPTCHA,
        source="A refusal whose page is a widget of a captcha: forms with one come with status 200.",
        statuses=frozenset({401, 403, 405, 429, 503}),
        body=(b'class="h-captcha"', b'class="g-recaptcha"', b'class="cf-turnstile"', b'class="frc-captcha"'),
    ),
    Signature(
        id="javascript-challenge",
        vendor="",
        sort=Sort.CHALLENGE,
        source="A refusal whose script sets a cookie and loads the address again: what most home-made walls do.",
        statuses=_DENIED,
        body=(b"document.cookie=", b"document.cookie ="),
        also=(b"location.reload(", b"location.href=location", b"location=location", b"location.replace(location"),
    ),
)
"""Looked through in this order; the first that fits names the wall."""
