//! Addresses of Git repositories in any of the forms that Git takes: with a scheme, as `user@host:path`, or as a path.

/// Schemes of addresses that are read as URLs.
const SCHEMES: [&str; 9] = [
    "ssh", "git", "git+ssh", "http", "https", "ftp", "ftps", "rsync", "file",
];

/// An address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitUrl {
    host: String,
    path: String,
    /// Query and fragment, with what stands before them.
    rest: String,
}

impl GitUrl {
    /// Never fails: what is nothing else is a path.
    pub(crate) fn parse(text: &str) -> Self {
        if let Some((scheme, after)) = text.split_once("://")
            && SCHEMES.contains(&scheme.to_ascii_lowercase().as_str())
        {
            let end = after.find(['/', '?', '#']).unwrap_or(after.len());
            let (authority, tail) = after.split_at(end);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let end = tail.find(['?', '#']).unwrap_or(tail.len());
            let (path, rest) = tail.split_at(end);
            return Self::of(host, path, rest);
        }
        if let Some((place, path)) = text.split_once(':') {
            let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
            let is_sound = |part: &str, more: &[char]| {
                !part.is_empty()
                    && part
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
            };
            let end = path.find('?').unwrap_or(path.len());
            let (path, rest) = path.split_at(end);
            if is_sound(host, &['.', '_', '-']) && is_sound(path, &['.', '/', '_', '-']) {
                return Self::of(host, path, rest);
            }
        }
        Self::of("", text, "")
    }

    fn of(host: &str, path: &str, rest: &str) -> Self {
        Self {
            host: host.to_owned(),
            path: path.to_owned(),
            rest: rest.to_owned(),
        }
    }

    /// Where a browser finds it.
    pub(crate) fn https(&self) -> String {
        let slash = !self.host.is_empty() && !self.path.is_empty() && !self.path.starts_with('/');
        let slash = if slash { "/" } else { "" };
        format!("https://{}{slash}{}{}", self.host, self.path, self.rest)
    }

    /// Owner and name.
    pub(crate) fn full_name(&self) -> String {
        let path = self.path.strip_suffix(".git").unwrap_or(&self.path);
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        match (parts.next(), parts.next()) {
            (Some(owner), Some(name)) => format!("{owner}/{name}"),
            _ => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_all_forms() {
        for (text, https, name) in [
            (
                "git@github.com:shop/web.git",
                "https://github.com/shop/web.git",
                "shop/web",
            ),
            (
                "https://user:pass@git.example.com:8443/shop/web.git",
                "https://git.example.com:8443/shop/web.git",
                "shop/web",
            ),
            ("ssh://git@host/shop/web", "https://host/shop/web", "shop/web"),
            (
                "https://host/group/sub/web.git?x=1#y",
                "https://host/group/sub/web.git?x=1#y",
                "group/sub",
            ),
            ("host.xz:web.git", "https://host.xz/web.git", "web"),
            ("https://host", "https://host", ""),
            ("/srv/git/web.git", "https:///srv/git/web.git", "srv/git"),
            ("", "https://", ""),
        ] {
            let url = GitUrl::parse(text);
            assert_eq!(
                (url.https().as_str(), url.full_name().as_str()),
                (https, name),
                "{text}"
            );
        }
    }
}
