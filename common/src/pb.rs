//! The generated protocol, as a module tree. Generated types stop at the files that speak gRPC.
#![allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated code; the .proto files document it"
)]

/// Every file descriptor of `proto/`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("sluice");

// The modules lie as the packages do: generated code of one names the other by that way.
mod sluice {
    pub mod fleet {
        pub mod v1 {
            tonic::include_proto!("sluice.fleet.v1");
        }
    }
    pub mod admin {
        pub mod v1 {
            tonic::include_proto!("sluice.admin.v1");
        }
    }
}

/// `sluice.admin.v1`: between operators and the control plane.
pub use sluice::admin::v1 as admin;
/// `sluice.fleet.v1`: between control plane and nodes.
pub use sluice::fleet::v1 as fleet;

impl std::fmt::Debug for admin::SetSecretRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SetSecretRequest({:?}, …)", self.name)
    }
}

impl std::fmt::Debug for fleet::ChannelSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChannelSecret({:?}, …)", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_hold_a_credential_are_shown_without_it() {
        let set = admin::SetSecretRequest { name: "n".into(), value: b"sk-hidden".to_vec() };
        let one = fleet::ChannelSecret { name: "n".into(), value: "sk-hidden".into() };
        let all = fleet::SecretSet { secrets: vec![one] };
        assert_eq!(format!("{set:?}"), "SetSecretRequest(\"n\", …)");
        assert_eq!(format!("{all:?}"), "SecretSet { secrets: [ChannelSecret(\"n\", …)] }");
    }
}
