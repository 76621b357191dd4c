-- Versions are listed by their numbers.

DROP INDEX file_versions_by_session;

CREATE INDEX file_versions_by_session ON file_versions (memory_id, session_id, seq, created_at)
    WHERE session_id IS NOT NULL;
