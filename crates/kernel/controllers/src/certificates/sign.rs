//! What is approved is signed, if it is what its signer signs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile};
use fairway_kernel_x509::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};
use kube::api::PostParams;

use super::{CertificateSigner, Requests, SigningJob, api_of, certificate, has, written};

pub(super) const NAME: &str = "certificate-signing";

/// No certificate is shorter, whatever is asked for: twice what its beginning is dated back.
const SHORTEST: Duration = Duration::from_secs(600);

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

pub(super) struct Signing {
    pub(super) clients: Clients,
    pub(super) requests: Requests,
    pub(super) signer: Arc<dyn CertificateSigner>,
    pub(super) longest: Duration,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// It is not for us, or not yet, or done.
    Leave,
    /// It is not what its signer signs.
    Refuse(String),
    /// It is signed.
    Sign(Box<SigningJob>),
}

/// Why a request of another workspace than the root comes to nothing.
const ROOT_ONLY: &str = "certificates are signed in the root workspace only, because a certificate is valid in every \
     workspace; ask for it there, or use a service account's token here";

fn decide(csr: &CertificateSigningRequest, in_root: bool, longest: Duration) -> Step {
    let signer = csr.spec.signer_name.as_str();
    let approved = has(csr, "Approved") && !has(csr, "Denied") && !has(csr, "Failed");
    let ours = [CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY].contains(&signer);
    if !approved || !ours || certificate(csr).is_some() {
        return Step::Leave;
    }
    if !in_root {
        return Step::Refuse(ROOT_ONLY.to_owned());
    }
    let request = match Request::from_pem(&csr.spec.request.0) {
        Ok(request) => request,
        Err(error) => return Step::Refuse(format!("unable to parse csr: {error}")),
    };
    let usages: Vec<String> = csr.spec.usages.clone().unwrap_or_default();
    let verdict = match signer {
        CLIENT => client_usages(&usages),
        KUBELET_CLIENT => kubelet_client(&request, &usages),
        KUBELET_SERVING => kubelet_serving(&request, &usages),
        _ => Ok(()),
    };
    match verdict {
        Err(why) => Step::Refuse(why),
        Ok(()) => Step::Sign(Box::new(SigningJob {
            request,
            usages,
            duration: duration(csr.spec.expiration_seconds, longest),
        })),
    }
}

fn duration(asked: Option<i32>, longest: Duration) -> Duration {
    let Some(seconds) = asked else { return longest };
    let asked = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    if asked > longest {
        longest
    } else {
        asked.max(SHORTEST)
    }
}

