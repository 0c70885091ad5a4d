//! How the node comes by its certificate: by its token the first time, by its key ever after, also when the certificate
//! has expired; and how it stays valid while the node runs.

use std::sync::Arc;
use std::time::Duration;

use common::backoff::full_jitter;
use common::clock::Clock;
use common::limits::{CERTIFICATE_RETRY_MAX, RECONNECT_BASE, RENEWAL_SPREAD};
use common::pb::fleet as pb;
use http::Uri;
use pb::fleet_enrolment_client::FleetEnrolmentClient;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::certificate::{CertificateFault, Certificates, Held, csr, until};
use super::connect::{Links, describe};

/// An answer takes one transaction over there.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no certificate.
#[derive(Debug)]
pub(super) enum NoCertificate {
    /// The control plane gives none: it has no authority, sees no TLS, or is older than certificates.
    NotGiven,
    /// It does not take the token, or the node is revoked.
    Refused(String),
    /// It does not know this key; another enrolment may help.
    Unknown(String),
    /// Anything else, which may be over soon.
    Failed(String),
}

/// Enrols with a token, over a connection without a certificate.
pub(super) async fn enrol(
    channel: Channel,
    certificates: &Certificates,
    token: MetadataValue<Ascii>,
) -> Result<Arc<Held>, NoCertificate> {
    let key = certificates.pending_key()?;
    let message = pb::EnrolRequest { node_id: certificates.node_id().to_owned(), csr: csr(&key)? };
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", token);
    let mut client = FleetEnrolmentClient::new(channel);
    let answer = timeout(ANSWER_WITHIN, client.enrol(request)).await;
    let given = answered(answer)?.certificate;
    let held = certificates.keep(&key, given.unwrap_or_default())?;
    tracing::info!(serial = held.facts.serial, "enrolled: the control plane gave this node a certificate");
    Ok(held)
}

/// Renews with the key of the present certificate, over a connection without one.
pub(super) async fn renew(
    channel: Channel,
    certificates: &Certificates,
    held: &Held,
) -> Result<Arc<Held>, NoCertificate> {
    let key = rcgen::KeyPair::from_pem(&held.key_pem).map_err(CertificateFault::from)?;
    let message = pb::RenewRequest { node_id: certificates.node_id().to_owned(), csr: held.csr()? };
    let mut client = FleetEnrolmentClient::new(channel);
    let answer = timeout(ANSWER_WITHIN, client.renew(Request::new(message))).await;
    let given = answered(answer)?.certificate;
    let held = certificates.keep(&key, given.unwrap_or_default())?;
    tracing::info!(serial = held.facts.serial, "the node's certificate was renewed");
    Ok(held)
}

/// Renews at half life, and when the control plane speaks of other authorities, until `stop`.
pub(crate) async fn keep_valid(
    links: Arc<Links>,
    addresses: Vec<Uri>,
    clock: Clock,
    stop: CancellationToken,
) {
    let certificates = links.certificates();
    let addresses: Vec<Uri> = addresses.into_iter().filter(|uri| uri.scheme_str() == Some("https")).collect();
    let mut failures = 0;
    let step = async {
        loop {
            let Some(held) = certificates.held() else {
                certificates.woken().await;
                continue;
            };
            let was_told = tokio::select! {
                () = sleep(until(held.renew_at_ms(), clock.now_ms())) => false,
                () = certificates.woken() => true,
            };
            let Some(held) = certificates.held() else { continue };
            let is_due = held.renew_at_ms() <= clock.now_ms();
            if was_told && !is_due && !certificates.has_others() {
                continue;
            }
            // A fleet is told all at once.
            let spread = if was_told && !is_due { RENEWAL_SPREAD } else { Duration::ZERO };
            sleep(spread.mul_f64(fastrand::f64())).await;
            if renew_at_any(&links, &addresses, &held).await {
                failures = 0;
            } else {
                sleep(
                    RECONNECT_BASE
                        + full_jitter(failures, RECONNECT_BASE, CERTIFICATE_RETRY_MAX, fastrand::f64()),
                )
                .await;
                failures = failures.saturating_add(1);
            }
        }
    };
    stop.run_until_cancelled(step).await;
}

async fn renew_at_any(links: &Links, addresses: &[Uri], held: &Held) -> bool {
    for address in addresses {
        let renewed = match links.anonymous(address).await {
            Ok(channel) => renew(channel, links.certificates(), held).await,
            Err(why) => Err(NoCertificate::Failed(why)),
        };
        match renewed {
            Ok(_) => return true,
            Err(NoCertificate::NotGiven) => tracing::debug!("{address} gives no certificates"),
            Err(NoCertificate::Failed(why) | NoCertificate::Unknown(why) | NoCertificate::Refused(why)) => {
                tracing::warn!(
                    "the node's certificate was not renewed at {address}: {why}; it is tried again"
                );
            }
        }
    }
    false
}

fn answered<T>(
    answer: Result<Result<tonic::Response<T>, Status>, tokio::time::error::Elapsed>,
) -> Result<T, NoCertificate> {
    let status = match answer {
        Ok(Ok(answer)) => return Ok(answer.into_inner()),
        Ok(Err(status)) => status,
        Err(_) => return Err(NoCertificate::Failed("no answer in time".to_owned())),
    };
    let why = describe(&status);
    Err(match status.code() {
        Code::FailedPrecondition | Code::Unimplemented => NoCertificate::NotGiven,
        Code::Unauthenticated | Code::PermissionDenied => NoCertificate::Refused(why),
        Code::NotFound => NoCertificate::Unknown(why),
        _ => NoCertificate::Failed(why),
    })
}

impl From<CertificateFault> for NoCertificate {
    fn from(fault: CertificateFault) -> Self {
        NoCertificate::Failed(describe(&fault))
    }
}
