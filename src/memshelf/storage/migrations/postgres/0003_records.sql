-- Record memories. Texts are UTF-8 in BYTEA, since they may hold NUL; times are microseconds since 1970.

CREATE TABLE record_namespaces (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    epoch TEXT NOT NULL,              -- a new one with every purge: cursors of the old one are foreign
    head BIGINT NOT NULL,             -- the number of the last change
    last_position BIGINT NOT NULL,
    forgotten BIGINT NOT NULL         -- removals up to this change are no longer listed
) WITH (fillfactor = 50);             -- every write moves a head, which is cheapest where the row's page has room

-- `position` numbers records in the order they were added; `changed` is the last change that touched the record.
-- `terms` (hashes of words, with counts), `speaker` and `asks` follow from the text, as of version `analysis` of that.
CREATE TABLE records (
    namespace_id BIGINT NOT NULL REFERENCES record_namespaces (id),
    position BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    thread TEXT COLLATE "C",
    run_id TEXT COLLATE "C",
    principal_id TEXT COLLATE "C",
    tool_call_id TEXT COLLATE "C",
    replaced_by BIGINT,               -- a position
    analysis BIGINT NOT NULL,
    speaker TEXT COLLATE "C",
    asks BIGINT NOT NULL,
    terms BYTEA NOT NULL,
    text BYTEA NOT NULL,
    PRIMARY KEY (namespace_id, position)
);

CREATE INDEX records_by_change ON records (namespace_id, changed);

CREATE INDEX records_by_replacement ON records (namespace_id, replaced_by) WHERE replaced_by IS NOT NULL;

-- Positions whose records are gone, for indexes in memory.
CREATE TABLE record_removals (
    namespace_id BIGINT NOT NULL REFERENCES record_namespaces (id),
    changed BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, changed)
);

-- What made vectors. Those of two models are never compared.
CREATE TABLE embedding_models (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    dimension BIGINT NOT NULL,
    UNIQUE (name, version, dimension)
);

-- Rows of float16: the whole text, then its sentences.
CREATE TABLE record_vectors (
    namespace_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    model_id BIGINT NOT NULL REFERENCES embedding_models (id),
    vectors BYTEA NOT NULL,
    PRIMARY KEY (namespace_id, position, model_id),
    FOREIGN KEY (namespace_id, position) REFERENCES records (namespace_id, position) ON DELETE CASCADE
);

-- They are near to random: to compress them takes time and saves nothing.
ALTER TABLE record_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
