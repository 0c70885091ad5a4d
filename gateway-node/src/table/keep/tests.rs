//! A start succeeds on whatever a crash, a full disk or a bad catalog left behind.

use super::*;

struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        Disk(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Keep {
        Keep::open(self.0.path(), "1.0.0").unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn part(version: u64) -> Kept {
    Kept::new(7, version, format!("bytes of {version}").into_bytes())
}

fn take(keep: &mut Keep, version: u64) {
    let kept = part(version);
    keep.candidate(Kind::Catalog, &kept).unwrap();
    keep.activate(version, kept.sha256).unwrap();
    keep.promote(Kind::Catalog).unwrap();
}

fn start(disk: &Disk) -> (Keep, Option<u64>) {
    let mut keep = disk.open();
    let kept = keep.load(Kind::Catalog).unwrap();
    if let Some(kept) = &kept {
        keep.activate(kept.version, kept.sha256).unwrap();
    }
    (keep, kept.map(|kept| kept.version))
}

#[test]
fn an_empty_folder_has_no_config() {
    let disk = Disk::new();
    assert_eq!(disk.open().load(Kind::Catalog).unwrap(), None);
    assert_eq!(disk.open().load(Kind::Keys).unwrap(), None);
}

#[test]
fn a_part_comes_back_byte_for_byte() {
    let disk = Disk::new();
    take(&mut disk.open(), 1);
    assert_eq!(disk.open().load(Kind::Catalog).unwrap(), Some(part(1)));
}

#[test]
fn fr_001_a_crash_between_candidate_and_promotion_starts_on_what_was_acknowledged() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    keep.candidate(Kind::Catalog, &part(2)).unwrap();
    drop(keep);
    assert_eq!(start(&disk).1, Some(1));
    assert!(!disk.file("catalog.candidate").exists(), "what was never acknowledged is gone");
}

#[test]
fn fr_001_a_crash_inside_the_promotion_leaves_a_current_part() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    take(&mut keep, 2);
    keep.candidate(Kind::Catalog, &part(3)).unwrap();
    // The first half of a promotion.
    std::fs::hard_link(disk.file("catalog.current"), disk.file("catalog.previous.tmp")).unwrap();
    assert_eq!(start(&disk).1, Some(2));
    std::fs::hard_link(disk.file("catalog.current"), disk.file("catalog.previous.tmp")).unwrap();
    let (mut keep, _) = start(&disk);
    take(&mut keep, 3);
    assert_eq!(keep.load(Kind::Catalog).unwrap(), Some(part(3)));
}

#[test]
fn fr_003_a_corrupt_current_falls_back_to_the_previous_one_wherever_it_is_damaged() {
    let whole = {
        let disk = Disk::new();
        take(&mut disk.open(), 2);
        std::fs::read(disk.file("catalog.current")).unwrap()
    };
    // Inside each field, and at each of their borders.
    let places = [0, 8, 9, 39, 40, 48, 56, 87, 88, whole.len() - 1];
    let flipped = places.map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    });
    let cut = places.map(|at| whole[..at].to_vec());
    for (case, bytes) in flipped.into_iter().chain(cut).enumerate() {
        let disk = Disk::new();
        let mut keep = disk.open();
        take(&mut keep, 1);
        take(&mut keep, 2);
        keep.end().unwrap();
        std::fs::write(disk.file("catalog.current"), bytes).unwrap();
        let (mut keep, started) = start(&disk);
        assert_eq!(started, Some(1), "case {case}");
        take(&mut keep, 3);
        assert_eq!(start(&disk).1, Some(3));
    }
}

#[test]
fn fr_003_with_both_files_corrupt_the_start_succeeds_without_a_config() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    take(&mut keep, 2);
    std::fs::write(disk.file("catalog.current"), b"x").unwrap();
    std::fs::write(disk.file("catalog.previous"), b"").unwrap();
    assert_eq!(start(&disk).1, None);
}

#[test]
fn a_part_that_cannot_be_used_gives_way_to_the_previous_one() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    take(&mut keep, 2);
    keep.refuse(Kind::Catalog).unwrap();
    assert_eq!(keep.load(Kind::Catalog).unwrap(), Some(part(1)));
    keep.refuse(Kind::Catalog).unwrap();
    assert_eq!(keep.load(Kind::Catalog).unwrap(), None);
}

