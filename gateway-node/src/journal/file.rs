//! The file of a journal: many append to it at once, and one closes it when the last of them is through.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Writers of a file that was swapped out need microseconds; where a disk is stuck, its owner tries again later.
const WRITER_WAIT: Duration = Duration::from_millis(1);
const WRITER_WAITS_MAX: u32 = 2_000;

/// Creates a file that is only appended to.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).open(path)
}

/// Appends by one write(2); the kernel keeps concurrent appends whole and apart.
pub fn append(mut file: &File, frame: &[u8]) -> io::Result<()> {
    match file.write(frame)? {
        length if length == frame.len() => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::WriteZero)),
    }
}

/// Waits until nobody writes to what was swapped out. Blocks for two seconds at most, then gives it back.
pub fn alone<T>(mut retiring: Arc<T>) -> Result<T, Arc<T>> {
    for _ in 0..WRITER_WAITS_MAX {
        match Arc::try_unwrap(retiring) {
            Ok(alone) => return Ok(alone),
            Err(shared) => retiring = shared,
        }
        std::thread::sleep(WRITER_WAIT);
    }
    Err(retiring)
}
