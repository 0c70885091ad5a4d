//! `control-plane`: reads the settings, serves until it is told to end.

use std::process::ExitCode;

use control_plane::{Config, ConfigFault};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGXFSZ, which has no name in tokio: a file has reached the limit that is set for this process.
const FILE_TOO_LARGE: i32 = 25;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = match Config::load(std::env::args_os()) {
        Ok(config) => config,
        Err(ConfigFault::Settings(common::settings::SettingsFault::Args(usage))) => usage.exit(),
        Err(fault) => return complain(&fault.into()),
    };
    common::telemetry::install(config.log_format);
    // Fails only when a provider is there already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => complain(&fault),
    }
}

fn run(config: Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (shutdown, ended) = (CancellationToken::new(), CancellationToken::new());
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // A file that reaches the limit of its size is a full disk like any other, and no reason to die.
        let _outgrown = signal(SignalKind::from_raw(FILE_TOO_LARGE))?;
        let serving = async {
            let served = control_plane::serve(config, shutdown.clone()).await;
            ended.cancel();
            served
        };
        let signals = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                () = ended.cancelled() => {}
            }
            shutdown.cancel();
        };
        let (served, ()) = tokio::join!(serving, signals);
        Ok(served?)
    })
}

#[expect(clippy::print_stderr, reason = "the reason why nothing runs is for the one who started it")]
fn complain(fault: &anyhow::Error) -> ExitCode {
    eprintln!("control-plane: {fault:#}");
    ExitCode::from(2)
}
