//! `sluice backup` and `sluice restore`: a copy of the database into a file of this machine, and back. A file is whole
//! or not there.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use common::pb::admin as pb;
use common::snapshot::hex;
use pb::create_backup_response::Part as Received;
use pb::restore_backup_request::Part as Sent;

use crate::args::{BackupArgs, ConnectArgs, Format, RestoreArgs};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::Output;

/// One message; gRPC takes four megabytes.
const PIECE_BYTES: u64 = 256 * 1024;

#[derive(Serialize)]
struct BackedUpJson<'a> {
    file: &'a str,
    bytes: u64,
    sha256: String,
}

#[derive(Serialize)]
struct RestoredJson {
    epoch: u64,
    revision: u64,
}

/// Writes a backup into a file that is not there yet.
pub async fn backup(args: BackupArgs, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let name = args.file.display().to_string();
    let unfinished = Unfinished::create(&args.file, args.force)?;
    let conn = &Connection::open(connect).await?;
    // The copy is made before the first piece comes, which takes as long as it takes.
    let mut stream = conn
        .backups()
        .create_backup(pb::CreateBackupRequest {})
        .await
        .map_err(|status| conn.fault(&status))?
        .into_inner();
    let (mut bytes, mut sha256) = (0, Sha256::new());
    let end = loop {
        match conn.part(&mut stream).await?.and_then(|message| message.part) {
            Some(Received::Piece(piece)) => {
                bytes += piece.len() as u64;
                sha256.update(&piece);
                (&unfinished.file).write_all(&piece).map_err(|cause| unwritten(&name, &cause))?;
            }
            Some(Received::End(end)) => break end,
            None => return Err(torn(&name)),
        }
    };
    let sha256 = sha256.finalize();
    if (end.bytes, end.sha256.as_slice()) != (bytes, sha256.as_slice()) {
        return Err(torn(&name));
    }
    unfinished.finish(&args.file).map_err(|cause| unwritten(&name, &cause))?;
    let sha256 = hex(&sha256);
    if output.format() == Format::Json {
        output.json(&BackedUpJson { file: &name, bytes, sha256 })?;
    } else {
        output.text(&format!("{name}: {bytes} bytes, sha256 {sha256}\n"))?;
        output.note(
            "it holds digests of keys and everything that is kept: keep it as safe as the data folder",
        )?;
    }
    Ok(Exit::Done)
}

/// Puts a backup in the place of what the control plane keeps.
pub async fn restore(args: RestoreArgs, connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let name = args.file.display().to_string();
    let file = File::open(&args.file).map_err(|cause| unread(&name, &cause))?;
    if !args.yes {
        let help = "catalog, keys, nodes and counters become those of the backup, and what came after it is lost; \
                    say --yes to do it";
        return Err(Fault::error("a restore replaces everything that the control plane keeps").help(help));
    }
    let conn = &Connection::open(connect).await?;
    let (tx, rx) = mpsc::channel(1);
    let mut backups = conn.backups();
    let call = backups.restore_backup(ReceiverStream::new(rx));
    let (sent, answer) = tokio::join!(send(file, tx), call);
    // Where both went wrong, what the control plane says is the cause.
    let answer = answer.map_err(|status| conn.fault(&status))?.into_inner();
    sent.map_err(|cause| unread(&name, &cause))?;
    let pb::RestoreBackupResponse { epoch, revision } = answer;
    if output.format() == Format::Json {
        output.json(&RestoredJson { epoch, revision })?;
    } else {
        output.text(&format!("restored: revision {revision} in epoch {epoch}; the nodes obey it\n"))?;
    }
    Ok(Exit::Done)
}

/// Sends a file in pieces, and its end when all of it was read. The other side ends it where it refuses.
async fn send(mut file: File, tx: mpsc::Sender<pb::RestoreBackupRequest>) -> io::Result<()> {
    let (mut bytes, mut sha256) = (0, Sha256::new());
    loop {
        let mut piece = Vec::new();
        let length = (&mut file).take(PIECE_BYTES).read_to_end(&mut piece)? as u64;
        bytes += length;
        sha256.update(&piece);
        let is_end = length == 0;
        let part = if is_end {
            Sent::End(pb::BackupEnd { bytes, sha256: sha256.clone().finalize().to_vec() })
        } else {
            Sent::Piece(piece)
        };
        if tx.send(pb::RestoreBackupRequest { part: Some(part) }).await.is_err() || is_end {
            return Ok(());
        }
    }
}

/// A file under another name until it is whole; gone if it never is.
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    fn create(target: &Path, may_replace: bool) -> Result<Self, Fault> {
        let name = target.display();
        if target.exists() && !may_replace {
            let help = "choose another name, or say --force to replace it";
            return Err(Fault::error(format!("{name} is there already")).help(help));
        }
        let mut path = target.to_path_buf().into_os_string();
        path.push(".partial");
        let path = PathBuf::from(path);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = file.map_err(|cause| unwritten(&path.display().to_string(), &cause))?;
        Ok(Unfinished { file, path })
    }

    fn finish(&self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // There is nothing under this name once it is finished.
        drop(std::fs::remove_file(&self.path));
    }
}

fn torn(name: &str) -> Fault {
    Fault::error(format!("the backup did not come whole; {name} was not written")).help("make it again")
}

fn unwritten(name: &str, cause: &io::Error) -> Fault {
    Fault::error(format!("cannot write {name}: {cause}"))
}

fn unread(name: &str, cause: &io::Error) -> Fault {
    Fault::error(format!("cannot read {name}: {cause}"))
}
