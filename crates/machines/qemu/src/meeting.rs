//! Where two QEMUs meet: on one host by a socket in a directory, between hosts by TCP, and then encrypted.
//!
//! What comes in is believed by the QEMU that takes it, so nobody else may speak there: both sides show a certificate, and each takes
//! no other than that of the peer it was told of.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::MachineError;
use crate::machine::Machine;
use crate::qmp::QmpError;

/// The name in the certificate of whoever listens.
pub const TLS_NAME: &str = "fairway-migration";
/// The name of QEMU's object with keys and certificates.
pub const TLS_OBJECT: &str = "migration-tls";
/// Where they are, in the machine's directory, under the names that QEMU wants: `ca-cert.pem` and `server-` or `client-` with
/// `cert.pem` and `key.pem`.
pub const TLS_DIRECTORY: &str = "migration-tls";

/// A place where one listens and the other comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Meeting {
    /// A socket of this host.
    Unix(String),
    /// An address of the network.
    Tcp {
        /// The address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Meeting {
    /// As a migration wants it.
    pub fn uri(&self) -> String {
        match self {
            Self::Unix(path) => format!("unix:{path}"),
            Self::Tcp { host, port } if host.contains(':') => format!("tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => format!("tcp:{host}:{port}"),
        }
    }

    /// As a client of disks wants it.
    pub fn client(&self) -> Value {
        match self {
            Self::Unix(path) => json!({"type": "unix", "path": path}),
            Self::Tcp { host, port } => json!({"type": "inet", "host": host, "port": port.to_string()}),
        }
    }

    /// As a server of disks wants it.
    pub fn server(&self) -> Value {
        match self {
            Self::Unix(path) => json!({"type": "unix", "data": {"path": path}}),
            Self::Tcp { host, port } => {
                json!({"type": "inet", "data": {"host": host, "port": port.to_string()}})
            }
        }
    }
}

/// Which side of an encrypted connection a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It listens.
    Server,
    /// It comes.
    Client,
}

impl Side {
    /// QEMU's word, which names of files begin with, too.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// Lets a machine read its keys and certificates.
pub async fn arm(machine: &Machine, side: Side) -> Result<(), MachineError> {
    // Those of an earlier attempt are others.
    disarm(machine).await?;
    let object = json!({
        "qom-type": "tls-creds-x509", "id": TLS_OBJECT, "dir": TLS_DIRECTORY, "endpoint": side.word(), "verify-peer": true,
    });
    machine.qmp().execute("object-add", object).await?;
    Ok(())
}

/// Lets a machine forget them.
pub async fn disarm(machine: &Machine) -> Result<(), MachineError> {
    match machine
        .qmp()
        .execute("object-del", json!({"id": TLS_OBJECT}))
        .await
    {
        Ok(_) => Ok(()),
        Err(QmpError::Refused { description, .. }) if description.contains("not found") => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_qemu_wants_them() {
        let tcp = |host: &str| Meeting::Tcp {
            host: host.to_owned(),
            port: 7,
        };
        for (meeting, uri, client, server) in [
            (
                Meeting::Unix("a/b".to_owned()),
                "unix:a/b",
                json!({"type": "unix", "path": "a/b"}),
                json!({"type": "unix", "data": {"path": "a/b"}}),
            ),
            (
                tcp("10.0.0.1"),
                "tcp:10.0.0.1:7",
                json!({"type": "inet", "host": "10.0.0.1", "port": "7"}),
                json!({"type": "inet", "data": {"host": "10.0.0.1", "port": "7"}}),
            ),
            (
                tcp("fd00::1"),
                "tcp:[fd00::1]:7",
                json!({"type": "inet", "host": "fd00::1", "port": "7"}),
                json!({"type": "inet", "data": {"host": "fd00::1", "port": "7"}}),
            ),
        ] {
            assert_eq!(meeting.uri(), uri);
            assert_eq!(meeting.client(), client);
            assert_eq!(meeting.server(), server);
        }
    }
}
