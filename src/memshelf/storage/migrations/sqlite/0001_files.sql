-- File memories. Paths are compared byte by byte (BINARY), content is UTF-8 in BLOBs, times are microseconds since 1970.

CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,              -- a new one with every purge: cursors of the old one are foreign
    head_seq INTEGER NOT NULL,        -- the last version's number and link
    head_link BLOB NOT NULL,
    created_at INTEGER NOT NULL
);

-- Every version, in the order of its memory: seq has no gaps. Redaction nulls path, sha256, size, salt and content.
-- Content stands last, so that no query for the rest reads its overflow pages.
CREATE TABLE file_versions (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    file_id TEXT NOT NULL,
    parent_id TEXT,
    operation TEXT NOT NULL CHECK (operation IN ('created', 'modified', 'deleted')),
    moved INTEGER NOT NULL,           -- whether the parent stood at another path
    path TEXT,
    sha256 TEXT,
    size INTEGER,
    salt BLOB,
    commitment BLOB NOT NULL,
    link BLOB NOT NULL,
    run_id TEXT,
    principal_id TEXT,
    tool_call_id TEXT,
    session_id TEXT,
    api_key_id TEXT,
    created_at INTEGER NOT NULL,
    redacted_at INTEGER,
    redacted_by TEXT,
    content BLOB,
    PRIMARY KEY (memory_id, seq)
);

CREATE INDEX file_versions_by_file ON file_versions (memory_id, file_id, seq);

CREATE INDEX file_versions_by_path ON file_versions (memory_id, path, file_id) WHERE path IS NOT NULL;

CREATE UNIQUE INDEX file_versions_by_call ON file_versions (memory_id, run_id, tool_call_id)
    WHERE run_id IS NOT NULL AND tool_call_id IS NOT NULL;

-- The live files; their content stands in their version.
CREATE TABLE files (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    path TEXT NOT NULL,
    file_id TEXT NOT NULL,
    version_id TEXT NOT NULL,
    size INTEGER NOT NULL,
    description BLOB,                 -- UTF-8; it may hold NUL, which text in other databases cannot
    PRIMARY KEY (memory_id, path)
) WITHOUT ROWID;

-- Deleted bytes may outlive their rows in free parts of pages and in the write-ahead log. `wanted` counts the erasures
-- that were committed, `done` those after which the files were rewritten.
CREATE TABLE erasures (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    wanted INTEGER NOT NULL,
    done INTEGER NOT NULL
);

INSERT INTO erasures VALUES (1, 0, 0);
