//! Starts etcd and kube-apiserver on loopback with the fewest settings that make a complete API: TLS, RBAC, client
//! certificates. etcd talks plain HTTP, which favours the peer.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::kubeconfig::{self, Identity};
use crate::server::{self, Server, free_port, spawn, until};

/// What Fairway's kernel does too: namespaces and owners are cleaned up, accounts and the CA are handed out, quotas are
/// counted, unused claims are let go, requests for certificates are approved and signed, and aggregated roles are
/// filled. The rest of upstream's controllers run pods or clouds.
const CONTROLLERS: &str = "certificatesigningrequest-approving-controller,certificatesigningrequest-cleaner-controller,\
                           certificatesigningrequest-signing-controller,clusterrole-aggregation-controller,garbage-collector-controller,namespace-controller,\
                           persistentvolumeclaim-protection-controller,resourcequota-controller,\
                           root-ca-certificate-publisher-controller,serviceaccount-controller";

pub(crate) async fn start(bin: &Path, directory: &Path, controllers: bool) -> Result<Server> {
    let directory = server::absolute(directory)?;
    let bin = server::absolute(bin)?;
    let port = free_port()?;
    let address = format!("https://127.0.0.1:{port}");
    let pki = Pki::write(&directory, &address)?;

    let started = Instant::now();
    let (etcd, etcd_url) = start_etcd(&bin, &directory).await?;
    let mut apiserver = start_apiserver(&bin, &directory, port, &etcd_url, controllers)?;
    let endpoint = kubeconfig::connect_to(&address, pki.tls()?, None)?;
    let log = directory.join("kube-apiserver.log");
    until("kube-apiserver", &mut apiserver, &log, async || {
        server::is_ready(&endpoint).await
    })
    .await?;
    let ready_after = started.elapsed();

    let mut children = vec![etcd, apiserver];
    if controllers {
        children.push(start_controllers(&bin, &directory)?);
    }
    Ok(Server::new(endpoint, children, ready_after))
}

/// Keeps the peer until the user or the calling script ends it.
pub(crate) async fn serve(data: &Path, bin: &Path, controllers: bool) -> Result<()> {
    std::fs::create_dir_all(data).with_context(|| format!("cannot make {}", data.display()))?;
    // Held until the end: dropping it ends the processes.
    let _server = start(bin, data, controllers).await?;
    println!("{}", server::absolute(data)?.join("kubeconfig").display());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    Ok(())
}

async fn start_etcd(bin: &Path, directory: &Path) -> Result<(Child, String)> {
    let client_port = free_port()?;
    let client_url = format!("http://127.0.0.1:{client_port}");
    let peer_url = format!("http://127.0.0.1:{}", free_port()?);
    let arguments = [
        format!("--data-dir={}", directory.join("etcd").display()),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=default={peer_url}"),
        "--log-level=warn".to_owned(),
    ];
    let log = directory.join("etcd.log");
    let mut child = spawn(&bin.join("etcd"), &arguments, &log)?;
    until("etcd", &mut child, &log, async || {
        etcd_is_healthy(client_port).await
    })
    .await?;
    Ok((child, client_url))
}

/// One plain HTTP/1.1 exchange; etcd answers 200 when it has a leader.
async fn etcd_is_healthy(port: u16) -> bool {
    let exchange = async {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
        connection
            .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), exchange).await,
        Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200"))
}

fn start_apiserver(bin: &Path, directory: &Path, port: u16, etcd: &str, controllers: bool) -> Result<Child> {
    let file = |name: &str| directory.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        format!("--service-account-key-file={}", file("accounts.pub")),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
    ];
    if !controllers {
        // Nothing would make the default service accounts that this plug-in asks for.
        arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    spawn(
        &bin.join("kube-apiserver"),
        &arguments,
        &directory.join("kube-apiserver.log"),
    )
}

fn start_controllers(bin: &Path, directory: &Path) -> Result<Child> {
    let file = |name: &str| directory.join(name).display().to_string();
    let arguments = [
        format!("--kubeconfig={}", file("kubeconfig")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", free_port()?),
        format!("--cert-dir={}", file("controller-manager")),
    ];
    spawn(
        &bin.join("kube-controller-manager"),
        &arguments,
        &directory.join("kube-controller-manager.log"),
    )
}

/// The peer's certificates, as PEM.
struct Pki {
    ca: String,
    admin_certificate: String,
    admin_key: String,
}

impl Pki {
    /// Makes a CA, a server certificate for loopback, an administrator's certificate and a key for service accounts,
    /// and writes the files that the flags name.
    fn write(directory: &Path, address: &str) -> Result<Self> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "peer-ca");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let (ca_pem, ca_key_pem) = (ca.self_signed(&ca_key)?.pem(), ca_key.serialize_pem());
        let issuer = Issuer::new(ca, ca_key);

        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut server = CertificateParams::new(names)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let (server_certificate, server_key) = sign(&mut server, "kube-apiserver", &issuer)?;

        let mut admin = CertificateParams::new(Vec::new())?;
        admin
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (admin_certificate, admin_key) = sign(&mut admin, "admin", &issuer)?;

        let accounts = KeyPair::generate()?;
        for (name, content) in [
            ("ca.crt", &ca_pem),
            ("ca.key", &ca_key_pem),
            ("server.crt", &server_certificate),
            ("server.key", &server_key),
            ("accounts.key", &accounts.serialize_pem()),
            ("accounts.pub", &accounts.public_key_pem()),
        ] {
            std::fs::write(directory.join(name), content).with_context(|| format!("cannot write {name}"))?;
        }
        let pki = Self {
            ca: ca_pem,
            admin_certificate,
            admin_key,
        };
        kubeconfig::write(&directory.join("kubeconfig"), address, &pki.identity())?;
        Ok(pki)
    }

    fn identity(&self) -> Identity<'_> {
        Identity {
            ca: self.ca.as_bytes(),
            certificate: self.admin_certificate.as_bytes(),
            key: self.admin_key.as_bytes(),
        }
    }

    fn tls(&self) -> Result<rustls::ClientConfig> {
        kubeconfig::tls(self.ca.as_bytes(), Some(&self.identity()))
    }
}

fn sign(
    params: &mut CertificateParams,
    name: &str,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
