//! The one table of what each call of the admin protocol needs. A method that is not in it is for admins alone; a test
//! sees to it that all are.

use crate::access::Role;

const PACKAGE: &str = "/sluice.admin.v1.";

const ROLES: &[(&str, Role)] = &[
    ("AccessService/CreateAdminToken", Role::Admin),
    ("AccessService/ListAdminTokens", Role::Admin),
    ("AccessService/RevokeAdminToken", Role::Admin),
    ("AccessService/WhoAmI", Role::Viewer),
    ("AlertService/ListAlerts", Role::Viewer),
    ("AlertService/SilenceAlerts", Role::Operator),
    ("AlertService/TestAlerts", Role::Operator),
    ("AlertService/UnsilenceAlerts", Role::Operator),
    ("AuditService/ListEntries", Role::Viewer),
    ("AuditService/VerifyLog", Role::Viewer),
    ("AuthorityService/ListAuthorities", Role::Viewer),
    ("AuthorityService/RotateAuthority", Role::Admin),
    ("BackupService/CreateBackup", Role::Admin),
    ("BackupService/RestoreBackup", Role::Admin),
    ("CatalogService/ApplyCatalog", Role::Operator),
    ("CatalogService/DiffCatalog", Role::Viewer),
    ("CatalogService/GetCatalog", Role::Viewer),
    ("CatalogService/ListRevisions", Role::Viewer),
    ("CatalogService/RollbackCatalog", Role::Operator),
    ("CatalogService/ValidateCatalog", Role::Viewer),
    ("ChainService/GetChain", Role::Viewer),
    ("ChainService/ListChains", Role::Viewer),
    ("DoctorService/Examine", Role::Viewer),
    ("KeyService/CreateKey", Role::Operator),
    ("KeyService/ListKeys", Role::Viewer),
    ("KeyService/RevokeKey", Role::Operator),
    ("NodeService/DrainNode", Role::Operator),
    ("NodeService/GetNode", Role::Viewer),
    ("NodeService/ListNodes", Role::Viewer),
    ("NodeService/PinNode", Role::Operator),
    ("NodeService/RetryNode", Role::Operator),
    ("NodeService/RevokeNode", Role::Admin),
    ("NodeService/UnpinNode", Role::Operator),
    ("NodeService/WatchNodes", Role::Viewer),
    ("RequestService/CountFailures", Role::Viewer),
    ("RequestService/GetRequest", Role::Viewer),
    ("RequestService/ListRequests", Role::Viewer),
    ("RequestService/ListUsage", Role::Viewer),
    ("RequestService/ReplayRequest", Role::Viewer),
    ("RolloutService/AbortRollout", Role::Operator),
    ("RolloutService/GetRollout", Role::Viewer),
    ("RolloutService/PauseRollout", Role::Operator),
    ("RolloutService/ResumeRollout", Role::Operator),
    ("SecretService/DeleteSecret", Role::Admin),
    ("SecretService/ListSecrets", Role::Viewer),
    ("SecretService/RekeySecrets", Role::Admin),
    ("SecretService/SetSecret", Role::Admin),
    ("StatusService/GetStatus", Role::Viewer),
    ("StatusService/WatchStatus", Role::Viewer),
    ("TokenService/CreateToken", Role::Admin),
    ("TokenService/ListTokens", Role::Viewer),
    ("TokenService/RevokeToken", Role::Admin),
];

/// The path of a method: `ChainService/GetChain`.
pub fn path(method: &str) -> String {
    format!("{PACKAGE}{method}")
}

/// The least role that may call this path.
pub fn needed(path: &str) -> Role {
    let Some(method) = path.strip_prefix(PACKAGE) else { return Role::Viewer };
    ROLES.iter().find(|(name, _)| *name == method).map_or(Role::Admin, |(_, role)| *role)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use common::pb::FILE_DESCRIPTOR_SET;
    use prost::Message as _;

    use super::*;

    #[test]
    fn every_method_of_the_admin_protocol_has_a_role_and_nothing_else_has() {
        let files = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap().file;
        let ours = files.iter().filter(|file| file.package() == "sluice.admin.v1");
        let methods: BTreeSet<String> = ours
            .flat_map(|file| &file.service)
            .flat_map(|service| service.method.iter().map(|one| format!("{}/{}", service.name(), one.name())))
            .collect();
        let listed: BTreeSet<String> = ROLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, methods, "each RPC needs its line in grpc/auth/roles.rs");
        assert_eq!(listed.len(), ROLES.len(), "one line each");
    }

    #[test]
    fn what_is_not_listed_is_for_admins_and_what_is_not_ours_for_everybody_who_is_known() {
        assert_eq!(needed("/sluice.admin.v1.NewService/DoAll"), Role::Admin);
        assert_eq!(needed("/sluice.admin.v1.CatalogService/ApplyCatalog"), Role::Operator);
        assert_eq!(needed("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), Role::Viewer);
    }
}
