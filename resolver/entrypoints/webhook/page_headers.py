"""HTTP headers of the server's pages."""

from collections.abc import Mapping

from resolver.config.templates import source_hash

SITE_STYLE = "site/site.css.j2"


def page_headers(policy: str) -> dict[str, str]:
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


def static_page_policy(style: str, form_action: str) -> str:
    """Return the Content-Security-Policy of a page that has only its own style: no script, no
    picture, and nothing that is loaded.

    style: template of the style. form_action: where forms lead, as in the directive.
    """
    return (
        f"default-src 'none'; style-src {source_hash(style)}; base-uri 'none'; "
        f"form-action {form_action}"
    )


def site_headers() -> Mapping[str, str]:
    """Return the headers of pages without a script, whose forms lead to this server."""
    return page_headers(static_page_policy(SITE_STYLE, "'self'"))
