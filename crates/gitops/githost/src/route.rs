//! What the path of a request means.

use crate::owner::is_repository_name;

/// A repository by its owner's and its own name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slug {
    /// The owner's name; [`crate::owner`] says which workspace it is.
    pub owner: String,
    /// The repository's.
    pub name: String,
}

impl std::fmt::Display for Slug {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.owner, self.name)
    }
}

/// A direction of Git's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Clone and fetch.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl Service {
    /// Its name in addresses and media types.
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::UploadPack, Self::ReceivePack]
            .into_iter()
            .find(|service| service.name() == text)
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// What a repository has.
    Refs(Slug, Service),
    /// A conversation.
    Rpc(Slug, Service),
    /// The REST API, and the path below it.
    Api(String),
    /// A webhook.
    Webhook,
    /// The front page of a repository, for who opens its address in a browser.
    Front(Slug),
    /// A branch in a browser.
    Browse(Slug, String),
    /// Git's older protocol, which reads files one by one.
    Dumb,
    /// Nothing that we know.
    Unknown,
}

/// Reads a path and its query. Escapes are not decoded: no name that exists has one.
pub fn route(path: &str, query: &str) -> Route {
    if path == "/api/webhook" {
        return Route::Webhook;
    }
    if let Some(rest) = path.strip_prefix("/api/v1/") {
        return Route::Api(rest.trim_end_matches('/').to_owned());
    }
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    let (Some(owner), Some(name)) = (parts.next(), parts.next()) else {
        return Route::Unknown;
    };
    let rest = parts.next().unwrap_or("").trim_end_matches('/');
    let slug = Slug {
        owner: owner.to_owned(),
        name: name.strip_suffix(".git").unwrap_or(name).to_owned(),
    };
    if crate::owner::workspace_of(&slug.owner).is_none() || !is_repository_name(&slug.name) {
        return Route::Unknown;
    }
    match rest {
        "" => Route::Front(slug),
        "info/refs" => match asked_service(query) {
            Some(service) => Route::Refs(slug, service),
            None => Route::Dumb,
        },
        "HEAD" => Route::Dumb,
        _ if rest.starts_with("objects/") => Route::Dumb,
        _ if rest.starts_with("src/branch/") => {
            Route::Browse(slug, rest.trim_start_matches("src/branch/").to_owned())
        }
        _ => match Service::parse(rest) {
            Some(service) => Route::Rpc(slug, service),
            None => Route::Unknown,
        },
    }
}

fn asked_service(query: &str) -> Option<Service> {
    let found = query.split('&').find_map(|pair| pair.strip_prefix("service="))?;
    Service::parse(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let slug = || Slug {
            owner: "org".to_owned(),
            name: "app".to_owned(),
        };
        let up = "service=git-upload-pack";
        let cases: &[(&str, &str, Route)] = &[
            (
                "/org/app.git/info/refs",
                up,
                Route::Refs(slug(), Service::UploadPack),
            ),
            ("/org/app/info/refs", up, Route::Refs(slug(), Service::UploadPack)),
            (
                "/org/app.git/info/refs",
                "a=b&service=git-receive-pack",
                Route::Refs(slug(), Service::ReceivePack),
            ),
            ("/org/app.git/info/refs", "", Route::Dumb),
            ("/org/app.git/info/refs", "service=git-evil", Route::Dumb),
            (
                "/org/app.git/git-receive-pack",
                "",
                Route::Rpc(slug(), Service::ReceivePack),
            ),
            ("/org/app.git/HEAD", "", Route::Dumb),
            ("/org/app.git/objects/info/packs", "", Route::Dumb),
            ("/org/app", "", Route::Front(slug())),
            ("/org/app.git", "", Route::Front(slug())),
            ("/api/v1/version", "", Route::Api("version".to_owned())),
            ("/api/v1/repos/a/b/", "", Route::Api("repos/a/b".to_owned())),
            ("/api/webhook", "", Route::Webhook),
            ("/", "", Route::Unknown),
            ("/org", "", Route::Unknown),
            ("/org/../etc/passwd/info/refs", up, Route::Unknown),
            ("/../app.git/info/refs", up, Route::Unknown),
            ("/org/%2e%2e/info/refs", up, Route::Unknown),
            ("/org/..%2f..%2fx.git/info/refs", up, Route::Unknown),
            ("/org/app.git/../../x", "", Route::Unknown),
            ("/org/app.git/git-upload-archive", "", Route::Unknown),
            ("/ORG/app.git/info/refs", up, Route::Unknown),
            (
                "//org/app.git/info/refs",
                up,
                Route::Refs(slug(), Service::UploadPack),
            ),
            ("/org/app\0.git/info/refs", up, Route::Unknown),
        ];
        for (path, query, expected) in cases {
            assert_eq!(route(path, query), *expected, "{path}?{query}");
        }
    }
}
