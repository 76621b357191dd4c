-- Vectors of live files, for searches by meaning: made from the content of a version, and gone with it.

CREATE TABLE file_vectors (
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    version_id TEXT NOT NULL REFERENCES file_versions (id) ON DELETE CASCADE,
    maker TEXT NOT NULL,              -- the embedding model, and how passages were cut
    vectors BLOB NOT NULL,
    PRIMARY KEY (memory_id, version_id)
);

CREATE INDEX file_vectors_by_version ON file_vectors (version_id);

CREATE TRIGGER file_vectors_of_erased_versions AFTER UPDATE OF content ON file_versions WHEN NEW.content IS NULL
BEGIN
    DELETE FROM file_vectors WHERE version_id = NEW.id;
END;
