//! What led to a commit, and what differs between two.

use crate::{CommitInfo, GitError, ObjectId, Repository};

/// The largest difference that is shown.
const MAX_DIFF: u64 = 16 << 20;

/// How a file differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    /// Its path; of a renamed file, the new one.
    pub path: String,
    /// The path that it had, if it was renamed.
    pub old_path: Option<String>,
    /// `A`, `D`, `M`, `R` or `T`, as Git names what happened to it.
    pub kind: char,
    /// Lines that came, unless it is not text.
    pub additions: Option<u64>,
    /// Lines that went.
    pub deletions: Option<u64>,
}

impl Repository {
    /// The commits that lead to one, newest first, without those that lead to `without`; if a path is given, those that
    /// changed it. `skip` of them are left out, and at most `limit` returned.
    pub async fn log(
        &self,
        commit: &ObjectId,
        without: Option<&ObjectId>,
        path: Option<&str>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<CommitInfo>, GitError> {
        let mut command = self
            .command("rev-list")
            .arg(format!("--skip={skip}"))
            .arg(format!("--max-count={limit}"))
            .arg(commit.as_str());
        if let Some(without) = without {
            command = command.arg(format!("^{without}"));
        }
        let command = command
            .arg("--")
            .args(path.map(|path| format!(":(literal){path}")));
        let printed = command.output().await?;
        let ids: Vec<ObjectId> = String::from_utf8_lossy(&printed)
            .lines()
            .map(ObjectId::parse)
            .collect::<Result<_, _>>()?;
        self.blocking(move |this| ids.iter().map(|id| this.commit_info_blocking(id)).collect())
            .await
    }

    /// How many commits lead to one, without those that lead to `without`.
    pub async fn count(&self, commit: &ObjectId, without: Option<&ObjectId>) -> Result<usize, GitError> {
        let mut command = self.command("rev-list").args(["--count", commit.as_str()]);
        if let Some(without) = without {
            command = command.arg(format!("^{without}"));
        }
        let printed = command.output().await?;
        Ok(String::from_utf8_lossy(&printed).trim().parse().unwrap_or(0))
    }

    /// The newest commit that leads to both, if there is one.
    pub async fn merge_base(&self, one: &ObjectId, other: &ObjectId) -> Result<Option<ObjectId>, GitError> {
        let command = self.command("merge-base").args([one.as_str(), other.as_str()]);
        let (success, printed, complaint) = command.finish().await?;
        match (success, complaint.is_empty()) {
            (true, _) => ObjectId::parse(String::from_utf8_lossy(&printed).trim()).map(Some),
            (false, true) => Ok(None),
            (false, false) => Err(GitError::Failed {
                what: "merge-base".to_owned(),
                said: command.complaint(&complaint),
            }),
        }
    }

    /// The difference between two commits as a patch.
    pub async fn diff(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<u8>, GitError> {
        self.command("diff-tree")
            .args([
                "-r",
                "-p",
                "-M",
                "--full-index",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
            ])
            .args([old.as_str(), new.as_str()])
            .max_output(MAX_DIFF)
            .output()
            .await
    }

    /// The files that differ between two commits, with how many lines came and went.
    pub async fn differences(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<FileDifference>, GitError> {
        let range = [old.as_str(), new.as_str()];
        let common = ["-r", "-z", "-M", "--no-color", "--no-ext-diff", "--no-textconv"];
        let named = self
            .command("diff-tree")
            .args(common)
            .arg("--name-status")
            .args(range);
        let counted = self
            .command("diff-tree")
            .args(common)
            .arg("--numstat")
            .args(range);
        let (named, counted) = tokio::try_join!(named.output(), counted.output())?;
        Ok(read_differences(&named, &counted))
    }
}

/// Puts together what `--name-status` and `--numstat` print; both have the files in the same order.
fn read_differences(named: &[u8], counted: &[u8]) -> Vec<FileDifference> {
    let words = |bytes: &[u8]| -> Vec<String> {
        let words = bytes.split(|byte| *byte == 0);
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    };
    let (named, counted) = (words(named), words(counted));
    let (mut named, mut counted) = (named.into_iter(), counted.into_iter());
    let mut found = Vec::new();
    while let Some(kind) = named.next().filter(|kind| !kind.is_empty()) {
        let kind = kind.chars().next().unwrap_or('M');
        let is_pair = matches!(kind, 'R' | 'C');
        let (Some(first), numbers) = (named.next(), counted.next().unwrap_or_default()) else {
            break;
        };
        let (path, old_path) = match is_pair {
            true => (named.next().unwrap_or_default(), Some(first)),
            false => (first, None),
        };
        if is_pair {
            // Of a renamed file, both paths follow as words of their own.
            let _ = (counted.next(), counted.next());
        }
        let mut numbers = numbers.split('\t').map(|number| number.parse().ok());
        found.push(FileDifference {
            path,
            old_path,
            kind,
            additions: numbers.next().flatten(),
            deletions: numbers.next().flatten(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_read() {
        let named = b"M\0a b\0R090\0old\0new\0A\0bin\0";
        let counted = b"1\t2\ta b\x003\t4\t\x00old\x00new\x00-\t-\tbin\x00";
        let found = read_differences(named, counted);
        let shown: Vec<_> = found
            .iter()
            .map(|d| (d.kind, &*d.path, d.old_path.as_deref(), d.additions, d.deletions))
            .collect();
        assert_eq!(
            shown,
            [
                ('M', "a b", None, Some(1), Some(2)),
                ('R', "new", Some("old"), Some(3), Some(4)),
                ('A', "bin", None, None, None)
            ]
        );
        assert!(read_differences(b"", b"").is_empty());
    }
}
