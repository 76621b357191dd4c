-- Whose words a record is in: 'user', 'agent', 'tool', 'import', or NULL where nobody said.

ALTER TABLE IF EXISTS records ADD COLUMN IF NOT EXISTS origin_kind TEXT;
