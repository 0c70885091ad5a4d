-- Nodes as they were last seen. Shown to operators, never acted on.
create table node (
    id text primary key,
    boot_id text not null,
    version text not null,
    data_address text not null,
    ops_address text not null,
    applied_epoch bigint not null,
    applied_revision bigint not null,
    findings text not null, -- JSON: rejections, quarantined parts, warnings
    drained boolean not null, -- left on purpose
    last_seen_at_ms bigint not null
);

-- One run of a node's process and the last of its windows that is counted. The sums are those of the counted
-- windows; running totals that the node reports are checked against them.
create table boot (
    node_id text not null,
    boot_id text not null,
    last_seq bigint not null,
    attempts bigint not null,
    attempts_ok bigint not null,
    requests bigint not null,
    requests_served bigint not null,
    until_ms bigint not null, -- end of the newest counted window
    primary key (node_id, boot_id)
);

-- Attempts by the ten seconds in which their window ended; by the minute and by the hour once they are older.
create table attempt_count (
    at_ms bigint not null,
    model text not null,
    channel text not null,
    class text not null, -- 'ok' or a failure class
    count bigint not null,
    primary key (at_ms, model, channel, class)
);

-- Requests, likewise.
create table request_count (
    at_ms bigint not null,
    model text not null,
    outcome text not null,
    count bigint not null,
    primary key (at_ms, model, outcome)
);
