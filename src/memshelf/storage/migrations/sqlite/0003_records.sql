-- Record memories. Texts are UTF-8 in BLOBs, times are microseconds since 1970.

CREATE TABLE record_namespaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,              -- a new one with every purge: cursors of the old one are foreign
    head INTEGER NOT NULL,            -- the number of the last change
    last_position INTEGER NOT NULL,
    forgotten INTEGER NOT NULL        -- removals up to this change are no longer listed
);

-- `position` numbers records in the order they were added; `changed` is the last change that touched the record.
-- `terms` (hashes of words, with counts), `speaker` and `asks` follow from the text, as of version `analysis` of that.
CREATE TABLE records (
    namespace_id INTEGER NOT NULL REFERENCES record_namespaces (id),
    position INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    thread TEXT,
    run_id TEXT,
    principal_id TEXT,
    tool_call_id TEXT,
    replaced_by INTEGER,              -- a position
    analysis INTEGER NOT NULL,
    speaker TEXT,
    asks INTEGER NOT NULL,
    terms BLOB NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (namespace_id, position)
);

CREATE INDEX records_by_change ON records (namespace_id, changed);

CREATE INDEX records_by_replacement ON records (namespace_id, replaced_by) WHERE replaced_by IS NOT NULL;

-- Positions whose records are gone, for indexes in memory.
CREATE TABLE record_removals (
    namespace_id INTEGER NOT NULL REFERENCES record_namespaces (id),
    changed INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, changed)
);

-- What made vectors. Those of two models are never compared.
CREATE TABLE embedding_models (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    UNIQUE (name, version, dimension)
);

-- Rows of float16: the whole text, then its sentences.
CREATE TABLE record_vectors (
    namespace_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    model_id INTEGER NOT NULL REFERENCES embedding_models (id),
    vectors BLOB NOT NULL,
    PRIMARY KEY (namespace_id, position, model_id),
    FOREIGN KEY (namespace_id, position) REFERENCES records (namespace_id, position) ON DELETE CASCADE
);
