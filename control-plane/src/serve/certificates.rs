//! TLS of the three listeners: from the operator's files, or signed by the fleet's own authority; and whose certificates
//! the fleet listener asks nodes for. Kept up to date while they run.

use std::sync::Arc;
use std::time::Duration;

use common::limits::CERTIFICATE_LOOK;
use common::tasks::Tasks;
use common::tls::{self, Pair, Tls, TlsFault, Watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ServeError;
use crate::config::Config;
use crate::doctor;
use crate::folder::Folder;
use crate::identity::authority::Authorities;
use crate::plane::Plane;

/// TLS of each listener, if they speak it.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Of the admin listener.
    pub admin: Option<Tls>,
    /// Of the fleet listener.
    pub fleet: Option<Tls>,
    /// Of the http listener.
    pub http: Option<Tls>,
    watch: Option<Watch>,
    /// Names of a certificate of our own.
    names: Vec<String>,
}

/// The authority that signs the nodes' certificates, if there is one. Without TLS nobody would see a certificate, and
/// several control planes must have the same.
pub fn authority(
    config: &Config,
    folder: &Folder,
    now_ms: u64,
) -> Result<Option<Arc<Authorities>>, ServeError> {
    if config.tls.is_none() && config.server_names.is_empty() {
        return Ok(None);
    }
    let life = config.node_certificate_life;
    let authorities = match (&config.authority, &config.database_url) {
        (Some(files), _) => Authorities::given(files.clone(), life)?,
        (None, None) => Authorities::own(folder, life, now_ms)?,
        (None, Some(_)) => {
            tracing::warn!(
                "nodes get no certificates and all show the same token: control planes that share a database need \
                 one authority; give each --ca-cert and --ca-key"
            );
            return Ok(None);
        }
    };
    Ok(Some(Arc::new(authorities)))
}

impl Certificates {
    /// The certificates to begin with.
    pub fn open(config: &Config, authority: Option<&Authorities>, now_ms: u64) -> Result<Self, ServeError> {
        let (watch, pair) = match (&config.tls, authority) {
            (Some(files), _) => {
                let (watch, pair) = Watch::open(files.clone())?;
                (Some(watch), Some(pair))
            }
            (None, Some(authority)) => (None, authority.server_pair(&config.server_names, now_ms)?),
            (None, None) => return Ok(Certificates::default()),
        };
        let tls = |name, protocols| pair.clone().map(|pair| Tls::new(name, protocols, pair)).transpose();
        let certificates = Certificates {
            admin: tls("admin", tls::HTTP_2)?,
            fleet: tls("fleet", tls::HTTP_2)?,
            http: tls("http", tls::HTTP)?,
            watch,
            names: config.server_names.clone(),
        };
        if let (Some(fleet), Some(authority)) = (&certificates.fleet, authority) {
            trust(fleet, authority)?;
        }
        Ok(certificates)
    }

    /// What the listeners show: all three the same.
    pub fn shown(&self, life: Duration) -> doctor::Certificate {
        match (&self.fleet, &self.watch) {
            (None, _) => doctor::Certificate::None,
            (Some(_), Some(_)) => doctor::Certificate::Given,
            (Some(_), None) => doctor::Certificate::Own { life },
        }
    }

    /// Keeps them up to date as `tasks`.
    pub fn follow(self, plane: &Arc<Plane>, tasks: &Tasks) {
        let listeners: Vec<Tls> =
            [&self.admin, &self.fleet, &self.http].into_iter().flatten().cloned().collect();
        let metrics = plane.clone();
        let tell = move |tls: &Tls| metrics.metrics.certificate(tls.listener(), tls.expires_at_ms());
        listeners.iter().for_each(&tell);
        if let Some(watch) = self.watch {
            let (clock, listeners, tell) = (plane.clock.clone(), listeners.clone(), tell.clone());
            tasks.spawn("certificates", |stop| tls::follow(watch, listeners, clock, stop, tell));
        }
        if let (Some(fleet), Some(authority)) = (self.fleet, plane.identity.authority.clone()) {
            let (plane, names) = (plane.clone(), self.names);
            let issued = Issued { names, listeners };
            tasks.spawn("authority", |stop| async move {
                follow(&plane, &authority, &fleet, &issued, stop, tell).await;
            });
        }
    }
}

/// A certificate of our own on the listeners; none where there are no names.
struct Issued {
    names: Vec<String>,
    listeners: Vec<Tls>,
}

async fn follow(
    plane: &Plane,
    authority: &Authorities,
    fleet: &Tls,
    issued: &Issued,
    stop: CancellationToken,
    tell: impl Fn(&Tls),
) {
    let mut changes = plane.identity.authority_changes();
    loop {
        let has_changed = tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(CERTIFICATE_LOOK) => false,
            changed = changes.changed() => changed.is_ok(),
        };
        let now_ms = plane.clock.now_ms();
        if has_changed && let Err(fault) = trust(fleet, authority) {
            complain(&fault);
        }
        let left = Duration::from_millis(fleet.expires_at_ms().saturating_sub(now_ms));
        if issued.names.is_empty() || (!has_changed && left >= authority.life() / 2) {
            continue;
        }
        match authority.server_pair(&issued.names, now_ms) {
            Ok(Some(pair)) => install(pair, &issued.listeners, &tell),
            Ok(None) => tracing::warn!(
                "the listeners' certificate is not renewed: the oldest authority's key is not here"
            ),
            Err(fault) => complain(&fault),
        }
    }
}

fn install(pair: Pair, listeners: &[Tls], tell: impl Fn(&Tls)) {
    for tls in listeners {
        match tls.install(pair.clone()) {
            Ok(()) => tell(tls),
            Err(fault) => complain(&fault),
        }
    }
}

fn trust(fleet: &Tls, authority: &Authorities) -> Result<(), TlsFault> {
    let bundle = authority.now();
    fleet.trust_clients(bundle.authorities().iter().map(|authority| authority.certificate.clone()).collect())
}

fn complain(fault: &(dyn std::error::Error + 'static)) {
    tracing::error!(error = fault, "the certificates of the listeners could not be changed; what was, stays");
}
