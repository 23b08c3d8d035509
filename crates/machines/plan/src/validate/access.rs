//! Keys and passwords: one source, one way.

use super::Causes;
use crate::view::InstanceSpec;

pub(super) fn check(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let no_cloud = spec.volumes.iter().any(|it| it.cloud_init_no_cloud.is_some());
    let config_drive = spec.volumes.iter().any(|it| it.cloud_init_config_drive.is_some());
    for (index, credential) in spec.access_credentials.iter().enumerate() {
        let field = format!("{path}.accessCredentials[{index}]");
        if let Some(key) = &credential.ssh_public_key {
            let way = &key.propagation_method;
            let at = format!("{field}.sshPublicKey.propagationMethod");
            if way.no_cloud.is_some() && !no_cloud {
                let message = format!(
                    "{field} requires a noCloud volume to exist when the noCloud propagationMethod is in use."
                );
                causes.invalid(&at, message);
            }
            if way.config_drive.is_some() && !config_drive {
                let message = format!(
                    "{field} requires a configDrive volume to exist when the configDrive propagationMethod is in use."
                );
                causes.invalid(&at, message);
            }
            if way
                .qemu_guest_agent
                .as_ref()
                .is_some_and(|it| it.users.is_empty())
            {
                let message = format!("{field} requires at least one user to be present in the users list");
                causes.invalid(format!("{at}.qemuGuestAgent.users"), message);
            }
            let ways = [
                way.no_cloud.is_some(),
                way.config_drive.is_some(),
                way.qemu_guest_agent.is_some(),
            ];
            one_of_each(&field, "sshPublicKey", key.source.secret.is_some(), &ways, causes);
        }
        if let Some(password) = &credential.user_password {
            let ways = [password.propagation_method.qemu_guest_agent.is_some()];
            one_of_each(
                &field,
                "userPassword",
                password.source.secret.is_some(),
                &ways,
                causes,
            );
        }
        if credential.ssh_public_key.is_some() == credential.user_password.is_some() {
            causes.invalid(
                &field,
                format!("{field} must have exactly one access credential type set"),
            );
        }
    }
}

fn one_of_each(field: &str, kind: &str, source: bool, ways: &[bool], causes: &mut Causes) {
    if !source {
        causes.invalid(
            format!("{field}.{kind}.source"),
            format!("{field} must have exactly one source set"),
        );
    }
    if ways.iter().filter(|set| **set).count() != 1 {
        let message = format!("{field} must have exactly one propagationMethod set");
        causes.invalid(format!("{field}.{kind}.propagationMethod"), message);
    }
}
