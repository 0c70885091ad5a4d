-- Names the change that made a revision, where its author named it: sent again, it makes no second one.
alter table revision add column idempotency_key text;

create unique index revision_idempotency_key on revision (idempotency_key);
