-- What the answer of a request cost us, and what its caller pays: 10^-12 USD; null where that is not known.
alter table request_record add column cost bigint;
alter table request_record add column price bigint;

-- Requests that are counted and of which no record is kept, so that they are counted once.
create table request_left_out (
    request_id text primary key,
    began_at_ms bigint not null
);

create index request_left_out_began_at_ms on request_left_out (began_at_ms);

-- What was used, counted with each record that comes home, and kept for longer than the records.
create table key_usage (
    day bigint not null, -- since 1970, UTC
    key_id text not null, -- empty for callers without one
    model text not null, -- of the catalog; empty for what names none
    requests bigint not null,
    served bigint not null,
    input bigint not null,
    cached_input bigint not null,
    output bigint not null,
    searches bigint not null,
    audio_ms bigint not null,
    cost bigint not null, -- 10^-12 USD, of the answers of which it is known
    price bigint not null,
    unpriced bigint not null, -- answers of which one of both is not known
    primary key (day, key_id, model)
);
