-- An edit writes two pages fewer. Where a memory stands follows from its last version, and times stand beside the
-- numbers of versions instead of in an index of their own: a key cannot be changed, so the table is made anew.

CREATE TABLE versions (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    file_id TEXT NOT NULL,
    parent_id TEXT,
    -- A list would be made anew for every row, which takes a fifth of its insertion.
    operation TEXT NOT NULL CHECK (operation = 'modified' OR operation = 'created' OR operation = 'deleted'),
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
    PRIMARY KEY (memory_id, seq, created_at)
);

INSERT INTO versions SELECT
    memory_id, seq, id, file_id, parent_id, operation, moved, path, sha256, size, salt, commitment, link, run_id,
    principal_id, tool_call_id, session_id, api_key_id, created_at, redacted_at, redacted_by, content
FROM file_versions ORDER BY rowid;

-- Vectors go with their versions, so they are put aside while the table is exchanged.
CREATE TABLE vectors AS SELECT memory_id, version_id, maker, vectors FROM file_vectors;

DROP TABLE file_vectors;

DROP TABLE file_versions;

ALTER TABLE versions RENAME TO file_versions;

CREATE INDEX file_versions_by_file ON file_versions (memory_id, file_id, seq, created_at);

CREATE UNIQUE INDEX file_versions_by_call ON file_versions (memory_id, run_id, tool_call_id)
    WHERE run_id IS NOT NULL AND tool_call_id IS NOT NULL;

CREATE INDEX file_versions_by_session ON file_versions (memory_id, session_id, seq, created_at)
    WHERE session_id IS NOT NULL;

CREATE TABLE file_vectors (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    version_id TEXT NOT NULL REFERENCES file_versions (id) ON DELETE CASCADE,
    maker TEXT NOT NULL,              -- the embedding model, and how passages were cut
    vectors BLOB NOT NULL,
    PRIMARY KEY (memory_id, version_id)
);

CREATE INDEX file_vectors_by_version ON file_vectors (version_id);

INSERT INTO file_vectors SELECT memory_id, version_id, maker, vectors FROM vectors
WHERE version_id IN (SELECT id FROM file_versions);

DROP TABLE vectors;

CREATE TRIGGER file_vectors_of_erased_versions AFTER UPDATE OF content ON file_versions WHEN NEW.content IS NULL
BEGIN
    DELETE FROM file_vectors WHERE version_id = NEW.id;
END;

-- An older memshelf that opened the database before this goes by the memory's own row, and would use a number twice.
CREATE TRIGGER memories_follow_versions BEFORE UPDATE OF head_seq ON memories
WHEN (SELECT count(*) FROM file_versions v WHERE v.memory_id = NEW.id AND v.seq >= NEW.head_seq) > 1
BEGIN
    SELECT RAISE(ABORT, 'The number of the version is taken.');
END;

-- What a memory's own row says of its head is as of the last file that came or went.
CREATE VIEW memory_heads AS
SELECT
    m.id,
    m.epoch,
    CASE WHEN v.seq > m.head_seq THEN v.seq ELSE m.head_seq END AS head_seq,
    CASE WHEN v.seq > m.head_seq THEN v.link ELSE m.head_link END AS head_link,
    m.files
FROM memories m LEFT JOIN file_versions v
    ON v.memory_id = m.id AND v.seq = (SELECT max(n.seq) FROM file_versions n WHERE n.memory_id = m.id);
