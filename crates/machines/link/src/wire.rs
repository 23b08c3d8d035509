//! What the server asks a node for, and what a node answers, as JSON.

use std::net::IpAddr;
use std::time::Duration;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_fabric::{Destination, DialError, Origin};
use fairway_machines_guests::{Door, Order, Refusal};
use serde::{Deserialize, Serialize};

/// The header that says what a CONNECT is for.
pub const WISH: &str = "fairway-wish";
/// Where orders go.
pub const ORDERS: &str = "/orders";
/// Where figures of a node's machines are.
pub const FIGURES: &str = "/figures";
/// Their largest text: some thousand machines.
pub const LARGEST_FIGURES: usize = 16 << 20;
/// The largest order, and the largest answer to one: a picture of a screen.
pub const LARGEST: usize = 32 << 20;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    workspace: String,
    namespace: String,
    name: String,
}

impl Key {
    /// Of an instance.
    pub fn of(key: &ObjectKey) -> Self {
        Self {
            workspace: key.workspace.as_str().to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }

    /// The instance; nothing if no workspace can have the name.
    pub fn key(&self) -> Option<ObjectKey> {
        let workspace = WorkspaceId::parse(&self.workspace).ok()?;
        Some(ObjectKey::new(&workspace, &self.namespace, &self.name))
    }
}

/// What a stream of bytes leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// A door of a machine.
    Open {
        /// Which machine.
        key: Key,
        /// Which door.
        door: Door,
    },
    /// A port in the network of machines.
    Dial {
        /// The logical cluster.
        workspace: String,
        /// The address.
        address: IpAddr,
        /// The port.
        port: u16,
        /// Who connects, if it is not the installation itself.
        client: Option<IpAddr>,
    },
}

impl Wish {
    /// To be connected to a destination.
    pub fn dial(to: &Destination) -> Self {
        Self::Dial {
            workspace: to.workspace.clone(),
            address: to.address,
            port: to.port,
            client: match to.origin {
                Origin::Node => None,
                Origin::Client(client) => Some(client),
            },
        }
    }
}

/// Something to be done to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Which machine.
    pub key: Key,
    /// What.
    pub order: Order,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Problem {
    /// The machine does not run there.
    NotRunning,
    /// The machine has no such thing.
    Lacks(String),
    /// It is in a state in which that cannot be.
    Conflict(String),
    /// It failed.
    Failed(String),
    /// Nothing listens on the port.
    Refused,
    /// The port did not answer for so many seconds.
    Timeout(u64),
    /// There is no way to it.
    Unreachable(String),
}

impl Problem {
    /// What a machine's node said of it.
    pub fn of_refusal(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NotRunning(_) => Self::NotRunning,
            Refusal::Lacks(why) => Self::Lacks(why.clone()),
            Refusal::Conflict(why) => Self::Conflict(why.clone()),
            Refusal::Failed(why) => Self::Failed(why.clone()),
            lost @ Refusal::NodeLost { .. } => Self::Failed(lost.to_string()),
        }
    }

    /// The same as whoever asked about a machine reads it.
    pub fn refusal(self, key: &ObjectKey) -> Refusal {
        match self {
            Self::NotRunning => Refusal::NotRunning(key.clone()),
            Self::Lacks(why) => Refusal::Lacks(why),
            Self::Conflict(why) => Refusal::Conflict(why),
            Self::Failed(why) | Self::Unreachable(why) => Refusal::Failed(why),
            Self::Refused => Refusal::Failed("nothing listens there".to_owned()),
            Self::Timeout(seconds) => Refusal::Failed(format!("no answer within {seconds} s")),
        }
    }

    /// What the network of a node said.
    pub fn of_dial(error: &DialError) -> Self {
        match error {
            DialError::Refused { .. } => Self::Refused,
            DialError::Timeout { after, .. } => Self::Timeout(after.as_secs()),
            DialError::Unreachable { why, .. } => Self::Unreachable(why.clone()),
            other @ (DialError::Io { .. } | DialError::Closed { .. }) => Self::Unreachable(other.to_string()),
        }
    }

    /// The same as whoever dialled reads it.
    pub fn dial(self, to: &Destination) -> DialError {
        let to = to.clone();
        match self {
            Self::Refused => DialError::Refused { to },
            Self::Timeout(seconds) => DialError::Timeout {
                to,
                after: Duration::from_secs(seconds),
            },
            Self::NotRunning => DialError::Unreachable {
                to,
                why: "the machine does not run".to_owned(),
            },
            Self::Lacks(why) | Self::Conflict(why) | Self::Failed(why) | Self::Unreachable(why) => {
                DialError::Unreachable { to, why }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_over_the_wire_comes_back() {
        let key = ObjectKey::new(&WorkspaceId::parse("team").unwrap(), "ns", "web");
        assert_eq!(Key::of(&key).key(), Some(key.clone()));
        let to = Destination::new("team", [10, 88, 0, 7], 22).on_behalf_of([192, 0, 2, 1].into());
        for wish in [
            Wish::Open {
                key: Key::of(&key),
                door: Door::Console,
            },
            Wish::dial(&to),
        ] {
            let text = serde_json::to_string(&wish).unwrap();
            assert!(http::HeaderValue::from_str(&text).is_ok(), "{text}");
            assert_eq!(serde_json::from_str::<Wish>(&text).unwrap(), wish);
        }
        let task = Task {
            key: Key::of(&key),
            order: Order::Freeze {
                unfreeze_seconds: Some(5),
            },
        };
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
        for refusal in [
            Refusal::NotRunning(key.clone()),
            Refusal::Lacks("no screen".to_owned()),
            Refusal::Conflict("paused".to_owned()),
            Refusal::Failed("broken".to_owned()),
        ] {
            let back = Problem::of_refusal(&refusal).refusal(&key);
            assert_eq!(back.to_string(), refusal.to_string());
        }
        let error = DialError::Refused { to: to.clone() };
        assert_eq!(Problem::of_dial(&error).dial(&to).to_string(), error.to_string());
    }
}
