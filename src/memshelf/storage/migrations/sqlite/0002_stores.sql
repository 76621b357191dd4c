-- Named stores, and the sessions that mount them. Text here has no NUL.

ALTER TABLE memories ADD COLUMN files INTEGER NOT NULL DEFAULT 0;           -- how many live files there are

UPDATE memories SET files = (SELECT count(*) FROM files f WHERE f.memory_id = memories.id);

ALTER TABLE files ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;         -- when its first version was written

UPDATE files SET created_at = (
    SELECT min(v.created_at) FROM file_versions v WHERE v.memory_id = files.memory_id AND v.file_id = files.file_id
);

CREATE UNIQUE INDEX files_by_id ON files (memory_id, file_id);

CREATE INDEX file_versions_by_time ON file_versions (memory_id, created_at, seq);

CREATE INDEX file_versions_by_session ON file_versions (memory_id, session_id, created_at, seq)
    WHERE session_id IS NOT NULL;

CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

-- A store owns the memory whose name is the store's id.
CREATE TABLE stores (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    memory_id INTEGER NOT NULL UNIQUE REFERENCES memories (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,           -- a JSON object of text to text
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER
);

CREATE INDEX stores_by_time ON stores (workspace_id, created_at, id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    agent_id TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    environment_id TEXT NOT NULL,
    title TEXT,
    metadata TEXT NOT NULL,           -- a JSON object of text to text
    status TEXT NOT NULL CHECK (status IN ('rescheduling', 'running', 'idle', 'terminated')),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    archived_at INTEGER
);

CREATE INDEX sessions_by_time ON sessions (workspace_id, created_at, id);

-- What a session mounts, as it was when the session was created: the store may have another name since, or be gone.
CREATE TABLE session_resources (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    position INTEGER NOT NULL,
    store_id TEXT NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('read_write', 'read_only')),
    instructions TEXT,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    mount_path TEXT NOT NULL,
    PRIMARY KEY (session_id, position)
);

CREATE INDEX session_resources_by_store ON session_resources (store_id, session_id);

-- Keys of a workspace, and tokens of a session of it. Of the secret itself only a hash is kept.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    session_id TEXT REFERENCES sessions (id),
    hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,               -- how the secret ends, to tell keys apart
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
);

CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, created_at, id);

CREATE INDEX api_keys_by_session ON api_keys (session_id) WHERE session_id IS NOT NULL;
