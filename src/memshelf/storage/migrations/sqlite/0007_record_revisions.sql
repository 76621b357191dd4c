-- When an update last gave a record another text, in microseconds since 1970: of equally close records, the newer text
-- comes first.

ALTER TABLE records ADD COLUMN revised_at INTEGER;
