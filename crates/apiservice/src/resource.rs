//! A resource or subresource, as discovery shows it.

/// What a service offers under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Plural, in lower case; a subresource has its parent before it (`virtualmachineinstances/console`). The parent need not be
    /// of the same group.
    pub name: String,
    /// Singular; empty for a subresource.
    pub singular: String,
    /// Kind of what it takes and gives.
    pub kind: String,
    /// Whether it is reached through a namespace.
    pub namespaced: bool,
    /// What can be done with it; anything else is refused before it gets here.
    pub verbs: Vec<String>,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Requests may last: no time limit, no limit on the size of the body, and no place among the requests in flight. For
    /// consoles, uploads, and whatever is upgraded.
    pub long_running: bool,
}

impl Resource {
    /// A namespaced resource that can be read.
    #[must_use]
    pub fn new(name: &str, kind: &str) -> Self {
        let is_subresource = name.contains('/');
        Self {
            name: name.to_owned(),
            singular: if is_subresource {
                String::new()
            } else {
                kind.to_lowercase()
            },
            kind: kind.to_owned(),
            namespaced: true,
            verbs: vec!["get".to_owned()],
            short_names: Vec::new(),
            categories: Vec::new(),
            long_running: false,
        }
    }

    /// Offers these verbs instead.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        self
    }

    /// Outside of namespaces.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Whose requests may last.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        self.long_running = true;
        self
    }

    /// The parts of its name.
    #[must_use]
    pub fn split(&self) -> (&str, &str) {
        self.name.split_once('/').unwrap_or((&self.name, ""))
    }
}
