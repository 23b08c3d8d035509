//! What `fetch:template` makes of a skeleton: names and contents worked out, files that are not text left alone.

use crate::expression::{Limits, Syntax, Template, Variables};
use crate::files::{File, Files, Pattern, clean};

/// How a skeleton is taken.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files whose content is taken as it is; their names are worked out all the same.
    pub copy_without_templating: Vec<Pattern>,
    /// `{{ cookiecutter.name }}` instead of `${{ values.name }}`.
    pub cookiecutter: bool,
    /// Only files with this ending are worked out, and lose it: `.njk`.
    pub extension: Option<String>,
    /// As Nunjucks' options of the same names.
    pub trim_blocks: bool,
    /// See [`Self::trim_blocks`].
    pub lstrip_blocks: bool,
}

/// Makes files of a skeleton. An error names the file.
pub fn render(skeleton: &Files, variables: &Variables, options: &Options) -> Result<Files, String> {
    let syntax = Syntax {
        start: if options.cookiecutter { "{{" } else { "${{" },
        trim_blocks: options.trim_blocks,
        lstrip_blocks: options.lstrip_blocks,
    };
    let mut made = Files::default();
    // One budget for names and contents of all files would punish large skeletons; each file has its own, and their sum is bounded
    // by what the tree may hold.
    for (path, file) in skeleton.iter() {
        let failed = |why: String| format!("{path}: {why}");
        let target = name(path, variables, syntax).map_err(failed)?;
        let Some(mut target) = target else { continue };
        let copied = options
            .copy_without_templating
            .iter()
            .any(|pattern| pattern.matches(path));
        let mut works_out = !copied;
        if let Some(extension) = options.extension.as_deref().filter(|_| !copied) {
            match target.strip_suffix(extension) {
                Some(shorter) => target = shorter.to_owned(),
                None => works_out = false,
            }
        }
        let content = match file.text().filter(|_| works_out) {
            Some(text) => {
                let template = Template::read(text, syntax).map_err(|error| failed(error.to_string()))?;
                match template.is_plain() && !text.contains("{%") && !text.contains("{#") {
                    true => file.clone(),
                    false => {
                        let printed = template
                            .print(variables, Limits::default())
                            .map_err(|error| failed(error.to_string()))?;
                        File {
                            content: printed.into_bytes().into(),
                            is_executable: file.is_executable,
                        }
                    }
                }
            }
            None => file.clone(),
        };
        made.write(&target, content)
            .map_err(|error| failed(error.to_string()))?;
    }
    Ok(made)
}

