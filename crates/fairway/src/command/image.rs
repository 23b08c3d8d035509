//! `fairway image`: the disk images of this host. It works on the data directory itself, whether Fairway runs or not.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fairway_machines_image::import::{self, Request};
use fairway_machines_image::{Cache, Image, build, download, oci};
use fairway_outbound::{AllowedHosts, Outbound};
use serde_json::json;

use crate::cli::Data;
use crate::cli::image::{Guest, Image as Options, ImageCommand, ImageImport, ImageList};
use crate::data_dir::DataDir;

/// Endings that say how a file is packed or kept, not what is in it.
const ENDINGS: [&str; 9] = ["xz", "gz", "zst", "zstd", "qcow2", "raw", "img", "tar", "iso"];

/// Does what was asked for.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    match &options.command {
        ImageCommand::Build(options) => {
            let cache = open(&options.data)?;
            let say = |text: &str| eprintln!("fairway: {text}");
            let image = match options.what {
                Guest::Tiny => build::tiny(&cache, options.rebuild, say)?,
                Guest::Debian => build::debian(&cache, options.rebuild, say)?,
            };
            println!("{}", line(&cache, &image));
        }
        ImageCommand::List(options) => list(options)?,
        ImageCommand::Import(options) => {
            let cache = open(&options.data)?;
            let image = imported(&cache, options)?;
            println!("{}", line(&cache, &image));
        }
        ImageCommand::Rm(options) => {
            let cache = open(&options.data)?;
            for name in &options.names {
                let image = cache.remove(name)?;
                println!("{} is forgotten", image.name);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open(data: &Data) -> anyhow::Result<Cache> {
    let data = DataDir::find(data.dir.as_deref())?;
    data.create()?;
    Ok(Cache::open(&data.images())?)
}

fn list(options: &ImageList) -> anyhow::Result<()> {
    let cache = open(&options.data)?;
    let images = cache.images()?;
    let mut text = format!(
        "{:<20} {:>9} {:>9} {:<6} {:>5}  SOURCE",
        "NAME", "DISK", "FILE", "FORMAT", "USED"
    );
    for image in &images {
        text.push('\n');
        text.push_str(&line(&cache, image));
    }
    if images.is_empty() {
        text = "there are no images; build one with: fairway image build tiny".to_owned();
    }
    options.output.print(&json!(images), &text);
    Ok(())
}

fn line(cache: &Cache, image: &Image) -> String {
    format!(
        "{:<20} {:>9} {:>9} {:<6} {:>5}  {}",
        image.name,
        human(image.virtual_size),
        human(image.size),
        image.format.word(),
        cache.uses(image),
        image.source
    )
}

fn imported(cache: &Cache, options: &ImageImport) -> anyhow::Result<Image> {
    let name = match &options.name {
        Some(name) => name.clone(),
        None => name_of(&options.source),
    };
    let mut request = Request::new(&name, &options.source);
    request.checksum = options.checksum.clone();
    if let Some(size) = options.max_size {
        request.max_size = size;
    }
    let shown = Shown::new();
    let unpacking = |done| shown.say("unpacked", done, None);
    let image = match options.file() {
        Some(path) if path.is_dir() || options.path.is_some() || oci::is_image(&path) => {
            oci::import(cache, &path, options.path.as_deref(), &request, unpacking)?
        }
        Some(path) => import::file(cache, &path, &request, unpacking)?,
        None => {
            // Whoever types the address may go everywhere that this host can.
            let outbound = Outbound::new(AllowedHosts::parse("*").map_err(anyhow::Error::msg)?);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("the runtime cannot be started")?;
            let fetching = download::fetch(
                cache,
                &outbound,
                &options.source,
                &[],
                request.max_size,
                |progress| {
                    shown.say("fetched", progress.done, progress.total);
                },
            );
            let fetched = runtime.block_on(fetching)?;
            let image = import::file(cache, fetched.path(), &request, unpacking);
            // A file that cannot be used is of no use the next time either; one for which there was no room is.
            if !matches!(image, Err(fairway_machines_image::ImageError::NoRoom { .. })) {
                fetched.discard();
            }
            image?
        }
    };
    shown.end();
    Ok(image)
}

/// A name for an image from where it comes from.
fn name_of(source: &str) -> String {
    let path = source.split(['?', '#']).next().unwrap_or(source);
    let mut name = Path::new(path)
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    while let Some((stem, ending)) = name.rsplit_once('.')
        && ENDINGS.contains(&ending)
    {
        name = stem.to_owned();
    }
    let letters = name.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' | '.' | '-' => letter,
        _ => '-',
    });
    letters.collect::<String>().trim_matches(['-', '.']).to_owned()
}

/// Progress, for somebody who looks.
struct Shown {
    is_terminal: bool,
    last: Cell<Option<Instant>>,
}

impl Shown {
    fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            last: Cell::new(None),
        }
    }

    fn say(&self, what: &str, done: u64, total: Option<u64>) {
        let now = Instant::now();
        let is_due = self
            .last
            .get()
            .is_none_or(|last| now.duration_since(last) >= Duration::from_millis(200));
        if !self.is_terminal || !is_due {
            return;
        }
        self.last.set(Some(now));
        let total = total.map_or(String::new(), |total| format!(" of {}", human(total)));
        eprint!("\r\x1b[K{what} {}{total}", human(done));
        let _ = std::io::stderr().flush();
    }

    fn end(&self) {
        if self.last.get().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

fn human(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 10 << 30 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 10 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_after_their_files() {
        for (source, expected) in [
            ("/x/Debian_12.qcow2.xz", "debian-12"),
            ("https://host/a/b.raw.gz?x=1", "b"),
            ("cirros-0.6.2-x86_64-disk.img", "cirros-0.6.2-x86-64-disk"),
            ("layout/", "layout"),
        ] {
            assert_eq!(name_of(source), expected);
        }
    }
}
