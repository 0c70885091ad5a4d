-- Times to the first byte, by the ten seconds in which their window ended and later by the minute and the hour, as counts.
create table first_byte_count (
    at_ms bigint not null,
    model text not null,
    channel text not null, -- of the attempt; empty for what callers saw of the request
    bound_ms bigint not null, -- no time in it was longer
    count bigint not null,
    primary key (at_ms, model, channel, bound_ms)
);
