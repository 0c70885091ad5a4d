//! The generated protocol, as a module tree. Generated types stop at the files that speak gRPC.
#![allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated code; the .proto files document it"
)]

/// Every file descriptor of `proto/`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("sluice");

/// `sluice.fleet.v1`: between control plane and nodes.
pub mod fleet {
    tonic::include_proto!("sluice.fleet.v1");
}

/// `sluice.admin.v1`: between operators and the control plane.
pub mod admin {
    tonic::include_proto!("sluice.admin.v1");
}
