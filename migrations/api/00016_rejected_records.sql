-- +goose Up
-- Records that a function could not use, each with everything that is needed to publish it again. RejectedTrim bounds
-- their number and their bytes: garbage on a topic must not fill the disk.
CREATE TABLE rejected_records (
    rejected_number bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order of arrival
    rejected_id     uuid        NOT NULL UNIQUE,         -- a hash of function, place and content: one row for a repeated report
    function        text        NOT NULL,                -- the function that could not use it
    topic           text        NOT NULL,
    partition       integer,                             -- null: it came over HTTP
    record_offset   bigint,
    key             bytea,                               -- null: it has none
    headers         json        NOT NULL,                -- [{"key": base64, "value": base64}], in their order
    value           bytea,                               -- null: it has none
    bytes           integer     NOT NULL,                -- of key, headers and value
    whole           boolean     NOT NULL,                -- false: a part was too large to be stored, or is unknown
    truncated       boolean     NOT NULL,
    reason          text        NOT NULL,
    trace_id        uuid,
    recorded_at     timestamptz,                         -- the record's own time
    rejected_at     timestamptz NOT NULL,
    redriven_at     timestamptz,
    redriven_by     text,
    CHECK ((partition IS NULL) = (record_offset IS NULL)),
    CHECK ((redriven_at IS NULL) = (redriven_by IS NULL)),
    CHECK (NOT (whole AND truncated))
);
CREATE INDEX rejected_records_aged ON rejected_records (rejected_at);

-- +goose Down
DROP TABLE rejected_records;
