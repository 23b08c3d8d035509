//! The domain that an installation's own sites are named below: Git, sign-in, the portal, and whatever is published.

use std::fmt;

use anyhow::bail;
use fairway_kernel_scalar::names::{SUBDOMAIN_MAX, is_dns1123_label};
use serde::{Deserialize, Serialize};

/// Lower case, without a dot at either end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Domain(String);

impl Default for Domain {
    /// What leads to one's own computer without any name server.
    fn default() -> Self {
        Self("fairway.localhost".to_owned())
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Domain {
    /// From a setting.
    pub(crate) fn parse(name: &str) -> anyhow::Result<Self> {
        let is_label = |label: &str| is_dns1123_label(label).is_empty();
        if name.len() > SUBDOMAIN_MAX || !name.split('.').all(is_label) {
            bail!("{name:?} is not a domain; write it in lower case, such as apps.example.com");
        }
        Ok(Self(name.to_owned()))
    }

    /// The host of Git, Gitea's API and webhooks.
    pub(crate) fn git(&self) -> String {
        format!("git.{self}")
    }

    /// The host where people sign in.
    pub(crate) fn sign_in(&self) -> String {
        format!("id.{self}")
    }

    /// The host of the portal and of Backstage's APIs.
    pub(crate) fn portal(&self) -> String {
        format!("portal.{self}")
    }

    /// What the host names of Routes that name none themselves end with.
    pub(crate) fn apps(&self) -> String {
        format!("apps.{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_names() {
        for (text, is_good) in [
            ("apps.example.com", true),
            ("apps", true),
            ("", false),
            ("*.example.com", false),
            ("Apps.example.com", false),
            ("a..b", false),
            ("example.com.", false),
            ("example.com:7443", false),
        ] {
            assert_eq!(Domain::parse(text).is_ok(), is_good, "{text}");
        }
    }

    #[test]
    fn sites_are_below_the_domain() {
        let domain = Domain::parse("fairway.example.com").unwrap();
        let sites = [domain.git(), domain.sign_in(), domain.portal(), domain.apps()];
        let expected = ["git", "id", "portal", "apps"].map(|site| format!("{site}.fairway.example.com"));
        assert_eq!(sites, expected);
    }
}
