//! Selectors of patches and replacements: regular expressions for the parts of an id, and label selectors.

use std::borrow::Cow;

use fairway_text_selector::LabelSelector;
use regex::{Regex, RegexBuilder};

use crate::decode::Fields;
use crate::error::{Error, ErrorKind, Result};
use crate::id::ResId;
use crate::openapi::OpenApi;
use crate::resource::Resource;

/// Which resources are meant, as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    pub(crate) id: ResId,
    pub(crate) annotations: String,
    pub(crate) labels: String,
}

impl Selector {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            id: ResId::decode(fields)?,
            annotations: fields.string("annotationSelector")?,
            labels: fields.string("labelSelector")?,
        })
    }

    /// The one name that is meant, if it is one and no pattern.
    pub(crate) fn plain_name(&self) -> Option<&str> {
        let name = self.id.name.as_str();
        let is_plain = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        (is_plain && !name.is_empty()).then_some(name)
    }
}

/// A selector that is ready to be asked.
pub(crate) struct CompiledSelector {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl CompiledSelector {
    pub(crate) fn new(selector: &Selector, regex_bytes: usize) -> Result<Self> {
        let compile = |pattern: &str| match pattern {
            "" => Ok(None),
            pattern => regex(&format!("^(?:{pattern})$"), regex_bytes).map(Some),
        };
        Ok(Self {
            group: compile(&selector.id.gvk.group)?,
            version: compile(&selector.id.gvk.version)?,
            kind: compile(&selector.id.gvk.kind)?,
            name: compile(&selector.id.name)?,
            namespace: compile(&selector.id.namespace)?,
            labels: labels(&selector.labels)?,
            annotations: labels(&selector.annotations)?,
        })
    }

    fn is_gvk(&self, group: &str, version: &str, kind: &str) -> bool {
        fits(&self.group, group) && fits(&self.version, version) && fits(&self.kind, kind)
    }

    /// Whether a patch with this selector is for the resource: by its first name and namespace, or by today's.
    pub(crate) fn selects(&self, resource: &Resource, api: &OpenApi) -> bool {
        let now = resource.id_ref(api);
        if !self.is_gvk(now.group, now.version, &now.kind) {
            return false;
        }
        let first = resource.previous.first();
        let name = fits(&self.name, &now.name) || first.is_some_and(|first| fits(&self.name, &first.name));
        let namespace = fits(&self.namespace, &now.namespace)
            || first.is_some_and(|first| fits(&self.namespace, crate::id::effective(&first.namespace)));
        name && namespace && self.selects_metadata(resource)
    }

    /// Whether labels and annotations are those that are meant.
    pub(crate) fn selects_metadata(&self, resource: &Resource) -> bool {
        picks(&self.annotations, &resource.string_map("annotations"))
            && picks(&self.labels, &resource.string_map("labels"))
    }

    /// Whether a replacement with this selector is for a resource with this id.
    pub(crate) fn selects_id(&self, id: &ResId) -> bool {
        self.is_gvk(&id.gvk.group, &id.gvk.version, &id.gvk.kind)
            && fits(&self.name, &id.name)
            && fits(&self.namespace, &id.namespace)
    }
}

fn labels(text: &str) -> Result<LabelSelector> {
    LabelSelector::parse(text)
        .map_err(|why| Error::new(format!("unable to parse requirement in selector {text:?}: {why}")))
}

fn picks(selector: &LabelSelector, entries: &[(&str, Cow<'_, str>)]) -> bool {
    selector.matches(|wanted| {
        let found = entries.iter().find(|(key, _)| *key == wanted);
        found.map(|(_, value)| value.as_ref())
    })
}

fn fits(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Compiles a regular expression within bounds. Matching takes linear time, so only its size matters.
pub(crate) fn regex(pattern: &str, bytes: usize) -> Result<Regex> {
    RegexBuilder::new(pattern)
        .size_limit(bytes)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => Error::of(
                ErrorKind::Limit,
                format!("the regular expression {pattern:.80?} needs more than the limit of {limit} bytes"),
            ),
            error => Error::new(format!("error parsing regexp {pattern:?}: {error}")),
        })
}
