//! The fabric of places where addresses exist: plain TCP. Workspaces are then a matter of the network itself.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpStream;

use crate::{Connection, Destination, DialError, Fabric};

/// Connects by the host's own network.
#[derive(Debug, Clone)]
pub struct PlainTcp {
    pub timeout: Duration,
}

impl Default for PlainTcp {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
        }
    }
}

impl Fabric for PlainTcp {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        let after = self.timeout;
        Box::pin(async move {
            let connecting = TcpStream::connect((to.address, to.port));
            match tokio::time::timeout(after, connecting).await {
                Ok(Ok(stream)) => {
                    // Interactive sessions pass here, too; a connection that does not take the option works without.
                    let _ = stream.set_nodelay(true);
                    Ok(Box::new(stream) as Box<dyn Connection>)
                }
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    Err(DialError::Refused { to })
                }
                Ok(Err(source)) => Err(DialError::Io { to, source }),
                Err(_) => Err(DialError::Timeout { to, after }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn reaches_a_server_and_says_when_there_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let to = Destination::new("root", address.ip(), address.port());
        let (mut dialled, (mut accepted, _)) = tokio::try_join!(
            async { Ok(PlainTcp::default().dial(to.clone()).await.unwrap()) },
            listener.accept()
        )
        .unwrap();
        dialled.write_all(b"hello").await.unwrap();
        dialled.shutdown().await.unwrap();
        let mut heard = String::new();
        accepted.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "hello");

        drop((listener, accepted));
        let error = PlainTcp::default().dial(to).await.err().unwrap();
        assert!(matches!(error, DialError::Refused { .. }), "{error}");
    }
}
