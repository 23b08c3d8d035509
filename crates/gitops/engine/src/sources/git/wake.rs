//! Copies of repositories elsewhere, looked at at once because somebody says that there is something new.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{GitSources, Mirrored, News};

/// A copy is not brought up to date more often than this: whoever says that there is something new may be anybody.
const REST: Duration = Duration::from_secs(2);

impl GitSources {
    /// The workspaces whose Applications read one of these addresses.
    pub fn followers(&self, addresses: &[String]) -> Vec<String> {
        let of = |copy: Arc<Mirrored>| copy.repository.workspace.as_str().to_owned();
        self.copies_of(addresses).into_iter().map(of).collect()
    }

    /// Looks again at what Applications of a workspace read at these addresses; how many copies there are.
    pub fn look_again(self: &Arc<Self>, workspace: &str, addresses: &[String]) -> usize {
        let mut copies = self.copies_of(addresses);
        copies.retain(|copy| copy.repository.workspace.as_str() == workspace);
        let count = copies.len();
        for copy in copies {
            // Somebody will look who has not begun yet.
            if copy.is_called.swap(true, Ordering::Relaxed) {
                continue;
            }
            let this = Arc::clone(self);
            // What cannot be reached is told to those who ask, and tried again as always.
            tokio::spawn(async move {
                let age = copy.fetched.lock().await.map(|at| at.elapsed());
                if let Some(rest) = age.and_then(|age| REST.checked_sub(age)) {
                    tokio::time::sleep(rest).await;
                }
                copy.is_called.store(false, Ordering::Relaxed);
                if let Ok(true) = this.refresh(&copy, Duration::ZERO).await {
                    this.tell(News::of(&copy.repository.url));
                }
            });
        }
        count
    }

    fn copies_of(&self, addresses: &[String]) -> Vec<Arc<Mirrored>> {
        let wanted: Vec<String> = addresses.iter().map(|address| whereabouts(address)).collect();
        let known = self.lock();
        let copies = known
            .values()
            .filter(|copy| wanted.contains(&whereabouts(&copy.repository.url)));
        copies.cloned().collect()
    }
}

/// Host and path of a repository, whichever way it is reached, as Argo CD compares them: events name other addresses than
/// those that Applications are given.
pub(crate) fn whereabouts(address: &str) -> String {
    let address = address.trim().to_ascii_lowercase();
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", address.as_str()),
    };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let (host, path) = match (scheme, rest.split_once('/'), rest.split_once(':')) {
        // git@host:path
        ("", _, Some((host, path))) => (host, path),
        (_, Some((host, path)), _) => (host.split(':').next().unwrap_or(host), path),
        (_, None, _) => (rest, ""),
    };
    let host = ["ssh.", "altssh."]
        .iter()
        .find_map(|ssh| host.strip_prefix(ssh))
        .unwrap_or(host);
    let path = path.trim_matches('/');
    format!("{host}/{}", path.strip_suffix(".git").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::whereabouts;

    #[test]
    fn the_same_repository_by_other_addresses() {
        for address in [
            "https://example.com/team/app",
            "https://example.com/team/app.git",
            "https://Example.com:8443/Team/App/",
            "https://user:word@example.com/team/app.git",
            "ssh://git@example.com:22/team/app.git",
            "ssh://git@ssh.example.com/team/app",
            "git@example.com:team/app.git",
        ] {
            assert_eq!(whereabouts(address), "example.com/team/app", "{address}");
        }
        for other in [
            "https://example.com/team/app2",
            "https://example.org/team/app",
            "",
            "https://example.com",
        ] {
            assert_ne!(whereabouts(other), "example.com/team/app", "{other}");
        }
    }
}
