//! Templates that others have written, read as they are: each is whole, or is refused with a reason. None is run here
//! (docs/conformance/templates.md says which were). They are not part of this repository: `FAIRWAY_TEMPLATES=DIR cargo test -p fairway-portal-scaffolder --test foreign -- --nocapture` looks at every YAML file below DIR.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::path::Path;

use fairway_portal_scaffolder::actions;
use fairway_portal_template::template::Template;

fn each(at: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => each(&path, found),
            false if path.extension().is_some_and(|it| it == "yaml" || it == "yml") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn templates_are_whole_or_are_refused_with_a_reason() {
    let Some(place) = std::env::var_os("FAIRWAY_TEMPLATES") else {
        println!("SKIPPED: FAIRWAY_TEMPLATES names no directory");
        return;
    };
    let mut files = Vec::new();
    each(Path::new(&place), &mut files);
    let (mut sound, mut refused, mut but_for_the_host) = (0, 0, 0);
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        let Ok(documents) = fairway_text_yaml::documents(&text, fairway_text_yaml::Limits::default()) else {
            continue;
        };
        for object in documents.iter().filter(|object| object["kind"] == "Template") {
            let reasons = match Template::read(object) {
                Err(problems) => problems,
                Ok(template) => template.unknown_actions(&actions::names()),
            };
            assert!(reasons.iter().all(|reason| !reason.is_empty()));
            match reasons.is_empty() {
                true => sound += 1,
                false => {
                    refused += 1;
                    let is_of_a_host = |reason: &String| reason.contains("action \"publish:");
                    but_for_the_host += usize::from(reasons.iter().all(is_of_a_host));
                    println!("{}: {}", file.display(), reasons.join("; "));
                }
            }
        }
    }
    println!(
        "{sound} are whole, {refused} are refused, {but_for_the_host} of these only because they publish to another Git host"
    );
    assert!(sound + refused > 0, "no template was found");
}
