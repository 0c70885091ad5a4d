//! `sluice`, the operator's command line: reads the arguments, speaks `sluice.admin.v1` to a control
//! plane, and ends with a code that scripts can go by. It decides nothing that the server decides.

mod access;
mod alerts;
mod args;
mod audit;
mod authority;
mod backup;
mod call;
mod catalog;
mod chain;
mod doctor;
mod fault;
mod keys;
mod nodes;
mod output;
mod requests;
mod rollout;
mod secrets;
mod status;
mod tokens;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Args, Command};
use fault::{Exit, Fault};
use output::Output;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(usage) => {
            // Help and version come here too, with code 0; a closed pipe is no reason to complain.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2));
        }
    };
    let mut output = Output::standard(args.output);
    let exit = match start(args, &mut output) {
        Ok(exit) => exit,
        Err(fault) => output.fault(&fault),
    };
    exit.into()
}

fn start(args: Args, output: &mut Output) -> Result<Exit, Fault> {
    // Fails only when a provider is there already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Fault::error(format!("cannot start: {cause}")))?;
    runtime.block_on(run(args, output))
}

async fn run(args: Args, output: &mut Output) -> Result<Exit, Fault> {
    let connect = &args.connect;
    match args.command {
        Command::Catalog { command } => catalog::run(command, connect, output).await,
        Command::Chain { model, dialect } => chain::show(model, dialect, connect, output).await,
        Command::Chains => chain::list(connect, output).await,
        Command::Nodes { command } => nodes::run(command, connect, output).await,
        Command::Rollout { command } => rollout::run(command, connect, output).await,
        Command::Keys { command } => keys::run(command, connect, output).await,
        Command::Secret { command } => secrets::run(command, connect, output).await,
        Command::Access { command } => access::run(command, connect, output).await,
        Command::Alerts { command } => alerts::run(command, connect, output).await,
        Command::Audit { command } => audit::run(command, connect, output).await,
        Command::Tokens { command } => tokens::run(command, connect, output).await,
        Command::Ca { command } => authority::run(command, connect, output).await,
        Command::Requests { command } => requests::run(command, connect, output).await,
        Command::Usage(wanted) => usage::run(wanted, connect, output).await,
        Command::Status(wanted) => status::run(wanted, connect, output).await,
        Command::Backup(args) => backup::backup(args, connect, output).await,
        Command::Restore(args) => backup::restore(args, connect, output).await,
        Command::Doctor => doctor::run(connect, output).await,
        Command::Completions { shell } => completions(shell, output),
    }
}

fn completions(shell: clap_complete::Shell, output: &mut Output) -> Result<Exit, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "sluice", &mut script);
    output.bytes(&script)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests;
