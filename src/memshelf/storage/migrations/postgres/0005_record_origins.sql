-- Whose words a record is in: 'user', 'agent', 'tool', 'import', or NULL where nobody said.

ALTER TABLE records ADD COLUMN origin_kind TEXT;