fn client_usages(usages: &[String]) -> Result<(), String> {
    let other = usages
        .iter()
        .find(|u| !["digital signature", "key encipherment", "client auth"].contains(&u.as_str()));
    if let Some(other) = other {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if !usages.iter().any(|u| u == "client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

/// The purpose with a signature, and with or without encipherment, which only RSA keys can do.
fn exactly(usages: &[String], purpose: &str) -> Result<(), String> {
    let given: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let without = BTreeSet::from(["digital signature", purpose]);
    let with = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    if given == without || given == with {
        return Ok(());
    }
    let wanted: Vec<&str> = with.into_iter().collect();
    Err(format!("usages did not match [{}]", wanted.join(" ")))
}

fn of_nodes(request: &Request) -> Result<(), String> {
    if request.subject.organisations != ["system:nodes"] {
        return Err("subject organization is not system:nodes".to_owned());
    }
    Ok(())
}

fn named_as_node(request: &Request) -> Result<(), String> {
    if !request.subject.common_name.starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:".to_owned());
    }
    Ok(())
}

/// Whether this is the client certificate of a kubelet.
pub(super) fn kubelet_client(request: &Request, usages: &[String]) -> Result<(), String> {
    of_nodes(request)?;
    for (there, what) in [
        (!request.dns_names.is_empty(), "DNS"),
        (!request.emails.is_empty(), "Email"),
        (!request.addresses.is_empty(), "IP"),
        (!request.uris.is_empty(), "URI"),
    ] {
        if there {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    named_as_node(request)?;
    exactly(usages, "client auth")
}

fn kubelet_serving(request: &Request, usages: &[String]) -> Result<(), String> {
    of_nodes(request)?;
    if request.dns_names.is_empty() && request.addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    for (there, what) in [
        (!request.emails.is_empty(), "Email"),
        (!request.uris.is_empty(), "URI"),
    ] {
        if there {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    exactly(usages, "server auth")?;
    named_as_node(request)
}

impl Reconcile<ObjectKey> for Signing {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(csr) = self.requests.get(key) else {
            return Ok(Outcome::Done);
        };
        let mut csr = CertificateSigningRequest::clone(&csr);
        match decide(&csr, key.workspace.is_root(), self.longest) {
            Step::Leave => return Ok(Outcome::Done),
            Step::Refuse(why) => {
                let status = csr.status.get_or_insert_default();
                status.conditions.get_or_insert_default().push(Condition {
                    type_: "Failed".to_owned(),
                    status: "True".to_owned(),
                    reason: Some("SignerValidationFailure".to_owned()),
                    message: Some(why),
                    ..Condition::default()
                });
            }
            Step::Sign(job) => {
                let certificate = self.signer.sign(&job).map_err(Failure::NotYet)?;
                csr.status.get_or_insert_default().certificate = Some(ByteString(certificate.into_bytes()));
            }
        }
        // The object carries its resource version: what was judged is what is written.
        let answer = api_of(&self.clients, key)
            .replace_status(&key.name, &PostParams::default(), &csr)
            .await;
        written(answer, "write the outcome of a certificate request")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixtures::{approved, request_with};
    use super::{CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY, ROOT_ONLY, Step, decide, duration};

    const YEAR: Duration = Duration::from_secs(31_536_000);

    #[test]
    fn every_signer_signs_what_it_is_for() {
        let node = request_with("system:node:n1", &["system:nodes"], &[], &[]);
        let named = request_with("system:node:n1", &["system:nodes"], &["n1.example"], &[]);
        let mailed = request_with("system:node:n1", &["system:nodes"], &["n1"], &["a@example"]);
        let anna = request_with("anna", &["developers"], &[], &[]);
        let client = ["digital signature", "client auth"];
        let rsa = ["key encipherment", "digital signature", "client auth"];
        let serving = ["digital signature", "server auth"];
        for (name, signer, request, usages, want) in [
            ("a person", CLIENT, &anna, &client[..], ""),
            ("client auth alone", CLIENT, &anna, &client[1..], ""),
            (
                "a server",
                CLIENT,
                &anna,
                &serving[..],
                "invalid usage for client certificate: server auth",
            ),
            (
                "no purpose",
                CLIENT,
                &anna,
                &client[..1],
                "missing required usage for client certificate: client auth",
            ),
            ("a kubelet", KUBELET_CLIENT, &node, &client[..], ""),
            ("with an RSA key", KUBELET_CLIENT, &node, &rsa[..], ""),
            (
                "not a node",
                KUBELET_CLIENT,
                &anna,
                &client[..],
                "subject organization is not system:nodes",
            ),
            (
                "names",
                KUBELET_CLIENT,
                &named,
                &client[..],
                "DNS subjectAltNames are not allowed",
            ),
            (
                "too few usages",
                KUBELET_CLIENT,
                &node,
                &client[1..],
                "usages did not match [client auth digital signature key encipherment]",
            ),
            ("a kubelet's server", KUBELET_SERVING, &named, &serving[..], ""),
            (
                "no names",
                KUBELET_SERVING,
                &node,
                &serving[..],
                "DNS or IP subjectAltName is required",
            ),
            (
                "mail",
                KUBELET_SERVING,
                &mailed,
                &serving[..],
                "Email subjectAltNames are not allowed",
            ),
            (
                "another purpose",
                KUBELET_SERVING,
                &named,
                &client[..],
                "usages did not match [digital signature key encipherment server auth]",
            ),
            ("anything", LEGACY, &anna, &["code signing"][..], ""),
        ] {
            let step = decide(&approved(signer, request, usages), true, YEAR);
            match (&step, want) {
                (Step::Sign(_), "") => {}
                (Step::Refuse(why), want) => assert_eq!(why, want, "{name}"),
                _ => panic!("{name}: {step:?}"),
            }
        }
    }

    #[test]
    fn only_what_is_approved_and_ours_and_open() {
        let anna = request_with("anna", &[], &[], &[]);
        let good = approved(CLIENT, &anna, &["client auth"]);
        assert!(matches!(decide(&good, true, YEAR), Step::Sign(_)));
        assert_eq!(decide(&good, false, YEAR), Step::Refuse(ROOT_ONLY.to_owned()));
        type Change = fn(&mut k8s_openapi::api::certificates::v1::CertificateSigningRequest);
        let cases: [(&str, Change); 5] = [
            ("pending", |c| c.status = None),
            ("denied", |c| {
                c.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].type_ = "Denied".into();
            }),
            ("failed", |c| {
                let conditions = c.status.as_mut().unwrap().conditions.as_mut().unwrap();
                let mut failed = conditions[0].clone();
                failed.type_ = "Failed".into();
                conditions.push(failed);
            }),
            ("issued", |c| {
                c.status.as_mut().unwrap().certificate = Some(k8s_openapi::ByteString(vec![1]));
            }),
            ("another's", |c| c.spec.signer_name = "example.com/own".into()),
        ];
        for (name, change) in cases {
            let mut csr = good.clone();
            change(&mut csr);
            for in_root in [true, false] {
                assert_eq!(decide(&csr, in_root, YEAR), Step::Leave, "{name}");
            }
        }
    }

    #[test]
    fn durations_are_clamped() {
        for (asked, want) in [
            (None, 31_536_000),
            (Some(1), 600),
            (Some(601), 601),
            (Some(i32::MAX), 31_536_000),
            (Some(-5), 600),
        ] {
            assert_eq!(duration(asked, YEAR).as_secs(), want, "{asked:?}");
        }
    }
}