/// The name of a file, part by part, so that an answer cannot bring a path in where a name was meant. Nothing if a part comes to
/// nothing: so templates leave files out.
fn name(path: &str, variables: &Variables, syntax: Syntax) -> Result<Option<String>, String> {
    let template = Template::read(path, syntax).map_err(|error| error.to_string())?;
    if template.is_plain() {
        return Ok(Some(path.to_owned()));
    }
    // Statements may span parts ("{% if values.x %}a/b{% endif %}"), and then the whole is one.
    let by_part: Option<Vec<Template>> = path
        .split('/')
        .map(|part| Template::read(part, syntax).ok())
        .collect();
    let Some(parts) = by_part else {
        let whole = template
            .print(variables, Limits::default())
            .map_err(|error| error.to_string())?;
        let whole = clean(whole.trim()).map_err(|error| error.to_string())?;
        return Ok((!whole.is_empty()).then_some(whole));
    };
    let mut names = Vec::new();
    for part in parts {
        let made = part
            .print(variables, Limits::default())
            .map_err(|error| error.to_string())?;
        if made.trim().is_empty() {
            return Ok(None);
        }
        if made.contains('/') && !part.is_plain() {
            return Err(format!("a part of its name comes to {made:?}, which is a path"));
        }
        names.push(made);
    }
    clean(&names.join("/"))
        .map(Some)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn made(
        files: &[(&str, &str)],
        values: &serde_json::Value,
        options: &Options,
    ) -> Result<Vec<(String, String)>, String> {
        let mut skeleton = Files::default();
        for (path, content) in files {
            skeleton.write(path, File::new(content.as_bytes())).unwrap();
        }
        let variables = Variables::default()
            .with("values", values)
            .with("cookiecutter", values);
        let made = render(&skeleton, &variables, options)?;
        let shown = made.iter().map(|(path, file)| {
            let text = String::from_utf8_lossy(&file.content).into_owned();
            (path.to_owned(), text)
        });
        Ok(shown.collect())
    }

    fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
        given
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn names_and_contents_are_worked_out() {
        let values = json!({"name": "web", "public": false});
        let files = [
            ("${{ values.name }}/a.yaml", "name: ${{ values.name }}\n"),
            ("{% if values.public %}route.yaml{% endif %}", "x"),
            ("raw.txt", "${{ not worked out }}"),
        ];
        let options = Options {
            copy_without_templating: vec![Pattern::new("raw.*").unwrap()],
            ..Options::default()
        };
        let expected = pairs(&[
            ("raw.txt", "${{ not worked out }}"),
            ("web/a.yaml", "name: web\n"),
        ]);
        assert_eq!(made(&files, &values, &options).unwrap(), expected);
    }

    #[test]
    fn endings_and_cookies() {
        let values = json!({"name": "web"});
        let options = Options {
            extension: Some(".njk".to_owned()),
            ..Options::default()
        };
        let files = [
            ("a.yaml.njk", "${{ values.name }}"),
            ("b.yaml", "${{ values.name }}"),
        ];
        let expected = pairs(&[("a.yaml", "web"), ("b.yaml", "${{ values.name }}")]);
        assert_eq!(made(&files, &values, &options).unwrap(), expected);
        let options = Options {
            cookiecutter: true,
            ..Options::default()
        };
        let files = [("{{cookiecutter.name}}.txt", "{{ cookiecutter.name | jsonify }}")];
        assert_eq!(
            made(&files, &values, &options).unwrap(),
            pairs(&[("web.txt", "\"web\"")])
        );
    }

    #[test]
    fn what_is_not_text_is_left_alone() {
        let mut skeleton = Files::default();
        let bytes: &[u8] = b"\0${{ values.name";
        skeleton.write("logo.png", File::new(bytes)).unwrap();
        skeleton.write("latin1", File::new(&b"\xff${{ x"[..])).unwrap();
        let made = render(&skeleton, &Variables::default(), &Options::default()).unwrap();
        assert_eq!(&*made.get("logo.png").unwrap().content, bytes);
    }

    #[test]
    fn hostile_names_are_refused() {
        for name in [
            "../../etc/passwd",
            "/etc/passwd",
            "a/b",
            "..",
            ".git",
            "x\ny",
            "a\\b",
        ] {
            let files = [("d/${{ values.name }}", "x")];
            let made = made(&files, &json!({"name": name}), &Options::default());
            assert!(made.is_err(), "{name:?}: {made:?}");
        }
    }

    proptest! {
        /// Whatever is answered, every file stays where the skeleton has it.
        #[test]
        fn no_answer_leads_out(name in ".{0,40}") {
            if let Ok(files) = made(&[("d/${{ values.name }}/f", "x")], &json!({"name": name}), &Options::default()) {
                for (path, _) in files {
                    prop_assert!(path.starts_with("d/") && path.ends_with("/f") && !path.contains(".."), "{}", path);
                }
            }
        }

        /// An answer that is dumped into YAML is that text there, and nothing else.
        #[test]
        fn dumped_answers_stay_texts_in_yaml(answer in ".{0,60}") {
            let files = [("a.yaml", "name: ${{ values.name | dump }}\nlast: true\n")];
            let made = made(&files, &json!({"name": answer}), &Options::default()).unwrap();
            match fairway_text_yaml::from_str(&made[0].1, fairway_text_yaml::Limits::default()) {
                Ok(read) => prop_assert_eq!(read, json!({"name": answer, "last": true})),
                // JSON lets some through that YAML does not know, and then it is no YAML at all.
                Err(_) => prop_assert!(answer.contains(|c: char| c.is_control())),
            }
        }
    }
}
