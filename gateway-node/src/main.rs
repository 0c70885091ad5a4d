//! The gateway node: settings → telemetry → serve → exit code.

use std::io::Write as _;
use std::process::ExitCode;

use common::settings::SettingsFault;
use gateway_node::{Config, ConfigFault};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGXFSZ, which has no name in tokio: a file has reached the limit that is set for this process.
const FILE_TOO_LARGE: i32 = 25;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = match Config::load(std::env::args_os()) {
        Ok(config) => config,
        // Help and version arrive here too; clap knows what is an error.
        Err(ConfigFault::Settings(SettingsFault::Args(args))) => {
            let printed = args.print();
            return if printed.is_ok() && !args.use_stderr() { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
        Err(fault) => return fail(&anyhow::Error::new(fault), 2),
    };
    common::telemetry::install(config.log_format);
    // The error means that a provider is installed, which is what is wanted.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("cannot start the runtime"), 1),
    };
    let stop = CancellationToken::new();
    let ended = runtime.block_on(async {
        // A file that reaches the limit of its size is a full disk like any other, and no reason to die.
        let _outgrown = signal(SignalKind::from_raw(FILE_TOO_LARGE))?;
        tokio::select! {
            ended = gateway_node::serve(config, stop.clone().cancelled_owned()) => ended,
            ended = signals(&stop) => ended,
        }
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, 1),
    }
}

/// The first SIGTERM or SIGINT asks for a shutdown in order, the second ends it.
async fn signals(stop: &CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    for _ in 0..2 {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if stop.is_cancelled() {
            break;
        }
        stop.cancel();
    }
    anyhow::bail!("stopped by a second signal before the shutdown was complete")
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(std::io::stderr(), "gateway-node: {error:#}"));
    ExitCode::from(code)
}
