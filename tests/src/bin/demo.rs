//! `demo`: the whole of Sluice in one process, to be looked at and played with.

use std::process::ExitCode;

use clap::Parser as _;
use harness::demo::{Args, run};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    let done = runtime.block_on(run(args));
    // What still blocks a thread, a read of the terminal for one, is not waited for.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

#[expect(clippy::print_stderr, reason = "the reason why the demo ended is for the one who started it")]
fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("demo: {error:#}");
    ExitCode::from(2)
}
