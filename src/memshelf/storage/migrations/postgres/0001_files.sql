-- File memories. Text is compared byte by byte ("C"), content is UTF-8 in BYTEA, since it may hold NUL, and times are
-- microseconds since 1970.

CREATE TABLE memories (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    epoch TEXT NOT NULL,              -- a new one with every purge: cursors of the old one are foreign
    head_seq BIGINT NOT NULL,         -- the last version's number and link
    head_link BYTEA NOT NULL,
    created_at BIGINT NOT NULL
) WITH (fillfactor = 50);             -- every write moves a head, which is cheapest where the row's page has room

-- Every version, in the order of its memory: seq has no gaps. Redaction nulls path, sha256, size, salt and content.
CREATE TABLE file_versions (
    memory_id BIGINT NOT NULL REFERENCES memories (id),
    seq BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    file_id TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C",
    operation TEXT NOT NULL CHECK (operation IN ('created', 'modified', 'deleted')),
    moved SMALLINT NOT NULL,          -- whether the parent stood at another path
    path TEXT COLLATE "C",
    sha256 TEXT,
    size BIGINT,
    salt BYTEA,
    commitment BYTEA NOT NULL,
    link BYTEA NOT NULL,
    run_id TEXT COLLATE "C",
    principal_id TEXT COLLATE "C",
    tool_call_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    api_key_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    redacted_at BIGINT,
    redacted_by TEXT,
    content BYTEA,
    PRIMARY KEY (memory_id, seq)
);

CREATE INDEX file_versions_by_file ON file_versions (memory_id, file_id, seq);

CREATE INDEX file_versions_by_path ON file_versions (memory_id, path, file_id) WHERE path IS NOT NULL;

CREATE UNIQUE INDEX file_versions_by_call ON file_versions (memory_id, run_id, tool_call_id)
    WHERE run_id IS NOT NULL AND tool_call_id IS NOT NULL;

-- The live files; their content stands in their version.
CREATE TABLE files (
    memory_id BIGINT NOT NULL REFERENCES memories (id),
    path TEXT COLLATE "C" NOT NULL,
    file_id TEXT COLLATE "C" NOT NULL,
    version_id TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    description BYTEA,                -- UTF-8; it may hold NUL
    PRIMARY KEY (memory_id, path)
);

-- A deleted row stays in its table until it is vacuumed. `wanted` counts the erasures that were committed, `done` those
-- after which the tables were vacuumed.
CREATE TABLE erasures (
    one SMALLINT PRIMARY KEY CHECK (one = 1),
    wanted BIGINT NOT NULL,
    done BIGINT NOT NULL
);

INSERT INTO erasures VALUES (1, 0, 0);
