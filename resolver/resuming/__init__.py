"""How a run goes on from a log: taken up, continued, done again in a fresh sandbox, kept."""
