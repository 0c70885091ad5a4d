-- What is wrong, or was: a row for each time that it was so.
create table alert (
    id text primary key,
    kind text not null,
    object text not null, -- of what kind of thing follows from the kind; empty for the fleet
    summary text not null,
    raised_at_ms bigint not null,
    gone_since_ms bigint not null, -- 0 while it is found
    resolved_at_ms bigint not null, -- 0 until it was gone for long enough
    told bigint not null -- 0: not, 1: that it is so, 2: that it is over
);
create index alert_by_end on alert (resolved_at_ms, told);

-- When receivers were last told of a kind of alerts, and how often they were.
create table alert_group (
    kind text primary key,
    number bigint not null,
    told_at_ms bigint not null
);

-- What nobody wants to be told of for a while.
create table alert_silence (
    id text primary key,
    kind text not null, -- empty for every kind
    object text not null, -- empty for every object
    reason text not null,
    created_by text not null,
    created_at_ms bigint not null,
    until_ms bigint not null
);

-- What is to be told to whom, and how far that is.
create table alert_delivery (
    notice text not null, -- names what is told: the same, however often it is sent
    receiver text not null,
    kind text not null,
    body text not null, -- JSON
    made_at_ms bigint not null,
    tries bigint not null,
    next_at_ms bigint not null,
    done_at_ms bigint not null, -- 0 until it was taken, or was given up
    failure text not null, -- why the last try failed; empty for one that did not
    primary key (notice, receiver)
);
create index alert_delivery_due on alert_delivery (done_at_ms, next_at_ms);

-- How the periodic jobs of the control planes do, by the database's clock.
create table job_beat (
    control_plane text not null,
    job text not null,
    name text not null, -- of the control plane, for people
    written_at_ms bigint not null,
    age_ms bigint not null, -- since the last success, when it was written
    period_ms bigint not null,
    primary key (control_plane, job)
);

-- Nodes whose running totals differed from the sum of their counted windows.
create table counter_mismatch (
    node_id text primary key,
    at_ms bigint not null
);
