//! `fetch:*`: files into the working tree.

use fairway_portal_template::expression::Variables;
use fairway_portal_template::files::{File, Files, Pattern, clean};
use fairway_portal_template::skeleton::{self, Options};
use serde_json::{Value, json};

use crate::drive::{Job, StepError};
use crate::dry_run::Foreseen;
use crate::source;

/// What an address of the input leads to.
async fn fetched(job: &mut Job<'_>) -> Result<Files, StepError> {
    let url = job.required("url")?;
    // Whoever tries a template that is nowhere yet sends what is beside it.
    let is_relative = !url.contains(':');
    if let Some(beside) = job
        .dry
        .as_deref()
        .and_then(Foreseen::beside)
        .filter(|_| is_relative)
    {
        return source::within(beside, &url).map_err(StepError::Failed);
    }
    let place = source::place(
        &url,
        job.template.source.as_deref(),
        &job.world.options.forge.url(),
    )?;
    let pin = job.pin(&url);
    let workspace = job.workspace();
    let fetched = source::fetch(job.world, &workspace, job.person, &place, pin.as_deref()).await?;
    if let Some(pin) = &fetched.pin {
        job.set_pin(&url, pin);
        job.log(&format!("fetched {url} at {pin}"));
    }
    Ok(fetched.files)
}

fn put(job: &mut Job<'_>, files: &Files) -> Result<Value, StepError> {
    let target = clean(job.text("targetPath").unwrap_or("")).map_err(|error| error.to_string())?;
    for (path, file) in files.iter() {
        let path = match target.is_empty() {
            true => path.to_owned(),
            false => format!("{target}/{path}"),
        };
        job.files
            .write(&path, file.clone())
            .map_err(|error| error.to_string())?;
    }
    job.log(&format!("{} files", files.len()));
    Ok(json!({}))
}

/// The one file of what was fetched.
fn only(files: &Files) -> Result<File, StepError> {
    let mut all = files.iter();
    match (all.next(), all.next()) {
        (Some((_, file)), None) => Ok(file.clone()),
        _ => Err(StepError::failed(
            "input.url leads to several files; use the action for directories",
        )),
    }
}

pub(super) async fn plain(job: &mut Job<'_>) -> Result<Value, StepError> {
    let files = fetched(job).await?;
    put(job, &files)
}

pub(super) async fn plain_file(job: &mut Job<'_>) -> Result<Value, StepError> {
    let file = only(&fetched(job).await?)?;
    let target = job.required("targetPath")?;
    job.files
        .write(&target, file)
        .map_err(|error| error.to_string())?;
    Ok(json!({}))
}

/// The options of the input.
fn options(job: &Job<'_>) -> Result<(Options, Variables), StepError> {
    let mut patterns = job.texts("copyWithoutTemplating");
    patterns.extend(job.texts("copyWithoutRender"));
    let patterns: Result<Vec<Pattern>, String> = patterns.iter().map(|text| Pattern::new(text)).collect();
    let extension = match job.input.get("templateFileExtension") {
        Some(Value::Bool(true)) => Some(".njk".to_owned()),
        Some(Value::String(extension)) if !extension.is_empty() => Some(extension.clone()),
        _ => None,
    };
    let cookiecutter = job.flag("cookiecutterCompat");
    let values = job.input.get("values").cloned().unwrap_or(json!({}));
    let name = if cookiecutter { "cookiecutter" } else { "values" };
    let options = Options {
        copy_without_templating: patterns?,
        cookiecutter,
        extension,
        trim_blocks: job.flag("trimBlocks"),
        lstrip_blocks: job.flag("lstripBlocks"),
    };
    Ok((options, Variables::default().with(name, &values)))
}

pub(super) async fn template(job: &mut Job<'_>) -> Result<Value, StepError> {
    let skeleton = fetched(job).await?;
    let (options, variables) = options(job)?;
    let mut made = skeleton::render(&skeleton, &variables, &options)?;
    // As Backstage does: what is there stays, unless it is to be replaced.
    if !job.flag("replace") {
        let target = clean(job.text("targetPath").unwrap_or("")).map_err(|error| error.to_string())?;
        let there: Vec<String> = job
            .files
            .below(&target)
            .map(|(path, _)| path.to_owned())
            .collect();
        for path in there {
            made.remove(&path).map_err(|error| error.to_string())?;
        }
    }
    put(job, &made)
}

pub(super) async fn template_file(job: &mut Job<'_>) -> Result<Value, StepError> {
    let file = only(&fetched(job).await?)?;
    let (mut options, variables) = options(job)?;
    options.extension = None;
    let mut skeleton = Files::default();
    skeleton.write("file", file).map_err(|error| error.to_string())?;
    let made = only(&skeleton::render(&skeleton, &variables, &options)?)?;
    let target = job.required("targetPath")?;
    job.files
        .write(&target, made)
        .map_err(|error| error.to_string())?;
    Ok(json!({}))
}
