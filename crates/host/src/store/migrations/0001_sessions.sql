-- Sessions, their events and messages, requests, access. Ids are text, times are milliseconds since 1970, JSON is text.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    made_at BIGINT NOT NULL, seen_at BIGINT, ends_at BIGINT, used_at BIGINT
);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, key TEXT UNIQUE, request_digest TEXT, engine_session TEXT NOT NULL, folder TEXT NOT NULL, title TEXT NOT NULL,
    state TEXT NOT NULL, mode TEXT, model TEXT, origin TEXT NOT NULL, parent TEXT, head BIGINT NOT NULL DEFAULT 0,
    cost_micros BIGINT NOT NULL DEFAULT 0, made_at BIGINT NOT NULL, touched_at BIGINT NOT NULL, archived BIGINT NOT NULL DEFAULT 0,
    bypass_until BIGINT
);
CREATE INDEX sessions_by_touch ON sessions (archived, touched_at DESC, id);
CREATE UNIQUE INDEX sessions_by_engine ON sessions (engine_session);
CREATE TABLE events (
    session TEXT NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL, kind TEXT NOT NULL, uuid TEXT, body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE UNIQUE INDEX events_by_uuid ON events (session, uuid) WHERE uuid IS NOT NULL;
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, person TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL, seq BIGINT NOT NULL, turn TEXT, made_at BIGINT NOT NULL, UNIQUE (session, key)
);
CREATE INDEX messages_waiting ON messages (session, seq) WHERE state = 'queued';
CREATE TABLE turns (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, cause TEXT NOT NULL, message TEXT, state TEXT NOT NULL, recoveries BIGINT NOT NULL DEFAULT 0,
    began_at BIGINT NOT NULL, ended_at BIGINT, usage TEXT, cost_micros BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX turns_by_session ON turns (session, began_at);
CREATE INDEX turns_running ON turns (session) WHERE state IN ('running', 'suspended');
CREATE TABLE requests (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, turn TEXT, kind TEXT NOT NULL, tool TEXT NOT NULL, body TEXT NOT NULL, scopes TEXT NOT NULL,
    digest TEXT NOT NULL, state TEXT NOT NULL, answer TEXT, person TEXT, by_request TEXT, opened_at BIGINT NOT NULL, closed_at BIGINT
);
CREATE INDEX requests_open ON requests (session) WHERE state = 'open';
CREATE INDEX requests_by_time ON requests (opened_at, id);
CREATE TABLE audit (id TEXT PRIMARY KEY, at BIGINT NOT NULL, person TEXT, what TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE folders (path TEXT PRIMARY KEY, trusted_at BIGINT);
CREATE TABLE uploads (id TEXT PRIMARY KEY, session TEXT, name TEXT NOT NULL, type TEXT NOT NULL, size BIGINT NOT NULL, made_at BIGINT NOT NULL);
CREATE TABLE leases (key TEXT PRIMARY KEY, node TEXT NOT NULL, address TEXT NOT NULL, epoch BIGINT NOT NULL, until BIGINT NOT NULL);
