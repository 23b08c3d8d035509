//! Names, tags and digests of images.

use regex::Regex;
use serde_json::Value;

use super::Context;
use crate::error::Result;
use crate::fieldspec::{FieldSpec, Make};
use crate::kustomization::Image;
use crate::limits::Limits;
use crate::node::{set_plain, text, wrong_kind};
use crate::resmap::ResMap;
use crate::selector::regex;

/// A change of an image and the fields that it may be in.
#[derive(Debug)]
pub(crate) struct ImageUpdate {
    image: Image,
    specs: Vec<FieldSpec>,
    /// None for a name that is not a regular expression: nothing is called so.
    pattern: Option<Regex>,
}

impl ImageUpdate {
    pub(crate) fn new(image: Image, specs: Vec<FieldSpec>, limits: &Limits) -> Result<Self> {
        // The name is taken for a regular expression by the original, without saying so.
        let pattern = format!(
            "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$",
            image.name
        );
        let pattern = match regex(&pattern, limits.regex_bytes) {
            Ok(pattern) => Some(pattern),
            Err(error) if error.kind() == crate::error::ErrorKind::Limit => return Err(error),
            Err(_) => None,
        };
        Ok(Self {
            image,
            specs,
            pattern,
        })
    }

    pub(crate) fn run(&self, resources: &mut ResMap, context: &Context<'_>) -> Result<()> {
        for resource in resources.list_mut_same_ids() {
            if resource.kind() == "CustomResourceDefinition" {
                continue;
            }
            self.containers(&mut resource.value, context)?;
            for spec in &self.specs {
                spec.apply(&mut resource.value, Make::Nothing, &mut |field| {
                    self.update(field, context)
                })?;
            }
        }
        Ok(())
    }

    /// The images of whatever is called containers, wherever it is.
    fn containers(&self, value: &mut Value, context: &Context<'_>) -> Result<()> {
        match value {
            Value::Array(items) => items
                .iter_mut()
                .try_for_each(|item| self.containers(item, context)),
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    self.containers(field, context)?;
                    if (key == "containers" || key == "initContainers")
                        && let Value::Array(items) = field
                    {
                        for item in items {
                            match item {
                                Value::Object(container) => {
                                    if let Some(image) = container.get_mut("image") {
                                        self.update(image, context)?;
                                    }
                                }
                                Value::Null => {}
                                other => return Err(wrong_kind("MappingNode", other)),
                            }
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn update(&self, field: &mut Value, context: &Context<'_>) -> Result<()> {
        if field.is_object() || field.is_array() {
            return Err(wrong_kind("ScalarNode", field));
        }
        let old = text(field);
        if !self
            .pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(&old))
        {
            return Ok(());
        }
        let new = self.renamed(&old);
        if new != old {
            context.add(new.len())?;
            set_plain(field, &new);
        }
        Ok(())
    }

    fn renamed(&self, old: &str) -> String {
        let (mut name, mut tag, mut digest) = split(old);
        let image = &self.image;
        let suffixed;
        if !image.new_name.is_empty() {
            name = &image.new_name;
        }
        if !image.new_tag.is_empty() {
            (tag, digest) = (&image.new_tag, &image.digest);
        } else if !image.digest.is_empty() {
            (tag, digest) = ("", &image.digest);
        } else if !image.tag_suffix.is_empty() {
            suffixed = format!("{tag}{}", image.tag_suffix);
            (tag, digest) = (&suffixed, "");
        }
        let mut new = name.to_owned();
        for (separator, part) in [(':', tag), ('@', digest)] {
            if !part.is_empty() {
                new.push(separator);
                new.push_str(part);
            }
        }
        new
    }
}

/// Name, tag and digest of an image. A colon before the first slash is the port of a registry.
fn split(image: &str) -> (&str, &str, &str) {
    let path_at = image.find('/').filter(|at| *at > 0).unwrap_or(0);
    let path = &image[path_at..];
    let digest_at = path.find('@').map(|at| at + path_at);
    let tag_at = path.find(':').map(|at| at + path_at);
    match (tag_at, digest_at) {
        (None, None) => (image, "", ""),
        (Some(tag), Some(digest)) if tag < digest => {
            (&image[..tag], &image[tag + 1..digest], &image[digest + 1..])
        }
        (_, Some(digest)) => (&image[..digest], "", &image[digest + 1..]),
        (Some(tag), None) => (&image[..tag], &image[tag + 1..], ""),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn images_are_taken_apart() {
        for (image, parts) in [
            ("nginx", ("nginx", "", "")),
            ("nginx:1.2", ("nginx", "1.2", "")),
            ("host:5000/nginx", ("host:5000/nginx", "", "")),
            (
                "host:5000/a/nginx:1@sha256:abc",
                ("host:5000/a/nginx", "1", "sha256:abc"),
            ),
            ("nginx@sha256:abc", ("nginx", "", "sha256:abc")),
        ] {
            assert_eq!(split(image), parts, "{image}");
        }
    }
}
