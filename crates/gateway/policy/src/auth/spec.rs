//! The rules of an AuthPolicy as manifests write them (Authorino's `AuthConfig`, `v1beta3`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::credentials::CredentialsSpec;
use crate::expression::{ConditionSpec, ValueSpec};
use crate::labels::LabelSelector;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommonSpec {
    pub(super) priority: i64,
    pub(super) when: Vec<ConditionSpec>,
    pub(super) cache: Option<CacheSpec>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct CacheSpec {
    pub(super) key: ValueSpec,
    #[serde(default)]
    pub(super) ttl: Option<u64>,
}

pub(super) type Properties = BTreeMap<String, ValueSpec>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AuthenticationSpec {
    pub(super) credentials: CredentialsSpec,
    pub(super) overrides: Properties,
    pub(super) defaults: Properties,
    pub(super) api_key: Option<ApiKeySpec>,
    pub(super) jwt: Option<JwtSpec>,
    pub(super) oauth2_introspection: Option<IntrospectionSpec>,
    pub(super) kubernetes_token_review: Option<TokenReviewSpec>,
    pub(super) x509: Option<Json>,
    pub(super) plain: Option<ValueSpec>,
    pub(super) anonymous: Option<Json>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ApiKeySpec {
    pub(super) selector: LabelSelector,
    #[serde(default)]
    pub(super) all_namespaces: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct JwtSpec {
    pub(super) issuer_url: String,
    pub(super) jwks_url: String,
    pub(super) ttl: u64,
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IntrospectionSpec {
    pub(super) endpoint: String,
    #[serde(default)]
    pub(super) token_type_hint: Option<String>,
    pub(super) credentials_ref: NameRef,
    #[serde(default)]
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NameRef {
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenReviewSpec {
    pub(super) audiences: Vec<String>,
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MetadataSpec {
    pub(super) http: Option<HttpSpec>,
    pub(super) user_info: Option<UserInfoSpec>,
    pub(super) uma: Option<Json>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UserInfoSpec {
    pub(super) identity_source: Option<String>,
    pub(super) user_info_url: Option<String>,
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HttpSpec {
    pub(super) url: String,
    pub(super) url_expression: Option<String>,
    pub(super) method: Option<String>,
    pub(super) body: Option<ValueSpec>,
    pub(super) body_parameters: Properties,
    pub(super) content_type: Option<String>,
    pub(super) headers: Properties,
    pub(super) shared_secret_ref: Option<SecretKeySpec>,
    pub(super) oauth2: Option<Json>,
    pub(super) credentials: CredentialsSpec,
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SecretKeySpec {
    pub(super) name: String,
    pub(super) key: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AuthorizationSpec {
    pub(super) pattern_matching: Option<PatternMatchingSpec>,
    pub(super) opa: Option<OpaSpec>,
    pub(super) kubernetes_subject_access_review: Option<AccessReviewSpec>,
    pub(super) spicedb: Option<Json>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PatternMatchingSpec {
    pub(super) patterns: Vec<ConditionSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct OpaSpec {
    pub(super) rego: String,
    pub(super) external_policy: Option<Json>,
    pub(super) all_values: bool,
    pub(super) version: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AccessReviewSpec {
    pub(super) user: Option<ValueSpec>,
    pub(super) groups: Vec<String>,
    pub(super) authorization_groups: Option<ValueSpec>,
    pub(super) resource_attributes: Option<ResourceSpec>,
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceSpec {
    pub(super) group: ValueSpec,
    pub(super) resource: ValueSpec,
    pub(super) subresource: ValueSpec,
    pub(super) name: ValueSpec,
    pub(super) namespace: ValueSpec,
    pub(super) verb: ValueSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct DenySpec {
    pub(super) code: Option<u16>,
    pub(super) message: Option<ValueSpec>,
    pub(super) headers: Properties,
    pub(super) body: Option<ValueSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResponseSpec {
    pub(super) key: Option<String>,
    pub(super) plain: Option<ValueSpec>,
    pub(super) json: Option<JsonSpec>,
    pub(super) wristband: Option<Json>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct JsonSpec {
    pub(super) properties: Properties,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallbackSpec {
    pub(super) http: Option<HttpSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PatternsSpec {
    pub(super) all_of: Vec<ConditionSpec>,
}
