//! A `fairway` process, what it serves, and clients of it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fairway_kernel_x509::Certificate;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};

use crate::process::Process;

/// A server that runs, or ran.
pub(crate) struct Server {
    process: Process,
    data: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let process = Process::start_with(data.path(), arguments);
        Self { process, data }
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    /// Runs `fairway certs`, which must succeed, and returns what it prints.
    pub(crate) fn certs(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, and it must fail; returns the complaint.
    pub(crate) fn certs_refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        Command::new(env!("CARGO_BIN_EXE_fairway"))
            .arg("certs")
            .args(arguments)
            .arg("--data")
            .arg(self.data.path())
            .output()
            .unwrap()
    }

    /// A certificate as it lies on disk.
    pub(crate) fn certificate(&self, name: &str) -> Certificate {
        let pem = std::fs::read_to_string(self.path(&format!("pki/{name}.crt"))).unwrap();
        Certificate::first_from_pem(&pem).unwrap()
    }

    fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::read_from(self.path("kubeconfig")).unwrap()
    }

    /// The administrator's certificate in the kubeconfig.
    pub(crate) fn kubeconfig_certificate(&self) -> Vec<u8> {
        use base64::Engine as _;
        let file = serde_json::to_value(self.kubeconfig()).unwrap();
        let data = file["users"][0]["user"]["client-certificate-data"]
            .as_str()
            .unwrap();
        let pem = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        Certificate::first_from_pem(std::str::from_utf8(&pem).unwrap())
            .unwrap()
            .der
    }

    pub(crate) async fn config(&self) -> kube::Config {
        kube::Config::from_custom_kubeconfig(self.kubeconfig(), &KubeConfigOptions::default())
            .await
            .unwrap()
    }

    pub(crate) async fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config().await).unwrap()
    }

    /// The chain that a new connection is shown.
    pub(crate) async fn served(&self) -> Vec<Vec<u8>> {
        let address = self.config().await.cluster_url.authority().unwrap().to_string();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything))
            .with_no_client_auth();
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        chain.iter().map(|c| c.to_vec()).collect()
    }

    /// A key and a request, made by openssl.
    pub(crate) fn openssl_request(&self, subject: &str) -> (String, String) {
        let (key, request) = (self.path("test.key"), self.path("test.csr"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-new",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-subj",
            ])
            .arg(subject)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&request)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        (
            std::fs::read_to_string(key).unwrap(),
            std::fs::read_to_string(request).unwrap(),
        )
    }

    /// Who the server takes the owner of this certificate for.
    pub(crate) async fn who_am_i(&self, certificate: &str, key: &str) -> Value {
        use base64::Engine as _;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let mut file = serde_json::to_value(self.kubeconfig()).unwrap();
        file["users"][0]["user"] = json!({
            "client-certificate-data": encode(certificate), "client-key-data": encode(key),
        });
        let file: Kubeconfig = serde_json::from_value(file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .unwrap();
        let review: Value = client.request(request).await.unwrap();
        review["status"]["userInfo"].clone()
    }
}

/// Now, in seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// Waits until the condition holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    patience: Duration,
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < patience, "{what}: not within {patience:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Believes every server: which certificate it shows is the question here.
#[derive(Debug)]
struct Anything;

impl rustls::client::danger::ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
