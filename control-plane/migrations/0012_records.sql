-- Records of requests, as nodes wrote them. The columns are what is searched by.
create table request_record (
    request_id text primary key, -- UUIDv7: sorted by when it began
    client_request_id text not null, -- the caller's own; empty without one
    node_id text not null,
    began_at_ms bigint not null,
    model text not null,
    dialect text not null,
    key_id text not null, -- empty for callers without one
    channel text not null, -- the last that was asked; empty where none was
    outcome text not null,
    status bigint not null, -- 0 where the caller went away before
    attempts bigint not null,
    duration_us bigint not null,
    record bytea not null
);

create index request_record_began_at_ms on request_record (began_at_ms);
create index request_record_client_request_id on request_record (client_request_id);

-- The attempts of those requests: what is counted.
create table request_attempt (
    request_id text not null,
    number bigint not null,
    began_at_ms bigint not null, -- of the request
    channel text not null,
    class text not null, -- 'ok' or the class of the failure
    primary key (request_id, number)
);

create index request_attempt_began_at_ms on request_attempt (began_at_ms);
