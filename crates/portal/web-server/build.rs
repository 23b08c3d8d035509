//! Takes the built web application into the crate: every file of `web/dist` as it is and packed, in a table sorted by path.
//!
//! Without `web/dist` the table is empty, and the crate shows a page that says how the application is built.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What stands in the page where every answer has a nonce of its own.
const NONCE: &str = "__CSP_NONCE__";
/// What a packed file may have of its size, in hundredths, to be worth its place in the binary.
const WORTHWHILE: usize = 95;

fn main() -> io::Result<()> {
    let variable = |name: &str| std::env::var(name).map_err(io::Error::other);
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let web = here.join("../../../web");
    let dist = web.join("dist");
    // `make web` touches the page of the missing application, so that a first build of it is noticed: a path that is not there
    // would have this crate compiled each time.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/unbuilt.html");
    let mut found = BTreeMap::new();
    if dist.join("index.html").exists() {
        println!("cargo::rerun-if-changed={}", dist.display());
        collect(&dist, "", &mut found)?;
    }
    let is_release = variable("PROFILE")? == "release";
    let index = found.remove("/index.html");
    let mut table = String::from("pub(super) static FILES: &[File] = &[\n");
    for (at, (path, file)) in found.iter().enumerate() {
        let content = fs::read(file)?;
        table += &format!(
            "    File {{ path: {path:?}, kind: {:?}, tag: {:?}, raw: include_bytes!({:?}), brotli: {}, gzip: {} }},\n",
            kind(path),
            tag(&content),
            fs::canonicalize(file)?.display().to_string(),
            written(
                &out,
                &format!("{at}.br"),
                &content,
                &brotli(&content, is_release)?
            )?,
            written(&out, &format!("{at}.gz"), &content, &gzip(&content)?)?,
        );
    }
    table += "];\n";
    let index = match index {
        None => None,
        Some(file) => Some(fs::read_to_string(file)?),
    };
    table += &match index {
        None => "pub(super) static INDEX: Option<Index> = None;\n".to_owned(),
        Some(page) => {
            let pieces = pieces(&page);
            format!(
                "pub(super) static INDEX: Option<Index> = Some(Index {{ tag: {:?}, pieces: &{pieces:?} }});\n",
                tag(page.as_bytes()),
            )
        }
    };
    fs::write(out.join("files.rs"), table)
}

fn collect(directory: &Path, below: &str, found: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{below}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, found)?;
        } else if !path.ends_with(".map") {
            found.insert(path, entry.path());
        }
    }
    Ok(())
}

/// The page, cut where a nonce stands. One that has no place for it gets one at the beginning of its head.
fn pieces(page: &str) -> Vec<String> {
    let page = match page.contains(NONCE) {
        true => page.to_owned(),
        false => page.replacen(
            "<head>",
            &format!("<head>\n    <meta name=\"csp-nonce\" content=\"{NONCE}\">"),
            1,
        ),
    };
    page.split(NONCE).map(str::to_owned).collect()
}

fn tag(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The type of a file by its name. What is not known is nothing that a browser shows or runs.
fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn brotli(content: &[u8], is_release: bool) -> io::Result<Vec<u8>> {
    let quality = if is_release { 11 } else { 9 };
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 64 * 1024, quality, 22).write_all(content)?;
    Ok(out)
}

fn gzip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(content)?;
    packer.finish()
}

/// Writes a packed file down if it is worth it; the expression that includes it.
fn written(out: &Path, name: &str, content: &[u8], packed: &[u8]) -> io::Result<String> {
    let is_worth_it = packed.len() * 100 < content.len() * WORTHWHILE;
    if !is_worth_it {
        return Ok("None".to_owned());
    }
    let path = out.join(name);
    fs::write(&path, packed)?;
    Ok(format!("Some(include_bytes!({:?}))", path.display().to_string()))
}