#[test]
fn two_crashes_soon_after_activation_put_a_catalog_aside_and_one_only_retries() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    keep.settle().unwrap();
    take(&mut keep, 2);
    drop(keep);
    let (keep, started) = start(&disk);
    assert_eq!((started, keep.quarantined()), (Some(2), vec![]), "one only retries");
    drop(keep);
    let (keep, started) = start(&disk);
    assert_eq!(started, Some(1));
    let aside = Quarantined { version: 2, sha256: part(2).sha256, crashes: 2 };
    assert_eq!(keep.quarantined(), [aside]);
    assert!(keep.is_quarantined(&part(2).sha256));
}

#[test]
fn a_clean_end_and_a_minute_of_life_are_no_crashes() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    take(&mut keep, 2);
    for _ in 0..4 {
        keep.end().unwrap();
        let (again, started) = start(&disk);
        assert_eq!(started, Some(2));
        keep = again;
    }
    for _ in 0..4 {
        drop(keep);
        let (mut again, started) = start(&disk);
        assert_eq!(started, Some(2), "it lived for a minute each time");
        again.settle().unwrap();
        keep = again;
    }
}

#[test]
fn a_new_binary_tries_a_quarantined_catalog_again() {
    let disk = Disk::new();
    let mut keep = disk.open();
    take(&mut keep, 1);
    take(&mut keep, 2);
    start(&disk);
    start(&disk);
    assert!(disk.open().is_quarantined(&part(2).sha256));
    assert_eq!(Keep::open(disk.0.path(), "1.0.1").unwrap().quarantined(), []);
}

#[test]
fn the_only_catalog_is_never_put_aside() {
    let disk = Disk::new();
    take(&mut disk.open(), 1);
    for _ in 0..4 {
        assert_eq!(start(&disk).1, Some(1));
    }
}

/// Does something on a disk whose process dies before each step in turn, and looks at what the next one finds.
fn at_every_death(prepare: impl Fn(&mut Keep), act: impl Fn(Keep) -> bool, look: impl Fn(Keep, bool)) {
    for steps in 0..40 {
        let disk = crate::disk::simulated::Disk::default();
        let open = || Keep::on(crate::disk::Disk::Simulated(disk.clone()), Path::new("s"), "1.0.0");
        prepare(&mut open().unwrap());
        disk.die_after(steps);
        let is_done = open().is_ok_and(&act);
        let has_died = disk.is_dead();
        disk.revive();
        look(open().unwrap(), is_done);
        if !has_died {
            return;
        }
    }
    panic!("it takes more steps than are tried");
}

#[test]
fn fr_001_a_process_that_dies_at_any_step_of_an_update_goes_on_with_what_it_served_or_with_what_was_next() {
    let update = |keep: &mut Keep, version: u64| {
        let kept = part(version);
        keep.candidate(Kind::Catalog, &kept)?;
        keep.activate(version, kept.sha256)?;
        keep.promote(Kind::Catalog)
    };
    let first = |keep: &mut Keep| {
        update(keep, 1).unwrap();
        keep.settle().unwrap();
    };
    let second = |mut keep: Keep| update(&mut keep, 2).is_ok();
    at_every_death(first, second, |mut keep, is_done| {
        let found = keep.load(Kind::Catalog).unwrap().map(|kept| kept.version);
        assert!(found == Some(2) || (found == Some(1) && !is_done), "{found:?}, done: {is_done}");
        assert_eq!(keep.quarantined(), [], "what was never active killed nobody");
        update(&mut keep, 2).unwrap();
        assert_eq!(keep.load(Kind::Catalog).unwrap().map(|kept| kept.version), Some(2));
    });
}

#[test]
fn a_process_that_dies_at_any_step_of_a_quarantine_leaves_one_that_is_whole() {
    let killer_is_current = |keep: &mut Keep| {
        take(keep, 1);
        keep.settle().unwrap();
        take(keep, 2);
        keep.marks.take_crash();
        keep.activate(2, part(2).sha256).unwrap();
    };
    at_every_death(
        killer_is_current,
        |_| true,
        |keep, _| {
            assert_eq!(keep.load(Kind::Catalog).unwrap(), Some(part(1)), "the one before");
            assert!(keep.is_quarantined(&part(2).sha256));
        },
    );
}
