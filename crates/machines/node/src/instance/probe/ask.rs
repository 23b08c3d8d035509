//! Asking a guest: by its network, through the switch that it is on, or by its agent.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use fairway_fabric::{Connection, Destination};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{Asker, Check, HttpCheck};

/// The longest that the beginning of an answer may be.
const MAX_HEAD: usize = 4096;
/// How long a command may take; the probe's own time is shorter.
const COMMAND: Duration = Duration::from_secs(300);

impl Asker {
    /// Asks once. The caller bounds the time.
    pub(super) async fn ask(&self, check: &Check) -> Result<(), String> {
        match check {
            Check::Ping => self.agent.ping().await.map_err(|error| error.to_string()),
            Check::Exec(command) => self.run(command).await,
            Check::Tcp { host, port } => self.dial(*host, *port).await.map(drop),
            Check::Http(request) => self.request(request).await,
        }
    }

    async fn run(&self, command: &[String]) -> Result<(), String> {
        let Some((program, arguments)) = command.split_first() else {
            return Err("there is no command".to_owned());
        };
        let done = self.agent.execute(program, arguments, None, COMMAND).await;
        match done.map_err(|error| error.to_string())?.code {
            Some(0) => Ok(()),
            Some(code) => Err(format!("{program} ended with {code}")),
            None => Err(format!("{program} was killed")),
        }
    }

    async fn dial(&self, host: Option<Ipv4Addr>, port: u16) -> Result<Box<dyn Connection>, String> {
        let address = host.or_else(|| self.cables.address(&self.key));
        let address = address.ok_or_else(|| "the machine has no address yet".to_owned())?;
        let to = Destination::new(self.key.workspace.as_str(), address, port);
        let dialled = self.cables.fabric().dial(to).await;
        dialled.map_err(|error| error.to_string())
    }

    async fn request(&self, check: &HttpCheck) -> Result<(), String> {
        let connection = self.dial(check.host, check.port).await?;
        let host = check.host.or_else(|| self.cables.address(&self.key));
        let host = host.map(|it| it.to_string()).unwrap_or_default();
        let status = match check.is_tls {
            false => exchange(connection, check, &host).await?,
            true => {
                let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
                let connector = tokio_rustls::TlsConnector::from(trusting());
                let secured = connector.connect(name, connection).await;
                exchange(secured.map_err(|error| error.to_string())?, check, &host).await?
            }
        };
        match status {
            200..=399 => Ok(()),
            other => Err(format!("HTTP probe failed with statuscode: {other}")),
        }
    }
}

/// Sends a request and reads the number of the answer.
async fn exchange(
    mut connection: impl AsyncRead + AsyncWrite + Unpin,
    check: &HttpCheck,
    host: &str,
) -> Result<u16, String> {
    let failed = |error: std::io::Error| error.to_string();
    let has = |wanted: &str| {
        check
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let mut text = format!("GET {} HTTP/1.1\r\nConnection: close\r\n", check.path);
    for (name, value) in [
        ("Host", format!("{host}:{}", check.port)),
        ("User-Agent", "kube-probe/1.36".to_owned()),
        ("Accept", "*/*".to_owned()),
    ] {
        if !has(name) {
            text += &format!("{name}: {value}\r\n");
        }
    }
    for (name, value) in &check.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    connection.write_all(text.as_bytes()).await.map_err(failed)?;
    connection.flush().await.map_err(failed)?;
    let mut head = Vec::new();
    let mut buffer = [0; 512];
    while !head.contains(&b'\n') && head.len() < MAX_HEAD {
        match connection.read(&mut buffer).await.map_err(failed)? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    status(&head).ok_or_else(|| "what answers is not HTTP".to_owned())
}

/// The number in `HTTP/1.1 200 OK`.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    words.next().filter(|it| it.starts_with("HTTP/1."))?;
    words.next()?.parse().ok()
}

/// Takes any certificate: kubelet does not look at it either.
fn trusting() -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    // The provider has all default versions.
    let config = builder.map(|it| {
        it.dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(schemes)))
            .with_no_client_auth()
    });
    Arc::new(config.unwrap_or_else(|_| {
        ClientConfig::builder()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth()
    }))
}

#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_what_servers_expect() {
        let check = HttpCheck {
            host: None,
            port: 8080,
            is_tls: false,
            path: "/healthz?a=b".to_owned(),
            headers: vec![("host".to_owned(), "web.example".to_owned())],
        };
        let (near, mut far) = tokio::io::duplex(4096);
        let server = tokio::spawn(async move {
            let mut asked = Vec::new();
            let mut buffer = [0; 256];
            while !asked.ends_with(b"\r\n\r\n") {
                let count = far.read(&mut buffer).await.unwrap();
                asked.extend_from_slice(&buffer[..count]);
            }
            far.write_all(b"HTTP/1.1 204 No").await.unwrap();
            far.write_all(b" Content\r\n\r\n").await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        assert_eq!(exchange(near, &check, "10.88.0.7").await, Ok(204));
        let asked = server.await.unwrap();
        assert_eq!(
            asked,
            "GET /healthz?a=b HTTP/1.1\r\nConnection: close\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\n\
             host: web.example\r\n\r\n"
        );
    }

    #[test]
    fn only_http_is_http() {
        for (head, expected) in [
            ("HTTP/1.0 200 OK\r\n", Some(200)),
            ("HTTP/1.1 503\r\n", Some(503)),
            ("SSH-2.0-dropbear\r\n", None),
            ("", None),
            ("HTTP/1.1 OK\r\n", None),
        ] {
            assert_eq!(status(head.as_bytes()), expected, "{head:?}");
        }
    }
}
