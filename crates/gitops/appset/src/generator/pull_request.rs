//! Pull requests: each is a branch that wants to become part of another.

use regex::Regex;
use serde_json::{Value, json};

use super::Generation;
use crate::{Error, Params, slug};

/// The longest expression of a filter.
const MAX_EXPRESSION: usize = 4096;
/// How long a branch's name may be in addresses: names in DNS have 63 characters, and something is put before or behind.
const MAX_SLUG: usize = 50;

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// What it is about.
    pub title: String,
    /// The branch that wants to be merged.
    pub branch: String,
    /// The branch that it wants to be merged into.
    pub target_branch: String,
    /// The last commit of its branch.
    pub head: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who made it.
    pub author: String,
}

/// An entry of `filters`: all that it says must fit.
struct Filter {
    branch: Option<Regex>,
    target_branch: Option<Regex>,
    title: Option<Regex>,
}

impl Filter {
    fn read(value: &Value) -> Result<Self, Error> {
        let expression = |field: &str, name: &str| -> Result<Option<Regex>, Error> {
            let Some(text) = value[field].as_str() else {
                return Ok(None);
            };
            let bad = |why: &str| Error::Generator(format!("error compiling {name} regexp {text:?}: {why}"));
            if text.len() > MAX_EXPRESSION {
                return Err(bad("it is too long"));
            }
            Regex::new(text)
                .map(Some)
                .map_err(|error| bad(&error.to_string()))
        };
        Ok(Self {
            branch: expression("branchMatch", "BranchMatch")?,
            target_branch: expression("targetBranchMatch", "TargetBranchMatch")?,
            title: expression("titleMatch", "TitleMatch")?,
        })
    }

    fn fits(&self, pull: &PullRequest) -> bool {
        let fits = |wanted: &Option<Regex>, text: &str| wanted.as_ref().is_none_or(|it| it.is_match(text));
        fits(&self.branch, &pull.branch)
            && fits(&self.target_branch, &pull.target_branch)
            && fits(&self.title, &pull.title)
    }
}

impl Generation<'_> {
    pub(super) fn pull_requests(&self, generator: &Value) -> Result<Vec<Params>, Error> {
        let filters = generator["filters"].as_array().map_or(&[][..], Vec::as_slice);
        let filters = filters.iter().map(Filter::read).collect::<Result<Vec<_>, _>>()?;
        let found = self
            .sources
            .pull_requests(generator)
            .map_err(|why| Error::Source(format!("error listing repos: {why}")))?;
        let chosen = found
            .iter()
            .filter(|pull| filters.is_empty() || filters.iter().any(|filter| filter.fits(pull)));
        let mut all = Vec::new();
        for pull in chosen {
            let mut params = self.pull_request(pull);
            self.add_values(&generator["values"], &mut params)?;
            all.push(params);
        }
        Ok(all)
    }

    fn pull_request(&self, pull: &PullRequest) -> Params {
        let in_address = |branch: &str| slug(&branch.replace('_', "-"), MAX_SLUG, true);
        let short = |length: usize| pull.head.get(..length).unwrap_or(&pull.head);
        let mut params = Params::new();
        for (name, text) in [
            ("number", pull.number.to_string().as_str()),
            ("title", &pull.title),
            ("branch", &pull.branch),
            ("branch_slug", &in_address(&pull.branch)),
            ("target_branch", &pull.target_branch),
            ("target_branch_slug", &in_address(&pull.target_branch)),
            ("head_sha", &pull.head),
            ("head_short_sha", short(8)),
            ("head_short_sha_7", short(7)),
            ("author", &pull.author),
        ] {
            params.insert(name.to_owned(), text.into());
        }
        if self.renderer.go {
            params.insert("labels".to_owned(), json!(pull.labels));
        }
        params
    }
}
