"""The HTTP headers of the server's pages."""

from resolver.config.templates import source_hash

SITE_POLICY = (
    f"default-src 'none'; style-src {source_hash('site/site.css.j2')}; base-uri 'none'; "
    f"form-action 'self'; script-src {source_hash('site/refresh.js.j2')}; connect-src 'self'"
)
"""Content-Security-Policy of the lists: nothing but their own style and the script that loads a
list again."""


def page_headers(policy: str = SITE_POLICY) -> dict[str, str]:
    """Return the headers of a page that must not be cached, indexed, framed or named as referrer.

    policy: its Content-Security-Policy.
    """
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "X-Robots-Tag": "noindex, nofollow",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
