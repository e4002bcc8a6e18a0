# The agent's browser: Playwright's MCP server with Debian's Chromium, for the setting
# `browser_image`. See docs/how-to/browser.md.
ARG BASE=node:22-bookworm-slim
FROM ${BASE}
RUN apt-get update \
  && apt-get install -y --no-install-recommends chromium fonts-dejavu-core \
  && rm -rf /var/lib/apt/lists/* \
  && npm install --global @playwright/mcp@0.0.83 \
  && npm cache clean --force
USER node
ENTRYPOINT ["playwright-mcp", "--executable-path", "/usr/bin/chromium"]
