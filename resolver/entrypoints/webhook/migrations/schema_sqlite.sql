CREATE TABLE resolver_alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT resolver_alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE IF NOT EXISTS resolver_requests (
    position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id VARCHAR(300) NOT NULL,
    kind VARCHAR(10) NOT NULL,
    state VARCHAR(10) NOT NULL,
    repository TEXT NOT NULL,
    number BIGINT,
    subject BIGINT,
    "key" TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    login TEXT NOT NULL,
    not_before FLOAT NOT NULL,
    announced BOOLEAN NOT NULL,
    claim INTEGER NOT NULL,
    begun BOOLEAN NOT NULL,
    attempts INTEGER NOT NULL,
    progress INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    outages INTEGER NOT NULL,
    outage_began FLOAT NOT NULL,
    UNIQUE (id)
);

CREATE INDEX IF NOT EXISTS resolver_requests_next ON resolver_requests (state, kind, repository, position);

CREATE INDEX IF NOT EXISTS resolver_requests_oldest ON resolver_requests (state, kind, position);

CREATE INDEX IF NOT EXISTS resolver_requests_due ON resolver_requests (state, not_before);

CREATE INDEX IF NOT EXISTS resolver_requests_announced ON resolver_requests (state, kind, announced, position);

CREATE INDEX IF NOT EXISTS resolver_requests_thread ON resolver_requests (repository, subject, state);

CREATE TABLE IF NOT EXISTS resolver_spending (
    run VARCHAR(200) NOT NULL,
    repository VARCHAR(300) NOT NULL,
    day VARCHAR(10) NOT NULL,
    cost FLOAT NOT NULL,
    unpriced INTEGER NOT NULL,
    reserved FLOAT NOT NULL,
    until FLOAT NOT NULL,
    PRIMARY KEY (run)
);

CREATE INDEX IF NOT EXISTS ix_resolver_spending_repository ON resolver_spending (repository);

CREATE INDEX IF NOT EXISTS ix_resolver_spending_day ON resolver_spending (day);

CREATE TABLE IF NOT EXISTS resolver_looks (
    webhook VARCHAR(400) NOT NULL,
    until FLOAT NOT NULL,
    PRIMARY KEY (webhook)
);

CREATE TABLE IF NOT EXISTS resolver_outcomes (
    repository VARCHAR(300) NOT NULL,
    due FLOAT NOT NULL,
    outcomes TEXT NOT NULL,
    PRIMARY KEY (repository)
);

CREATE INDEX IF NOT EXISTS ix_resolver_outcomes_due ON resolver_outcomes (due);

INSERT INTO resolver_alembic_version (version_num) VALUES ('0001') RETURNING version_num;

-- Running upgrade 0001 -> 0002

ALTER TABLE resolver_requests ADD COLUMN finished_at FLOAT DEFAULT '0' NOT NULL;

UPDATE resolver_alembic_version SET version_num='0002' WHERE resolver_alembic_version.version_num = '0001';
