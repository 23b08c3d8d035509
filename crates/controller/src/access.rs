//! Who somebody is and what he may: the kernel judges it, for each request anew, in the workspace of the client that asks.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};

/// Who a token belongs to, none if it is not good there. Without audiences it has to be good for the API itself.
pub async fn review(
    client: Client,
    token: &str,
    audiences: Option<Vec<String>>,
) -> Result<Option<UserInfo>, kube::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            audiences,
        },
        ..TokenReview::default()
    };
    let answer = Api::<TokenReview>::all(client)
        .create(&PostParams::default(), &review)
        .await?;
    let status = answer.status.unwrap_or_default();
    Ok(status.user.filter(|_| status.authenticated == Some(true)))
}

/// Whether somebody may do something there.
pub async fn may(client: Client, user: UserInfo, wish: ResourceAttributes) -> Result<bool, kube::Error> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            resource_attributes: Some(wish),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(client)
        .create(&PostParams::default(), &review)
        .await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
