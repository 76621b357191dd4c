-- Where each file has stood, as far as its versions still say so. An index over all versions would cost each write a
-- page of its own.

CREATE TABLE file_places (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    path TEXT NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (memory_id, path, file_id)
) WITHOUT ROWID;

INSERT INTO file_places SELECT DISTINCT memory_id, path, file_id FROM file_versions WHERE path IS NOT NULL;

DROP INDEX file_versions_by_path;
