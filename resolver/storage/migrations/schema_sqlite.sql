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

-- Running upgrade 0002 -> 0003

CREATE TABLE resolver_executors (
    id VARCHAR(36) NOT NULL,
    kind VARCHAR(10) NOT NULL,
    host VARCHAR(255) NOT NULL,
    version VARCHAR(50) NOT NULL,
    slots INTEGER NOT NULL,
    started_at FLOAT NOT NULL,
    lease_until FLOAT NOT NULL,
    draining BOOLEAN NOT NULL,
    PRIMARY KEY (id)
);

ALTER TABLE resolver_requests ADD COLUMN notice_until FLOAT DEFAULT '0' NOT NULL;

ALTER TABLE resolver_requests ADD COLUMN executor VARCHAR(36) DEFAULT '' NOT NULL;

UPDATE resolver_alembic_version SET version_num='0003' WHERE resolver_alembic_version.version_num = '0002';

-- Running upgrade 0003 -> 0004

CREATE TABLE IF NOT EXISTS resolver_events (
    run VARCHAR(200) NOT NULL,
    id INTEGER NOT NULL,
    kind VARCHAR(100) NOT NULL,
    data JSON NOT NULL,
    PRIMARY KEY (run, id)
);

CREATE TABLE resolver_archived_runs (
    run VARCHAR(200) NOT NULL,
    request BIGINT NOT NULL,
    claim INTEGER NOT NULL,
    events INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    changes INTEGER NOT NULL,
    PRIMARY KEY (run)
);

CREATE TABLE resolver_run_files (
    run VARCHAR(200) NOT NULL,
    name VARCHAR(200) NOT NULL,
    size INTEGER NOT NULL,
    digest VARCHAR(64) NOT NULL,
    changed FLOAT NOT NULL,
    PRIMARY KEY (run, name)
);

CREATE TABLE resolver_run_chunks (
    run VARCHAR(200) NOT NULL,
    name VARCHAR(200) NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run, name, number)
);

CREATE TABLE resolver_issue_history (
    position INTEGER NOT NULL,
    conversation VARCHAR(400) NOT NULL,
    entry TEXT NOT NULL,
    identity VARCHAR(64) NOT NULL,
    PRIMARY KEY (position),
    UNIQUE (identity)
);

CREATE INDEX ix_resolver_issue_history_conversation ON resolver_issue_history (conversation);

UPDATE resolver_alembic_version SET version_num='0004' WHERE resolver_alembic_version.version_num = '0003';

-- Running upgrade 0004 -> 0005

CREATE TABLE resolver_runs (
    run VARCHAR(200) NOT NULL,
    repository VARCHAR(300) NOT NULL,
    number INTEGER,
    title TEXT NOT NULL,
    requester VARCHAR(200) NOT NULL,
    kind VARCHAR(40) NOT NULL,
    command VARCHAR(40) NOT NULL,
    state VARCHAR(40) NOT NULL,
    stage VARCHAR(40) NOT NULL,
    reason TEXT NOT NULL,
    cause VARCHAR(60) NOT NULL,
    model VARCHAR(300) NOT NULL,
    day VARCHAR(10) NOT NULL,
    started FLOAT NOT NULL,
    ended FLOAT,
    cost FLOAT NOT NULL,
    unpriced INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    branch TEXT NOT NULL,
    pull_request TEXT NOT NULL,
    executor VARCHAR(200) NOT NULL,
    PRIMARY KEY (run)
);

CREATE INDEX ix_resolver_runs_repository ON resolver_runs (repository);

CREATE INDEX ix_resolver_runs_requester ON resolver_runs (requester);

CREATE INDEX ix_resolver_runs_state ON resolver_runs (state);

CREATE INDEX ix_resolver_runs_day ON resolver_runs (day);

UPDATE resolver_alembic_version SET version_num='0005' WHERE resolver_alembic_version.version_num = '0004';

-- Running upgrade 0005 -> 0006

ALTER TABLE resolver_run_files ADD COLUMN blob VARCHAR(300) DEFAULT '' NOT NULL;

UPDATE resolver_alembic_version SET version_num='0006' WHERE resolver_alembic_version.version_num = '0005';

-- Running upgrade 0006 -> 0007

CREATE TABLE resolver_notes (
    repository VARCHAR(300) NOT NULL,
    notes TEXT NOT NULL,
    PRIMARY KEY (repository)
);

UPDATE resolver_alembic_version SET version_num='0007' WHERE resolver_alembic_version.version_num = '0006';

-- Running upgrade 0007 -> 0008

CREATE TABLE resolver_purges (
    repository VARCHAR(300) NOT NULL,
    "before" FLOAT NOT NULL,
    PRIMARY KEY (repository)
);

UPDATE resolver_alembic_version SET version_num='0008' WHERE resolver_alembic_version.version_num = '0007';

-- Running upgrade 0008 -> 0009

ALTER TABLE resolver_requests ADD COLUMN priority INTEGER DEFAULT '0' NOT NULL;

DROP INDEX resolver_requests_next;

CREATE INDEX resolver_requests_next ON resolver_requests (state, kind, repository, priority, position);

UPDATE resolver_alembic_version SET version_num='0009' WHERE resolver_alembic_version.version_num = '0008';

-- Running upgrade 0009 -> 0010

ALTER TABLE resolver_requests ADD COLUMN actor TEXT DEFAULT '' NOT NULL;

UPDATE resolver_alembic_version SET version_num='0010' WHERE resolver_alembic_version.version_num = '0009';
