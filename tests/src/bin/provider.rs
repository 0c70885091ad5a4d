//! A simulated provider as a process of its own: prints its addresses as one line of JSON, then
//! serves until it is ended. `PUT /script` on the control address changes what it does.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Parser;
use common::tasks::Tasks;
use harness::provider::{Provider, Script, control};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A simulated OpenAI-compatible provider.
#[derive(Parser)]
struct Args {
    /// Its name, part of every answer.
    #[arg(long, default_value = "provider")]
    name: String,
    /// Where it answers; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where it is told what to do.
    #[arg(long, default_value = "127.0.0.1:0")]
    control_listen: SocketAddr,
    /// What it does at first.
    #[arg(long, default_value = "healthy")]
    script: Script,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let provider = Arc::new(Provider::start_at(&args.name, args.listen).await?);
    provider.set(args.script).await;
    let listener = TcpListener::bind(args.control_listen).await?;
    let addresses = serde_json::json!({"url": provider.url(), "control": listener.local_addr()?.to_string()});
    let mut out = std::io::stdout();
    writeln!(out, "{addresses}")?;
    out.flush()?;
    let tasks = Tasks::new();
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let provider = provider.clone();
                tasks.spawn("control connection", |_| async move {
                    let service = service_fn(move |request| control(provider.clone(), request));
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    // A script that hangs up early is no fault.
                    let _ = served.await;
                });
            }
        }
    }
}
