//! Builds kustomizations from the disk, for comparison with the original.
//!
//! ```text
//! build ROOT PATH          builds ROOT/PATH with ROOT as the tree; prints YAML
//! build --batch            the same for each line `ROOT<TAB>PATH<TAB>FILE` of the input; writes YAML, or `ERROR: …`, to FILE
//! build --repeat N ROOT PATH   builds N times from one tree and prints the CPU time of each in microseconds
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line"
)]

use std::error::Error;
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;

use fairway_gitops_kustomize::{Options, Ports, build};
use fairway_gitops_tree::{Tree, TreeBuilder};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--batch"] => {
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                let parts: Vec<&str> = line.split('\t').collect();
                let [root, path, file] = parts[..] else {
                    return Err(format!("not `ROOT<TAB>PATH<TAB>FILE`: {line}").into());
                };
                let text = build_yaml(&read(root)?, path).unwrap_or_else(|error| format!("ERROR: {error}"));
                std::fs::write(file, text)?;
            }
            Ok(())
        }
        ["--repeat", count, root, path] => {
            let tree = read(root)?;
            let started = std::time::Instant::now();
            let count: u32 = count.parse()?;
            for _ in 0..count {
                build_yaml(&tree, path)?;
            }
            println!("{}", (started.elapsed() / count).as_micros());
            Ok(())
        }
        [root, path] => {
            print!("{}", build_yaml(&read(root)?, path)?);
            Ok(())
        }
        _ => Err("usage: build ROOT PATH | --batch | --repeat N ROOT PATH".into()),
    }
}

fn build_yaml(tree: &Tree, path: &str) -> Outcome<String> {
    Ok(build(&tree.reader(), path, &Options::default(), Ports::default())?.to_yaml()?)
}

fn read(root: &str) -> Outcome<Tree> {
    let mut builder = Tree::builder();
    add(&mut builder, Path::new(root), "")?;
    Ok(builder.build())
}

fn add(builder: &mut TreeBuilder, directory: &Path, at: &str) -> Outcome<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match at {
            "" => name,
            at => format!("{at}/{name}"),
        };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            builder.directory(&path)?;
            add(builder, &entry.path(), &path)?;
        } else if kind.is_symlink() {
            builder.link(&path, &std::fs::read_link(entry.path())?.to_string_lossy())?;
        } else {
            builder.file(&path, std::fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
