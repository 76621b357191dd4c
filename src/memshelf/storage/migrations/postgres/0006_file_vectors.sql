-- Vectors of live files, for searches by meaning: made from the content of a version, and gone with it.

CREATE TABLE file_vectors (
    memory_id BIGINT NOT NULL REFERENCES memories (id),
    version_id TEXT COLLATE "C" NOT NULL REFERENCES file_versions (id) ON DELETE CASCADE,
    maker TEXT COLLATE "C" NOT NULL,  -- the embedding model, and how passages were cut
    vectors BYTEA NOT NULL,
    PRIMARY KEY (memory_id, version_id)
);

CREATE INDEX file_vectors_by_version ON file_vectors (version_id);

ALTER TABLE file_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;

CREATE FUNCTION forget_file_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM file_vectors WHERE version_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER file_vectors_of_erased_versions AFTER UPDATE OF content ON file_versions
    FOR EACH ROW WHEN (NEW.content IS NULL) EXECUTE FUNCTION forget_file_vectors();
