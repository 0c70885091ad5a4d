//! Beats of periodic jobs: pinged, and watched by the control planes themselves.

use anyhow::ensure;
use harness::database::Postgres;
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::receiver::Receiver;

use super::{PLANTED, flags, path, webhook};

#[tokio::test]
async fn a_control_plane_that_stands_still_has_missed_its_beats_and_whoever_leads_then_tells()
-> anyhow::Result<()> {
    let postgres = Postgres::lend()?;
    let database_url = Some(postgres.create(&format!("beats_{}", std::process::id()))?);
    let receiver = Receiver::start().await?;
    let dir = tempfile::tempdir()?;
    let control_plane_args = flags(dir.path(), &webhook(&receiver))?;
    let plan = Plan { control_planes: 2, database_url, control_plane_args, ..Plan::default() };
    let fleet = Fleet::start_as(plan).await?;
    // The first one leads: it was there before the other.
    let stopped = fleet.plane(0)?;
    let port = stopped.address("fleet")?.port().to_string();
    stopped.signal("STOP").await?;
    let is_of = |status: &'static str, port: String| {
        move |message: &serde_json::Value| {
            let alerts = message["alerts"].as_array().cloned().unwrap_or_default();
            let is_it = |alert: &serde_json::Value| {
                alert["status"] == status
                    && alert["object"].as_str().is_some_and(|object| object.ends_with(&port))
            };
            message["kind"] == "missed-beat" && alerts.iter().any(is_it)
        }
    };
    let missed = receiver.gets(&path(), "a missed beat", SOON * 2, is_of("firing", port.clone())).await;
    stopped.signal("CONT").await?;
    let missed = missed?.json();
    ensure!(missed["firing"] == 1, "one alert for all of its jobs: {missed}");
    receiver.gets(&path(), "it beats again", SOON * 2, is_of("resolved", port)).await?;
    fleet.finish()
}

#[tokio::test]
async fn each_job_pings_its_url_and_no_job_waits_for_one_that_does_not_answer() -> anyhow::Result<()> {
    let receiver = Receiver::start().await?;
    // Takes connections and answers nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let pings = format!(
        "[pings]\ndefault = '{}'\nhead = 'http://{}/{PLANTED}'\n",
        receiver.url(&format!("/{PLANTED}/{{job}}")),
        silent.local_addr()?
    );
    let dir = tempfile::tempdir()?;
    let control_plane_args = flags(dir.path(), &pings)?;
    let fleet = Fleet::start_as(Plan { control_plane_args, ..Plan::default() }).await?;
    eventually("jobs ping", SOON, || async {
        for job in ["leader", "nodes", "rollup", "alerts"] {
            for end in ["/start", ""] {
                let path = format!("/{PLANTED}/{job}{end}");
                ensure!(receiver.sent(&path).len() == 1, "{path}: {}", receiver.sent(&path).len());
            }
        }
        Ok(())
    })
    .await?;
    let doctor = fleet.sluice(&["doctor"]).await?;
    ensure!(doctor.out.lines().any(|line| line.contains("jobs") && line.starts_with("ok")), "{doctor:?}");
    ensure!(!fleet.control_plane.log().iter().any(|line| line.contains(PLANTED)), "a log has the URL");
    fleet.finish()
}
