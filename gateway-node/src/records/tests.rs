use tokio_util::sync::CancellationToken;

use super::*;

fn record(id: &str) -> pb::Record {
    pb::Record { request_id: id.to_owned(), ..Default::default() }
}

/// Keeps records and has them written.
async fn kept(records: &Records, writer: Writer, ids: &[&str]) {
    ids.iter().for_each(|id| records.keep(record(id)));
    let stop = CancellationToken::new();
    stop.cancel();
    writer.run(stop).await;
}

fn ids(sealed: &Sealed) -> Vec<&str> {
    sealed.records.iter().map(|record| record.request_id.as_str()).collect()
}

#[tokio::test]
async fn what_was_written_outlives_the_process_until_it_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (records, writer) = Records::open(dir.path()).unwrap();
    kept(&records, writer, &["a", "b"]).await;
    drop(records);
    let (records, writer) = Records::open(dir.path()).unwrap();
    kept(&records, writer, &["c"]).await;
    let first = records.next().unwrap().unwrap();
    assert_eq!(ids(&first), ["a", "b"], "the oldest first");
    assert_eq!(records.next().unwrap(), Some(first.clone()), "until it is taken it stays");
    records.done(first.seq).unwrap();
    let second = records.next().unwrap().unwrap();
    assert_eq!(ids(&second), ["c"]);
    records.done(second.seq).unwrap();
    assert_eq!((records.next().unwrap(), records.waiting_bytes(), records.lost()), (None, 0, 0));
    assert_eq!(std::fs::read_dir(dir.path().join("records")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_half_written_record_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (records, writer) = Records::open(dir.path()).unwrap();
    kept(&records, writer, &["a", "b"]).await;
    let file = std::fs::read_dir(dir.path().join("records")).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let (records, _) = Records::open(dir.path()).unwrap();
    assert_eq!(ids(&records.next().unwrap().unwrap()), ["a"]);
}

#[tokio::test]
async fn a_queue_that_is_full_costs_records_and_no_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (records, writer) = Records::open(dir.path()).unwrap();
    (0..QUEUE_MAX + 3).for_each(|n| records.keep(record(&n.to_string())));
    assert_eq!(records.lost(), 3);
    kept(&records, writer, &[]).await;
    assert_eq!(records.next().unwrap().unwrap().records.len(), QUEUE_MAX);
}

#[tokio::test]
async fn a_disk_that_is_full_costs_records_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (records, writer) = Records::open(dir.path()).unwrap();
    std::fs::remove_dir(dir.path().join("records")).unwrap();
    kept(&records, writer, &["a", "b"]).await;
    assert_eq!((records.lost(), records.next().unwrap()), (2, None));
}

#[test]
fn the_oldest_go_when_nobody_takes_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(dir.path()).unwrap();
    let large = pb::Record { model: "m".repeat(4 * 1024 * 1024), ..record("large") };
    let frame = journal::encode(MAGIC, &large);
    let fit = common::limits::RECORDS_SPOOL_BYTES_MAX / frame.len() as u64;
    for n in 0..fit + 2 {
        let lost = spool.append(&frame).unwrap();
        assert_eq!(lost, u64::from(n >= fit), "{n}");
    }
    assert!(spool.bytes() <= common::limits::RECORDS_SPOOL_BYTES_MAX);
}
