//! Client certificates of kubelets are approved, if whoever asks has the right to them.

use std::time::Duration;

use fairway_controller::{Attempt as _, Failure, ObjectKey, Outcome, Reconcile};
use fairway_kernel_x509::Request;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};

use super::tokens::{self, Verdict};
use super::{Requests, certificate, conditions, sign, written};

pub(super) const NAME: &str = "certificate-approval";

pub(super) struct Approver {
    pub(super) client: Client,
    pub(super) api: Api<CertificateSigningRequest>,
    /// Where bootstrap tokens are.
    pub(super) tokens: Api<Secret>,
    pub(super) requests: Requests,
}

/// How soon a token is looked at again that somebody else is at.
const AGAIN: Duration = Duration::from_millis(200);

/// A right that is enough for approval, and what is written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Right {
    subresource: &'static str,
    message: &'static str,
}

/// A node that asks for itself.
const SELF: Right = Right {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
/// Somebody who may ask for any node.
const ANY: Right = Right {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};

/// The rights of which one must be there, in the order in which they are asked for; none: it is not for us to approve.
fn decide(csr: &CertificateSigningRequest) -> Vec<Right> {
    let judged = conditions(csr).any(|c| c.type_ == "Approved" || c.type_ == "Denied");
    if judged || certificate(csr).is_some() || csr.spec.signer_name != sign::KUBELET_CLIENT {
        return Vec::new();
    }
    let Ok(request) = Request::from_pem(&csr.spec.request.0) else {
        return Vec::new();
    };
    let usages = csr.spec.usages.as_deref().unwrap_or_default();
    if sign::kubelet_client(&request, usages).is_err() {
        return Vec::new();
    }
    let asks_for_itself = csr.spec.username.as_deref() == Some(request.subject.common_name.as_str());
    if asks_for_itself {
        vec![SELF, ANY]
    } else {
        vec![ANY]
    }
}

fn review(csr: &CertificateSigningRequest, right: Right) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: csr.spec.username.clone(),
            uid: csr.spec.uid.clone(),
            groups: csr.spec.groups.clone(),
            extra: csr.spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".to_owned()),
                version: Some("*".to_owned()),
                resource: Some("certificatesigningrequests".to_owned()),
                subresource: Some(right.subresource.to_owned()),
                verb: Some("create".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

impl Reconcile<ObjectKey> for Approver {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(csr) = self.requests.get(key) else {
            return Ok(Outcome::Done);
        };
        let rights = decide(&csr);
        if rights.is_empty() {
            return Ok(Outcome::Done);
        }
        for right in rights {
            let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
            let review = review(&csr, right);
            let answer = reviews
                .create(&PostParams::default(), &review)
                .await
                .attempting("ask whether a node may have a client certificate")?;
            if !answer.status.is_some_and(|s| s.allowed) {
                continue;
            }
            let Some(token) = tokens::of(csr.spec.username.as_deref().unwrap_or_default()) else {
                return self
                    .judge(&csr, key, ("Approved", "AutoApproved", right.message))
                    .await;
            };
            let verdict = tokens::use_up(&self.tokens, token, &csr.spec.request.0).await?;
            let outcome = match &verdict {
                Verdict::Good => {
                    self.judge(&csr, key, ("Approved", "AutoApproved", right.message))
                        .await?
                }
                Verdict::Used(why) => self.judge(&csr, key, ("Denied", "TokenUsed", why)).await?,
                Verdict::Again => Outcome::Again(AGAIN),
            };
            // Whoever joins shows that there are tokens: a good moment to look for old ones.
            tokens::sweep(&self.tokens).await?;
            return Ok(outcome);
        }
        // Rights may be given later, and no watch tells of that.
        Ok(Outcome::Poll)
    }
}

impl Approver {
    /// Writes what became of a request.
    async fn judge(
        &self,
        csr: &CertificateSigningRequest,
        key: &ObjectKey,
        (kind, reason, message): (&str, &str, &str),
    ) -> Result<Outcome, Failure> {
        let mut csr = csr.clone();
        let status = csr.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(Condition {
            type_: kind.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..Condition::default()
        });
        let answer: Result<CertificateSigningRequest, _> = self
            .api
            .replace_subresource("approval", &key.name, &PostParams::default(), &csr)
            .await;
        written(answer, "judge a node's certificate request")
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{asked, request_with};
    use super::{ANY, SELF, decide, sign};

    #[test]
    fn only_kubelets_are_recognised() {
        let node = request_with("system:node:n1", &["system:nodes"], &[], &[]);
        let anna = request_with("anna", &[], &[], &[]);
        let usages = ["digital signature", "client auth"];
        for (name, signer, request, user, usages, want) in [
            (
                "a node for itself",
                sign::KUBELET_CLIENT,
                &node,
                "system:node:n1",
                &usages[..],
                vec![SELF, ANY],
            ),
            (
                "a bootstrapping node",
                sign::KUBELET_CLIENT,
                &node,
                "system:bootstrap:x",
                &usages[..],
                vec![ANY],
            ),
            (
                "a person",
                sign::KUBELET_CLIENT,
                &anna,
                "anna",
                &usages[..],
                vec![],
            ),
            (
                "another signer",
                "kubernetes.io/kube-apiserver-client",
                &node,
                "system:node:n1",
                &usages[..],
                vec![],
            ),
            (
                "wrong usages",
                sign::KUBELET_CLIENT,
                &node,
                "system:node:n1",
                &usages[1..],
                vec![],
            ),
        ] {
            let mut csr = asked(signer, request, usages);
            csr.spec.username = Some(user.to_owned());
            assert_eq!(decide(&csr), want, "{name}");
            csr.status = super::super::fixtures::approved(signer, request, usages).status;
            assert_eq!(decide(&csr), [], "{name}, judged already");
        }
    }
}
